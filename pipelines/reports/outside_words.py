"""Words outside the vocabulary of a store: their share of the tokens, and what would lower it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streaming_moments.quality.drift import outside_share
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.create import PilotOptions

MANY = 0.05  # below, what would lower it is not worth a new pass


def share_outside(store: MomentStore) -> float | None:
    """Share of the tokens of all that is counted; None where nothing is."""
    return outside_share(store.commit.tokens, sum(one.outside for one in store.ledger()))


def share_line(share: float | None) -> str:
    """That share as a sentence; empty where it is not known.

    Examples
    --------
    >>> share_line(0.1234)
    '12.3% of the tokens are outside the vocabulary'
    """
    return "" if share is None else f"{share:.1%} of the tokens are outside the vocabulary"


def pilot_line(store: MomentStore) -> str:
    """What of the pilot is outside the vocabulary, and why; empty where that was not kept."""
    drawn = drawn_of(store)
    if "outside_share" not in drawn:
        return ""
    options = _asked(store)
    parts = {
        f"in more than {options.max_document_fraction:.0%} of the passages": "common_share",
        f"in fewer than {options.min_documents} of them": "rare_share",
        f"rarer than the {options.vocabulary_size:,} that were asked for": "beyond_share",
    }
    told = [f"{drawn[name]:.1%} are words {why}" for why, name in parts.items() if drawn[name]]
    return f"{drawn['outside_share']:.1%} of the tokens of the pilot are outside the vocabulary" + (
        f": {', '.join(told)}" if told else ""
    )


def advice_of(store: MomentStore, share: float | None) -> tuple[str, ...]:
    """What would lower a share of tokens outside the vocabulary of documents, a sentence each.

    Nothing where it is a few percent; words that are too common are left out on purpose.
    """
    wanted = 0.0 if share is None else share - drawn_of(store).get("common_share", 0.0)
    if wanted <= MANY or store.basis.table is not None:
        return ()
    from streaming_moments.pipelines.jobs.create import CHOSEN
    from streaming_moments.pipelines.jobs.grow import WORDS

    options, words, lines = _asked(store), store.basis.n_words, list[str]()
    lacking = options.vocabulary_size - words
    if lacking <= 0:
        lines.append(
            f"`--vocabulary-size {2 * words}` of `create` or `rebase` would count rarer words as "
            f"well: the vocabulary has {words:,}, and {options.vocabulary_size:,} were asked for"
        )
    elif drawn_of(store).get("stopped") == CHOSEN:
        lines.append(
            "without `--pilot-documents` the pilot of `create` or `rebase` would go on for rarer "
            f"words: it found {words:,} of the {options.vocabulary_size:,} that were asked for"
        )
    elif options.min_documents > 1:
        lines.append(
            f"`--min-documents {options.min_documents // 2}` of `create` or `rebase` would count "
            f"rarer words as well: {words:,} of the {options.vocabulary_size:,} that were asked "
            f"for are in {options.min_documents} passages of the pilot or more"
        )
    if store.commit.shards:
        lines.append(
            f"`grow --words {max(WORDS, lacking)}` would add words that are frequent in the shards "
            "counted last, and counts none of them again"
        )
    return tuple(lines)


def language_line(store: MomentStore) -> str:
    """Which languages the pilot found, and what to do if that is wrong; empty if it sought none."""
    drawn = drawn_of(store)
    if "languages" not in drawn:
        return ""
    if not drawn["languages"]:
        return (
            "Found no language in the sample, so no stop words are removed; otherwise give "
            "--language NAME."
        )
    names, policy = " and ".join(name.title() for name in drawn["languages"]), store.policy
    removed = 0 if policy is None else len(policy.stop_words)
    return (
        f"Found {names} in the sample and removed {removed:,} stop words; "
        "`--language none` keeps them."
    )


def drawn_of(store: MomentStore) -> Mapping[str, Any]:
    """What the pilot of a store of documents read; empty where that was not kept."""
    drawn: Mapping[str, Any] = (store.commit.lineage.pilot or {}).get("drawn", {})
    return drawn


def _asked(store: MomentStore) -> PilotOptions:
    """How the words were to be chosen; the defaults where it was not written."""
    # jobs read shards, which not all that shows a store does
    from streaming_moments.pipelines.jobs.create import PilotOptions

    written = store.commit.lineage.pilot or {}
    names = {"vocabulary_size", "min_documents", "max_document_fraction"} & written.keys()
    return PilotOptions(**{name: written[name] for name in names})
