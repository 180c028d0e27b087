"""Growth: adds words to the vocabulary of a store without counting shards again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.log.commits import Commit, Era, Lineage
from streaming_moments.storage.segments.foundations import (
    read_foundation,
    write_foundation,
    write_vocabulary,
)
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class AddedWords:
    """Words that one commit added to a store: `words` words, the first of them in row `first`.

    These words are counted only in documents that were added after `version`. `time` is the time of
    this version, in ISO 8601 and UTC.
    """

    first: int
    words: int
    version: int
    time: str


def grow(
    store: MomentStore,
    terms: Sequence[str],
    token_ids: Sequence[int] | None = None,
    message: str = "",
) -> MomentStore:
    """Add words at the end of the vocabulary, outside the core, in one commit.

    Counted documents stay unchanged; in later documents, the new words are counted. A segment that
    was counted with the earlier vocabulary can still be committed, without the new words. A staged
    lineage stays unchanged. Raises InvalidInput if there are no words, if the vocabulary already
    has some of them, or if words and ids do not correspond. Raises StoreError if another writer has
    changed the vocabulary, or the store cannot be written.

    store : store whose latest version the new commit follows
    terms : new words, the most frequent first
    token_ids : ids of the new words in shards of token ids; None for a store of texts

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.basis import Basis
    >>> from streaming_moments.storage.shards import ShardFormat
    >>> vocabulary = Vocabulary(("law", "sea", "ship"), core=3)
    >>> basis = Basis(np.eye(3, 2, dtype=np.int8), 3, vocabulary.fingerprint)
    >>> store = MomentStore.create("memory://growth", vocabulary, None, basis, ShardFormat())
    >>> grown = grow(store, ["steam"])
    >>> grown.vocabulary.terms, added_words(grown.commit.lineage, grown.basis.n_words)[0].words
    (('law', 'sea', 'ship', 'steam'), 1)
    """
    if not terms:
        raise InvalidInput("there are no words to add; give at least one")
    before, lineage = store.vocabulary, store.commit.lineage
    if (token_ids is None) != (before.token_ids is None):
        raise InvalidInput(
            "give words with their ids to a store of token ids, and words alone to a store of texts"
        )
    ids = None if token_ids is None else (*(before.token_ids or ()), *token_ids)
    vocabulary = Vocabulary((*before.terms, *terms), before.core, before.policy, ids)
    basis = store.basis.with_words(vocabulary.n_words, vocabulary.fingerprint)
    write_vocabulary(store.folder, vocabulary, store.policy)
    write_foundation(store.folder, replace(store.counts, basis=basis))
    store.folder.sync("")

    def change(head: Commit) -> Commit:
        if head.lineage.basis != lineage.basis:
            raise StoreError(
                f"the vocabulary of version {head.version} differs from that of version "
                f"{store.version}, for which the words were chosen: another writer has grown, "
                "rebased or rolled back the store; run this again"
            )
        former = before.n_words
        segments = tuple(
            replace(part, words=former) if part.words is None else part for part in head.segments
        )
        grown = head.successor("grow", message, segments=segments)
        era = Era(former, lineage.vocabulary, lineage.basis, grown.version, grown.time)
        longer = replace(
            head.lineage,
            vocabulary=vocabulary.fingerprint,
            basis=basis.fingerprint,
            eras=(*head.lineage.eras, era),
        )
        return replace(grown, lineage=longer)

    return store.extended(change)


def store_of_era(store: MomentStore, words: int | None) -> MomentStore:
    """Return the store with its earlier vocabulary of `words` words, to count shards with.

    Returns the store itself if `words` is missing (None). The result must not be used for commits.
    """
    if words is None:
        return store
    era = store.commit.lineage.era(words)
    lineage = replace(store.commit.lineage, vocabulary=era.vocabulary, basis=era.basis, eras=())
    # Version -1 prevents commits: the next version would be 0, which exists.
    aside = replace(store.commit, version=-1, lineage=lineage, segments=(), staged=None)
    foundation = replace(
        read_foundation(store.folder, lineage), first_words=store.counts.first_words
    )
    return replace(store, commit=aside, foundation=foundation)


def added_words(lineage: Lineage, n_words: int) -> tuple[AddedWords, ...]:
    """Return the words that were added to the first vocabulary, one entry for each commit.

    `n_words` is the number of words of the present vocabulary of the lineage.
    """
    eras = lineage.eras
    ends = [*(era.words for era in eras), n_words][1:]
    return tuple(
        AddedWords(era.words, end - era.words, era.version, era.time)
        for era, end in zip(eras, ends, strict=True)
    )
