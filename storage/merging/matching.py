"""Matching: checks whether the statistics of two stores can be added, and describes differences."""

from __future__ import annotations

from collections.abc import Iterator

from streaming_moments.errors import ForeignStatistics
from streaming_moments.storage.log.commits import Lineage
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.store.snapshot import Snapshot
from streaming_moments.storage.store.store import MomentStore


def require_adding_up(store: Snapshot, other: Snapshot) -> None:
    """Raise ForeignStatistics, with all differences, if the sums of two stores cannot be added."""
    differs = list(differences(store, other))
    if differs:
        raise ForeignStatistics(
            f"the statistics of {other.url} cannot be added to those of {store.url}: "
            f"{'; '.join(differs)}.",
            "Create the store of each site by {create.like}",
        )


def differences(store: Snapshot, other: Snapshot) -> Iterator[str]:
    """Describe what differs between the foundations of two stores.

    Words that only one of the stores has added later are not a difference.
    """
    mine, theirs = store.commit.lineage, other.commit.lineage
    if mine.kind != theirs.kind:
        yield f"it holds {other.kind}, and this store {store.kind}"
        return
    if _bases(mine).isdisjoint(_bases(theirs)) or not _nested(mine, theirs):
        yield from (
            _of_words(store, other)
            if mine.kind is None
            else (f"its foundation is {theirs.basis[:12]}, and here {mine.basis[:12]}",)
        )
    for told, here, there in (
        ("halves of the documents", mine.halves, theirs.halves),
        ("halves by content", mine.halves_by_content, theirs.halves_by_content),
        ("counts for coherence", mine.codocuments, theirs.codocuments),
    ):
        if here != there:
            yield f"it has {told}" if there else f"it lacks {told}"
    if mine.row_blocks != theirs.row_blocks:
        yield f"its rows are in {theirs.row_blocks} blocks, and here in {mine.row_blocks}"


def followed(store: MomentStore, other: Snapshot) -> MomentStore:
    """Add to a store the words that another store has added to the same vocabulary, if any.

    Each addition in the other store becomes a commit in this store, so that every segment keeps the
    vocabulary with which it was counted.
    """
    theirs = other.commit.lineage
    if theirs.kind is not None:
        return store
    sizes = [*(era.words for era in theirs.eras), other.basis.n_words]
    bases = [*(era.basis for era in theirs.eras), theirs.basis]
    if store.commit.lineage.basis not in bases[:-1]:
        return store
    place, words = bases.index(store.commit.lineage.basis), other.vocabulary
    for first, last in zip(sizes[place:], sizes[place + 1 :], strict=False):
        ids = None if words.token_ids is None else words.token_ids[first:last]
        text = f"grow: {last - first} words that {other.url} has added"
        store = grow(store, words.terms[first:last], ids, text)
    return store


def words_here(lineage: Lineage, other: Lineage, words: int | None) -> int | None:
    """Return the vocabulary size to record here for a segment that is copied from another store.

    `words` is the size that the other store has recorded. For both sizes, None means all words of
    the store.

    Raises ForeignStatistics if this store added words in larger steps than the other store.
    """
    basis = other.basis if words is None else other.era(words).basis
    here = {lineage.basis: None, **{era.basis: era.words for era in lineage.eras}}
    if basis not in here:
        raise ForeignStatistics(
            f"the other store counted some documents with {words:,} words, but this store never "
            "had that vocabulary, because the two stores added their words in different steps",
            "create a new store like the other one by {create.like}, and merge both into it",
        )
    return here[basis]


def _bases(lineage: Lineage) -> set[str]:
    return {lineage.basis, *(era.basis for era in lineage.eras)}


def _nested(mine: Lineage, theirs: Lineage) -> bool:
    """Whether one store has all vocabularies of the other, so that their segments can be added.

    If the stores count half of the documents separately, the first vocabularies must be equal,
    because they decide to which half a document belongs.
    """
    firsts = {(one.eras[0].basis if one.eras else one.basis) for one in (mine, theirs)}
    same = len(firsts) == 1 or not mine.halves
    return same and (_bases(mine) >= _bases(theirs) or _bases(theirs) >= _bases(mine))


def _of_words(store: Snapshot, other: Snapshot) -> Iterator[str]:
    """Describe differences of words, of the token policy, and of the basis."""
    mine, theirs = store.vocabulary, other.vocabulary
    if mine.policy != theirs.policy:
        yield "it has another token policy (such as other stop words or another length of passages)"
    if mine.core != theirs.core:
        yield f"it has {theirs.core:,} core words, and this store {mine.core:,}"
    pairs = enumerate(zip(mine.terms, theirs.terms, strict=False), start=1)
    unlike = next(((place, *pair) for place, pair in pairs if pair[0] != pair[1]), None)
    if unlike is not None:
        place, here, there = unlike
        yield f"word {place:,} is {there!r} there and {here!r} here"
    elif mine.n_words != theirs.n_words:
        yield (
            f"it has {theirs.n_words:,} words and this store {mine.n_words:,}, and neither "
            "vocabulary comes from the other by `grow`"
        )
    elif _steps(store) != _steps(other):
        yield "it added the same words in other steps"
    elif mine.fingerprint == theirs.fingerprint or mine.policy == theirs.policy:
        yield "it has another basis or other length weights"


def _steps(store: Snapshot) -> list[int]:
    return [era.words for era in store.commit.lineage.eras]
