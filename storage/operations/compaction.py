"""Compaction: replaces segments of a store by their sum, or stores the sum in addition to them."""

from __future__ import annotations

from collections.abc import Sequence

from streaming_moments.errors import StoreError
from streaming_moments.storage.dates import Bucket
from streaming_moments.storage.log.commits import Commit, SegmentReference
from streaming_moments.storage.log.covering import Part, days_of
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.log.manifests import FileRecord
from streaming_moments.storage.segments.blocks import sum_blocks, sum_totals
from streaming_moments.storage.segments.segments import Segment, SegmentWriter
from streaming_moments.storage.store.changes import placed, require_bound
from streaming_moments.storage.store.store import MomentStore


class SegmentsChanged(StoreError):
    """A compaction summed segments, but the latest version lacks some of them."""


def write_sum(writer: SegmentWriter, sources: Sequence[Part], index: int) -> tuple[FileRecord, ...]:
    """Write one row block of the sum of segments, as `write_sums` does."""
    return write_sums(writer, sources, [index])


def write_sums(
    writer: SegmentWriter, sources: Sequence[Part], indices: Sequence[int]
) -> tuple[FileRecord, ...]:
    """Write row blocks of the sum of segments; return their file records, which `seal_sum` needs.

    Negative counts raise InvalidInput: the store is inconsistent, and `rollback` repairs it.
    """
    blocks = sum_blocks(writer.folder, sources, writer.layout, indices)
    for block in blocks:
        block.require_non_negative()
    return writer.write_blocks(blocks)


def compaction_groups(
    references: Sequence[SegmentReference], ledger: Ledger, by: Bucket = "day"
) -> tuple[tuple[SegmentReference, ...], ...]:
    """Return groups of segments; a compaction replaces each group by its sum.

    Groups of one segment are left out.

    Segments of the same day, month or year form a group. All segments without dates form one group.
    A segment that subtracts shards is in one group with all segments that count these shards, even
    if they are of other days. Segments of different vocabularies are never added up. Segments of
    origins stay unchanged, so that a later pull can replace them.

    references : segments of a version
    by : {"day", "month", "year", "all"}, period of a group; "all" makes one segment of all
        documents
    """
    mine = [part for part in references if part.origin is None]
    eras = {part.words: [own for own in mine if own.words == part.words] for part in mine}
    return tuple(group for era in eras.values() for group in _groups_of_era(era, ledger, by))


def _groups_of_era(
    references: Sequence[SegmentReference], ledger: Ledger, by: Bucket
) -> tuple[tuple[SegmentReference, ...], ...]:
    keys = [None if part.dates is None else part.dates.bucket(by) for part in references]
    groups: dict[object, list[SegmentReference]] = {}
    for key, part in zip(keys, references, strict=True):
        groups.setdefault("all" if by == "all" else key, []).append(part)
    merged = _joined_by_subtraction(list(groups.values()), references, ledger)
    return tuple(tuple(group) for group in merged if len(group) > 1)


def linked_groups(
    references: Sequence[SegmentReference], ledger: Ledger
) -> tuple[tuple[SegmentReference, ...], ...]:
    """Group each segment of a version with the segments that subtract some of its shards."""
    eras: dict[object, list[list[SegmentReference]]] = {}
    for part in references:
        eras.setdefault((part.words, part.origin), []).append([part])
    return tuple(
        tuple(group)
        for era in eras.values()
        for group in _joined_by_subtraction(era, [part for [part] in era], ledger)
    )


def _joined_by_subtraction(
    merged: list[list[SegmentReference]], references: Sequence[SegmentReference], ledger: Ledger
) -> list[list[SegmentReference]]:
    """Join groups of segments if one segment subtracts shards that several groups count."""
    takers = {
        part.id: set(ledger.tables[part.id]["url"].to_pylist())
        for part in references
        if part.sign < 0
    }
    if not takers:
        return merged
    away = set().union(*takers.values())
    # look up the URLs of a segment once, because there may be many segments and many URLs
    held = {part.id: ledger.held(part.id, away) for part in references if part.sign > 0}
    for taken in (part for part in references if part.sign < 0):
        urls = takers[taken.id]
        apart = [
            group
            for group in merged
            if taken in group
            or any(part.sign > 0 and not held[part.id].isdisjoint(urls) for part in group)
        ]
        merged = [group for group in merged if group not in apart]
        merged.append([part for group in apart for part in group])
    return merged


def seal_sum(
    store: MomentStore,
    writer: SegmentWriter,
    files: Sequence[FileRecord],
    sources: Sequence[SegmentReference] | None = None,
    ledger: Ledger | None = None,
) -> Segment:
    """Return the sum of the segments `sources` as a new segment, together with their ledger.

    By default, all segments of the version are summed.

    Pass `ledger`, the ledger of the summed segments, if the version lacks some of them. Raises
    StoreError if a row block is missing.
    """
    summed = store.commit.segments if sources is None else sources
    dates = days_of(summed)
    totals = sum_totals(store.folder, summed, writer.layout)
    own = store.ledger() if ledger is None else ledger
    return writer.seal(totals, list(own.of_segments(summed)), files, dates)


def commit_compaction(
    store: MomentStore,
    sources: Sequence[SegmentReference],
    segment: Segment | None,
    message: str = "",
) -> MomentStore:
    """Replace segments by their sum in the latest version, which another writer may have made.

    Raises SegmentsChanged if the latest version lacks some of the segments. Raises StoreError if
    the store cannot be written.

    store : store whose latest version the new commit follows
    sources : the summed segments
    segment : their sum; None if it counts no shard
    """
    written = () if segment is None else (segment.written,)

    def change(head: Commit) -> Commit:
        segments = with_sum(head, sources, segment)
        return head.successor("compact", message, segments=segments)

    return store.extended(change, written)


def with_sum(
    head: Commit, sources: Sequence[SegmentReference], segment: Segment | None
) -> tuple[SegmentReference, ...]:
    """Return the segments of a version, with `sources` replaced by their sum, `segment`.

    Raises SegmentsChanged if the version lacks some of the sources.
    """
    replaced = {(part.id, part.sign) for part in sources}
    present = {(part.id, part.sign) for part in head.segments}
    if not replaced or not replaced <= present:
        raise SegmentsChanged(
            f"version {head.version} lacks some of the {len(replaced)} summed segments, as "
            "another writer has rolled back or compacted the store; run the command again"
        )
    summed = () if segment is None else (placed(head.lineage, segment).reference,)
    kept = [part for part in head.segments if (part.id, part.sign) not in replaced]
    require_bound([*summed, *kept])
    return (*summed, *kept)
