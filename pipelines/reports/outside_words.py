"""Words outside the vocabulary of a store: their share of the tokens, and remedies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import Remedy, remedy
from streaming_moments.quality.drift import outside_share
from streaming_moments.storage.counting.languages import tokeniser_advice
from streaming_moments.storage.shards import PARTITIONS
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.pipelines.counting_options import PilotOptions

# give no remedy if a smaller share of the tokens is outside the vocabulary, because reading all
# shards again would not be worth it
MANY = 0.05
SLOW = 0.1  # a message names the tokeniser if it takes at least this share of the reading time


def share_outside(store: MomentStore) -> float | None:
    """Return the share of tokens outside the vocabulary in all shards; None without tokens."""
    return outside_share(store.commit.tokens, sum(one.outside for one in store.ledger()))


def share_line(share: float | None) -> str:
    """Format the share of tokens outside the vocabulary as a sentence; empty if it is unknown.

    Examples
    --------
    >>> share_line(0.1234)
    '12.3% of the tokens are outside the vocabulary'
    """
    return "" if share is None else f"{share:.1%} of the tokens are outside the vocabulary"


def pilot_line(store: MomentStore) -> str:
    """Say how many tokens of the pilot are outside the vocabulary, and why; empty if unrecorded."""
    drawn = drawn_of(store)
    if "outside_share" not in drawn:
        return ""
    options = _asked(store)
    parts = {
        f"in more than {options.max_document_fraction:.0%} of the passages": "common_share",
        f"in fewer than {of_number(options.min_documents, 'passage')}": "rare_share",
        f"rarer than the {of_number(options.vocabulary_size, 'requested word')}": "beyond_share",
    }
    told = [f"{drawn[name]:.1%} are words {why}" for why, name in parts.items() if drawn[name]]
    return f"{drawn['outside_share']:.1%} of the tokens of the pilot are outside the vocabulary" + (
        f": {', '.join(told)}" if told else ""
    )


def advice_of(store: MomentStore, share: float | None) -> tuple[Remedy, ...]:
    """Return remedies that lower the share of tokens outside the vocabulary, a sentence each.

    Returns nothing if the share is only a few percent. Too common words do not add to this share,
    because they are left out on purpose. Also returns nothing if another tokeniser would find the
    words. No command can read Python collections again, so the remedy for a store that counts them
    is a new store.
    """
    drawn = drawn_of(store)
    wanted = 0.0 if share is None else share - drawn.get("common_share", 0.0)
    if wanted <= MANY or store.basis.table is not None or "better_tokeniser" in drawn:
        return ()
    from streaming_moments.pipelines.jobs.create import CHOSEN
    from streaming_moments.pipelines.jobs.grow import WORDS

    options, words, lines = _asked(store), store.basis.n_words, list[Remedy]()
    lacking = options.vocabulary_size - words
    in_files = not any(one.url.startswith(PARTITIONS) for one in store.ledger())
    more, rarer = 2 * words, options.min_documents // 2
    if lacking <= 0:
        lines.append(
            remedy(
                f"{{create.vocabulary_size:{more}}}{{again}} would count rarer words as well: the "
                "vocabulary has {words:,} of {asked:,} requested words",
                again=remedy(f" or {{rebase.vocabulary_size:{more}}}") if in_files else "",
                words=words,
                asked=options.vocabulary_size,
            )
        )
    elif drawn.get("stopped") == CHOSEN:
        lines.append(
            remedy(
                "without {create.pilot_documents} the pilot of {create}{again} would search for "
                "rarer words: it found {words:,} of {asked:,} requested words",
                again=remedy(" or {rebase}") if in_files else "",
                words=words,
                asked=options.vocabulary_size,
            )
        )
    elif options.min_documents > 1:
        lines.append(
            remedy(
                f"{{create.min_documents:{rarer}}}{{again}} would count rarer words as well: only "
                "{words:,} of {asked:,} requested words are in {most} passages of the pilot or "
                "more",
                again=remedy(f" or {{rebase.min_documents:{rarer}}}") if in_files else "",
                words=words,
                asked=options.vocabulary_size,
                most=options.min_documents,
            )
        )
    if store.commit.shards and in_files:
        lines.append(
            remedy(
                f"{{grow.words:{max(WORDS, lacking)}}} would add words that are frequent in the "
                "latest shards, without counting any shard again"
            )
        )
    return tuple(lines)


def language_line(store: MomentStore) -> Remedy | None:
    """Return a remark on languages, tokeniser, phrases and topics that the pilot found, or None."""
    drawn = drawn_of(store)
    findings = (
        _stop_words_found(store, drawn),
        _tokeniser_found(store, drawn),
        _phrases_found(drawn),
        fewer_topics(drawn.get("max_topics")),
    )
    found = {f"finding{place}": one for place, one in enumerate(findings) if one is not None}
    return remedy(" ".join(f"{{{name}}}" for name in found), **found) if found else None


def fewer_topics(most: int | None) -> Remedy | None:
    """Say that the basis allows fewer topics than the default; None if it allows as many.

    Examples
    --------
    >>> str(fewer_topics(26))
    'Fits can have up to 26 topics instead of 32, because there are 26 core words.'
    """
    # imported here because it imports the code that reads shards, which most pages do not need
    from streaming_moments.pipelines.counting_options import MOST_TOPICS

    if most is None or most >= MOST_TOPICS:
        return None
    return remedy(
        "Fits can have up to {most} topics instead of {usual}, because there are {most} core "
        "words.",
        most=most,
        usual=MOST_TOPICS,
    )


def _phrases_found(drawn: Mapping[str, Any]) -> Remedy | None:
    if "phrases" not in drawn:
        return None
    number = drawn["phrases"]
    return remedy(
        "{found} {count} words: {named}.",
        found=of_number(number, "phrase"),
        count="counts in place of its" if number == 1 else "count in place of their",
        named=", ".join(drawn["frequent_phrases"]),
    )


def _tokeniser_found(store: MomentStore, drawn: Mapping[str, Any]) -> Remedy | None:
    if better := drawn.get("better_tokeniser"):
        return remedy("{advice}.", advice=tokeniser_advice(better))
    return slow_tokeniser(store, drawn.get("tokeniser_share"), "sample")


def slow_tokeniser(store: MomentStore, share: float | None, read: str) -> Remedy | None:
    """Return a remark if the tokeniser took much of the reading time; `read` names the data."""
    if share is None or share < SLOW or store.policy is None:  # only documents have a tokeniser
        return None
    return remedy(
        "Tokeniser {name} took {share:.0%} of the time that reading the {read} took.",
        name=store.policy.tokeniser,
        share=share,
        read=read,
    )


def _stop_words_found(store: MomentStore, drawn: Mapping[str, Any]) -> Remedy | None:
    found = drawn.get("languages")
    if found is None or (not found and "better_tokeniser" in drawn):
        return None
    if not found:
        return remedy(
            "Found no language in the sample, so no stop words are removed; if the texts have one, "
            "name it by {create.language}."
        )
    names, policy = " and ".join(name.title() for name in found), store.policy
    removed = 0 if policy is None else len(policy.stop_words)
    return remedy(
        "Found {names} in the sample and removed {removed}; {create.language:none} keeps them.",
        names=names,
        removed=of_number(removed, "stop word"),
    )


def drawn_of(store: MomentStore) -> Mapping[str, Any]:
    """Return facts about the pilot of a store of documents; empty if unrecorded."""
    drawn: Mapping[str, Any] = (store.commit.lineage.pilot or {}).get("drawn", {})
    return drawn


def _asked(store: MomentStore) -> PilotOptions:
    """Return the options by which the vocabulary was chosen; defaults if unrecorded."""
    # imported here because it imports the code that reads shards, which some pages do not need
    from streaming_moments.pipelines.counting_options import PilotOptions

    written = store.commit.lineage.pilot or {}
    names = {"vocabulary_size", "min_documents", "max_document_fraction"} & written.keys()
    return PilotOptions(**{name: written[name] for name in names})
