"""Compaction: many segments replaced by their sum."""

from __future__ import annotations

from collections.abc import Sequence

from streaming_moments.errors import StoreError
from streaming_moments.storage.blocks import sum_block
from streaming_moments.storage.changes import require_basis, require_bound
from streaming_moments.storage.layout import segment_folder
from streaming_moments.storage.manifests import FileRecord
from streaming_moments.storage.segments import Segment, SegmentWriter
from streaming_moments.storage.store import MomentStore
from streaming_moments.storage.versions import Commit, SegmentReference


def write_sum(
    writer: SegmentWriter, sources: Sequence[SegmentReference], index: int
) -> tuple[FileRecord, ...]:
    """Write one row block of the sum of segments, and return what `seal_sum` is to be told.

    Raises
    ------
    StoreError
        A file is missing, damaged or cannot be written: names it.
    InvalidInput
        The sum has counts below zero: the store is unsound, and `rollback` leads back.
    """
    block = sum_block(writer.folder, sources, writer.layout, index)
    block.require_non_negative()
    return writer.write_block(block)


def seal_sum(store: MomentStore, writer: SegmentWriter, files: Sequence[FileRecord]) -> Segment:
    """Seal the sum of all segments of a version; its ledger is that of the version.

    Raises
    ------
    StoreError
        A row block is missing.
    """
    return writer.seal(store.length_histogram(), list(store.ledger()), files)


def commit_compaction(
    store: MomentStore,
    sources: Sequence[SegmentReference],
    segment: Segment | None,
    message: str = "",
) -> MomentStore:
    """Replace segments by their sum; what was committed since stays as it is.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    sources : sequence of SegmentReference
        The segments that were summed.
    segment : Segment or None
        Their sum; None if it counts no shard.
    message : str
        For the log.

    Raises
    ------
    StoreError
        The latest version has not all of the segments, or the store cannot be written.
    """
    replaced = {(part.id, part.sign) for part in sources}
    summed = () if segment is None else (segment.reference,)

    def change(head: Commit) -> Commit:
        present = {(part.id, part.sign) for part in head.segments}
        if not replaced or not replaced <= present:
            raise StoreError(
                f"version {head.version} has not all of the {len(replaced)} segments that were "
                "summed: another writer went back to an older version or compacted first; run "
                "compact again"
            )
        require_basis(head, () if segment is None else (segment,))
        kept = [part for part in head.segments if (part.id, part.sign) not in replaced]
        require_bound([*summed, *kept])
        return head.successor("compact", message, segments=(*summed, *kept))

    written = [segment_folder(reference.id) for reference in summed]
    return store.extended(change, written)
