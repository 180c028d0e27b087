"""Forgetting: subtracts documents, as if they had never been counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commits import Commit, SegmentReference
from streaming_moments.storage.log.covering import Part, covered, parts_of
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.log.ledger import read_ledger
from streaming_moments.storage.segments.blocks import require_apart, sum_block
from streaming_moments.storage.segments.foundations import read_foundation
from streaming_moments.storage.store.changes import Recount, kept_segments, recounted
from streaming_moments.storage.store.store import MomentStore


def require_non_negative(
    folder: Folder, parts: Sequence[Part], layout: SegmentLayout, index: int
) -> None:
    """Raise InvalidInput if the sum of some segments is negative anywhere in a row block.

    Sums are negative if subtracted documents were never added. The error names the arrays with
    negative sums. At most two row blocks are in memory.
    """
    sum_block(folder, parts, layout, index).require_non_negative()


def commit_recount(
    store: MomentStore, recount: Recount, checked: Iterable[SegmentReference] = ()
) -> MomentStore:
    """Add and subtract segments in one commit, if the ledger and the counts permit it.

    Raises InvalidInput if a shard to subtract is not counted, or a count would become negative.
    Raises StoreError if a segment to drop is not in the latest version. Raises ShardsAlreadyCounted
    if added shards are counted already. Also raises the errors of `MomentStore.append`: StoreError,
    ForeignStatistics and BoundExceeded.

    store : store whose latest version the new commit follows
    recount : segments to add, subtract and drop
    checked : segments, including the subtracted ones, whose sum `require_non_negative` has
        accepted. If the latest version lacks some of them, or subtracts more, the sum is checked
        again.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.basis import Basis
    >>> from streaming_moments.statistics.counts.batch import CountBatch
    >>> from streaming_moments.statistics.counts.statistics import MomentStatistics
    >>> from streaming_moments.storage.log.ledger import ShardRecord
    >>> from streaming_moments.storage.shards import ShardFormat
    >>> from streaming_moments.statistics.counts.vocabulary import Vocabulary
    >>> vocabulary = Vocabulary(("law", "sea", "ship"), core=3)
    >>> basis = Basis(np.eye(3, 2, dtype=np.int8), 3, vocabulary.fingerprint)
    >>> store = MomentStore.create("memory://forgetting", vocabulary, None, basis, ShardFormat())
    >>> batch = CountBatch.from_csr([[2, 1, 0], [0, 1, 1]], vocabulary.fingerprint)
    >>> shard = ShardRecord("s3://corpus/1.txt", 20, "etag:d41d", documents=2, tokens=5)
    >>> statistics = MomentStatistics.of(batch, basis)
    >>> store = store.append_statistics(statistics, [shard])
    >>> segment = store.write_segment(statistics, [shard])
    >>> store = commit_recount(store, Recount("forget", "by request", removed=(segment,)))
    >>> store.load() == MomentStatistics.zero(basis), len(store.ledger())
    (True, 0)
    """
    sound = {(part.id, part.sign) for part in checked}

    def change(head: Commit) -> Commit:
        ledger = read_ledger(store.folder, head.segments, store.ledger(), head.sums)
        successor = recounted(head, recount, ledger)
        if recount.added:
            layout = _layout_at(store, head)
            require_apart(store.folder, parts_of(successor), layout, recount.added)
        taken = [part for part in recount.under(head.lineage).references if part.sign < 0]
        # Leave added segments out of the check: their counts could hide that documents are
        # subtracted that were never counted.
        rest = (*kept_segments(head, recount), *taken)
        away = any(part.sign < 0 for part in rest)
        if away and (taken or recount.dropped) and not _only_grown(rest, sound):
            layout = _layout_at(store, head)
            parts = covered(rest, head.sums)
            for index in range(layout.row_blocks):
                require_non_negative(store.folder, parts, layout, index)
        return successor

    return store.extended(change, recount.written)


def _layout_at(store: MomentStore, head: Commit) -> SegmentLayout:
    """Return the layout of a later version of the store, which may have more words."""
    lineage = head.lineage
    if lineage.basis == store.foundation.fingerprint:
        return store.layout
    return SegmentLayout(read_foundation(store.folder, lineage), lineage.row_blocks)


def _only_grown(references: Iterable[SegmentReference], sound: set[tuple[str, int]]) -> bool:
    """Whether a version has all segments in `sound`, and only adds the counts of others.

    The sum of the segments in `sound` is not negative, so the sum of the version is not either.
    """
    found = {(part.id, part.sign) for part in references}
    return bool(sound) and sound <= found and all(sign > 0 for _, sign in found - sound)
