"""Lineages: counts a store again with a new vocabulary and basis, and adopts the new counts.

Until they are adopted, the new counts are a staged lineage, which readers do not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import (
    ForeignStatistics,
    InvalidInput,
    StoreError,
    StreamingMomentsError,
    short,
)
from streaming_moments.models.base import Model
from streaming_moments.models.states import Clusters, States, states_of
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import Spell
from streaming_moments.quality.clusters import compare_clusters
from streaming_moments.quality.matching import (
    MatchingRule,
    TopicMatching,
    compare_topics,
    on_all_words,
)
from streaming_moments.statistics.base import Foundation
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.log.commits import Commit, Staging, foundation_of
from streaming_moments.storage.log.format import raise_format
from streaming_moments.storage.log.layout import row_blocks_for
from streaming_moments.storage.log.ledger import Ledger, ShardsAlreadyCounted, read_ledger
from streaming_moments.storage.segments.foundations import (
    read_foundation,
    read_vocabulary,
    require_matching,
    write_foundation,
    write_vocabulary,
)
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.store.changes import require_bound, require_halves
from streaming_moments.storage.store.store import MomentStore


class LineageBehind(StreamingMomentsError):
    """A staged lineage has not counted all shards of the store; `urls` names the missing ones."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        super().__init__(urls)
        self.urls = urls

    def said(self, spell: Spell) -> str:
        return (
            f"the staged lineage has not counted {of_number(len(self.urls), 'shard')} of the "
            f"store, such as {self.urls[0]}; run `streaming-moments rebase` again"
        )


class LineageAstray(StreamingMomentsError):
    """A staged lineage has counted shards that the store no longer holds."""


def stage(
    store: MomentStore,
    vocabulary: Vocabulary,
    policy: TokenPolicy | None,
    basis: Basis,
    pilot: Mapping[str, Any],
    message: str = "",
    halves: bool | None = None,
) -> MomentStore:
    """Begin to count a store again with another vocabulary, policy and basis: a staged lineage.

    It replaces the staged lineage of the given version, if any.

    The statistics and the ledger of the store stay unchanged, so readers see no difference. Raises
    ForeignStatistics if vocabulary, policy and basis do not belong together. Raises StoreError if
    another lineage was staged or adopted since, or the store cannot be written. Raises InvalidInput
    if the store holds documents of other stores.

    store : store whose latest version the new commit follows, if no other lineage was staged or
        adopted since the given version
    vocabulary, policy, basis : Vocabulary, TokenPolicy or None, and Basis, which define the new
        lineage
    pilot : JSON that describes how vocabulary, policy and basis were made
    halves : whether to store the sums of one half of the documents separately; by default as in the
        store
    """
    require_matching(vocabulary, policy, basis)
    write_vocabulary(store.folder, vocabulary, policy)
    kept = store.halves if halves is None else halves
    return stage_on(store, CountsFoundation(basis, store.codocuments, kept), pilot, message)


def stage_on(
    store: MomentStore, foundation: Foundation, pilot: Mapping[str, Any], message: str = ""
) -> MomentStore:
    """Begin a staged lineage on a new foundation (such as vocabulary, policy and basis).

    Arguments and errors are those of `stage`. The caller must have written the vocabulary, if the
    foundation has one.
    """
    write_foundation(store.folder, foundation)
    store.folder.sync("")
    store = replace(store.writable(), format=raise_format(store.folder, foundation))

    def change(head: Commit) -> Commit:
        require_no_origins(head)
        if _bases(head) != _bases(store.commit):
            raise StoreError(
                f"the vocabulary or staged lineage of version {head.version} differs from that of "
                f"version {store.version}, for which this run began: another rebase, or new words, "
                "came in between; run this again"
            )
        names = foundation.names()
        lineage = replace(
            head.lineage,
            vocabulary=names["vocabulary"],
            basis=names["basis"],
            row_blocks=row_blocks_for(foundation),
            pilot=pilot,
            eras=(),
            halves=foundation.told_halves,
            halves_by_content=foundation.halves_by_content,
        )
        return head.successor("stage", message, staged=Staging(lineage))

    return store.extended(change)


def staged_store(store: MomentStore) -> MomentStore:
    """Return the staged lineage as a store that can be counted and read, but not changed."""
    staged = require_staged(store.commit)
    # Version -1 prevents commits: the next version would be 0, which exists.
    aside = replace(
        store.commit, version=-1, lineage=staged.lineage, segments=staged.segments, staged=None
    )
    return replace(store, commit=aside, foundation=read_foundation(store.folder, staged.lineage))


def stage_segment(
    store: MomentStore, segment: Segment, message: str = "", known: Ledger = Ledger({})
) -> MomentStore:
    """Commit a sealed segment to the staged lineage, and return the extended store.

    `known` is a part of the staged ledger that need not be read again. Raises ShardsAlreadyCounted
    if the staged lineage already counts shards of the segment. Raises ForeignStatistics if the
    segment was counted with another basis, and BoundExceeded if sums could exceed 2^62.
    """

    def change(head: Commit) -> Commit:
        staged = _staged_on(segment.basis, head)
        require_halves(segment, staged.lineage)
        ledger = read_ledger(store.folder, staged.segments, known)
        already = ledger.counted([record.url for record in segment.shards])
        if already:
            raise ShardsAlreadyCounted(already)
        segments = (*staged.segments, segment.reference)
        require_bound(segments)
        return head.successor("stage", message, staged=replace(staged, segments=segments))

    return store.extended(change, [segment.written])


def require_no_origins(commit: Commit) -> None:
    """Raise InvalidInput if a version includes documents of other stores."""
    if commit.origins:
        raise InvalidInput(
            f"the store holds documents of its origins {', '.join(commit.origins)}, and only these "
            "origins can count them again",
            "create a new store by {create} and one for each origin by {create.like}, count the "
            "documents there, and add these stores by {merge}",
        )


def adopt(
    store: MomentStore,
    left_out: Mapping[str, str] | None = None,
    message: str = "",
    known: Ledger = Ledger({}),
) -> MomentStore:
    """Replace the lineage of the store by the staged one, in one commit.

    Earlier versions keep their lineage, and remain readable. Raises LineageBehind if the staged
    lineage lacks shards that another writer has counted meanwhile. Raises LineageAstray if shards
    were forgotten or replaced meanwhile. The staged lineage must then be counted again. Raises
    ForeignStatistics if another lineage is staged now. Raises StoreError if no lineage is staged,
    or the store cannot be written.

    store : version with the staged lineage; the new commit follows the latest version
    left_out : shards of the store that the new lineage may lack, each with the reason
    known : a part of the staged ledger that need not be read again
    """
    spared = dict(left_out or {})
    mine = require_staged(store.commit).lineage.basis

    def change(head: Commit) -> Commit:
        staged = _staged_on(mine, head)
        here = {
            record.url: record.fingerprint
            for record in read_ledger(store.folder, head.segments, store.ledger(), head.sums)
        }
        there = {
            record.url: record.fingerprint
            for record in read_ledger(store.folder, staged.segments, known)
        }
        for url, mark in there.items():
            if here.get(url) != mark:
                raise LineageAstray(
                    f"{url} was forgotten or replaced while the new lineage was counted; run "
                    "`streaming-moments rebase` again, which begins from the start"
                )
        lacking = tuple(url for url in here if url not in there and url not in spared)
        if lacking:
            raise LineageBehind(lacking)
        skipped = tuple((url, reason) for url, reason in spared.items() if url not in there)
        return head.successor(
            "rebase",
            message,
            lineage=staged.lineage,
            segments=staged.segments,
            staged=None,
            skipped=skipped,
        )

    return store.extended(change)


def give_up(store: MomentStore, message: str = "") -> MomentStore:
    """Drop the staged lineage of the store.

    Raises ForeignStatistics if another lineage is staged now. Raises StoreError if none is staged,
    or the store cannot be written.
    """
    mine = require_staged(store.commit).lineage.basis

    def change(head: Commit) -> Commit:
        _staged_on(mine, head)
        return head.successor("stage", message, staged=None)

    return store.extended(change)


def require_staged(commit: Commit) -> Staging:
    """Return the staged lineage of a version; raise StoreError if it has none."""
    if commit.staged is None:
        raise StoreError(
            f"version {commit.version} has no staged lineage: it was adopted or dropped; run "
            "`streaming-moments rebase` again"
        )
    return commit.staged


def _staged_on(basis: str, head: Commit) -> Staging:
    """Return the staged lineage of a version; raise ForeignStatistics if it has another basis."""
    staged = require_staged(head)
    if staged.lineage.basis != basis:
        raise ForeignStatistics(
            f"the counted statistics have basis {short(basis)}, and the staged lineage has "
            f"{short(staged.lineage.basis)}: another rebase has begun; run this again"
        )
    return staged


def _bases(commit: Commit) -> list[tuple[object, ...]]:
    lineages = (
        [commit.lineage] if commit.staged is None else [commit.lineage, commit.staged.lineage]
    )
    return [foundation_of(lineage) for lineage in lineages]


def vocabulary_of(store: MomentStore, model: Model) -> Vocabulary:
    """Return the vocabulary of a model, which may come from an earlier lineage."""
    if model.vocabulary in ("", store.commit.lineage.vocabulary):
        return store.vocabulary
    return read_vocabulary(store.folder, model.vocabulary)[0]


def store_for(store: MomentStore, name: str, model: Model) -> MomentStore:
    """Return a version of the store that has the vocabulary of a model.

    This is the given version if it has the vocabulary of the model, otherwise the version that the
    model was fitted to.

    `name` is the name of the model, not a tag.
    """
    if model.vocabulary in ("", store.commit.lineage.vocabulary):
        return store
    return store.at(store.models[name].version)


def store_counting(store: MomentStore, name: str, model: Model) -> MomentStore:
    """Return a version of the store that counts the words of a model, and perhaps more words.

    This is the given version if its vocabulary begins with the words of the model, otherwise the
    result of `store_for`. The rows of the model's words come first, and the rows of added words
    after them.
    """
    if model.vocabulary in {era.vocabulary for era in store.commit.lineage.eras}:
        return store
    return store_for(store, name, model)


def states_compared(
    before: tuple[MomentStore, Model],
    after: tuple[MomentStore, Model],
    rule: MatchingRule = MatchingRule(),
) -> TopicMatching | None:
    """Match the topics, states or clusters of a model to those of a later model.

    Each model comes with a version of the store that contains it. Returns None if a model has no
    topics, states or clusters, or if only one of the models has clusters. Also returns None if the
    means of clusters, or columns that are not over words, have different lengths.
    """
    one, two = states_of(before[1]), states_of(after[1])
    if isinstance(one, Clusters) and isinstance(two, Clusters):
        alike = one.means.shape[1] == two.means.shape[1]
        return compare_clusters(one, two, rule) if alike else None
    if not isinstance(one, States) or not isinstance(two, States):
        return None
    columns = _on_same_words(before, after, one, two)
    return None if columns is None else compare_topics(*columns, rule)


def _on_same_words(
    before: tuple[MomentStore, Model], after: tuple[MomentStore, Model], one: States, two: States
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return columns (n, k) and (n, m) of two models, with rows for the same words in both.

    Returns None if the models have the same vocabulary, but columns of different lengths.
    """
    if before[1].vocabulary != after[1].vocabulary:
        words = vocabulary_of(*before), vocabulary_of(*after)
        return on_all_words(one.columns, words[0], two.columns, words[1])
    return (one.columns, two.columns) if len(one.columns) == len(two.columns) else None
