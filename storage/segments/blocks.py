"""Blocks: reads the statistics of row blocks from segments, and sums them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, PiecesOverlap, StoreError
from streaming_moments.statistics.base import Foundation, Statistics, Totals
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sequences.pieces import JOINING_BYTES
from streaming_moments.storage.files.arrays import ArraySpec, StoredGroup, chunk_path
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.covering import Part, Summed, reference_of
from streaming_moments.storage.log.layout import SegmentLayout, segment_folder
from streaming_moments.storage.log.manifests import (
    FileRecord,
    read_files,
    read_folders,
    segment_manifests,
)
from streaming_moments.storage.segments.segments import Segment

_GROUP = "zarr.json"
# At most `_TOGETHER` segments are read at the same time. The total size of their files is at most
# `_SMALL` bytes, or the size of the row blocks that are read, whichever is larger.
_TOGETHER, _SMALL = 8, 1 << 20


def read_stored_blocks(
    folder: Folder,
    reference: SegmentReference,
    layout: SegmentLayout,
    indices: Sequence[int],
) -> tuple[Totals, list[dict[str, NDArray[np.int64]]]]:
    """Read the totals of one segment and, for each row block, its (1, ceil(n / B), ...) arrays.

    The arrays are padded. n is the number of rows counted in the segment, and B the number of row
    blocks. Files that several row blocks need are read once.
    """
    [(_, found)] = _read(folder, [reference], _Wanted(layout, indices))
    return found


def read_rows(
    folder: Folder, reference: SegmentReference, layout: SegmentLayout, name: str
) -> NDArray[np.int64]:
    """Read a whole array of a segment that has one number for each row; return its (n,) entries.

    n is the number of rows counted in the segment. Reads only the files of this array. Raises the
    errors of `read_stored_blocks`.
    """
    place = segment_folder(reference.id)
    where = f"{folder.url}/{place}"
    [manifest] = segment_manifests(folder, [reference])
    layout = layout.of_first(reference.words)
    spec, blocks = layout.specs[name], range(layout.row_blocks)
    paths = [_GROUP, f"{name}/{_GROUP}", *(chunk_path(name, spec, index) for index in blocks)]
    group = StoredGroup(read_files(folder, place, manifest.files, paths), where)
    stored = np.concatenate([group.chunk(name, spec, index) for index in blocks])
    rows = layout.foundation.rows if layout.rows is None else layout.rows
    return stored.T.ravel()[:rows]


def read_totals(folder: Folder, reference: SegmentReference, layout: SegmentLayout) -> Any:
    """Read the totals of one segment: its sums that do not depend on a row."""
    return read_stored_blocks(folder, reference, layout, ())[0]


def sum_totals(folder: Folder, parts: Iterable[Part], layout: SegmentLayout) -> Any:
    """Sum the totals of segments, subtract those of sign -1; raise the errors of `sum_blocks`."""
    total: Any = layout.foundation.totals({})
    for reference, (own, _) in _read(folder, parts, _Wanted(layout)):
        total = total + own if reference.sign > 0 else total - own
    return total


def sum_blocks(
    folder: Folder,
    parts: Iterable[Part],
    layout: SegmentLayout,
    indices: Sequence[int],
    kept: Foundation | None = None,
) -> list[Any]:
    """Sum the statistics of row blocks over segments, in place; subtract segments of sign -1.

    A segment that was counted with fewer rows (words) is added to the first rows only. If `kept` is
    a foundation with fewer arrays, other arrays are not read. All row blocks in `indices` are read
    together and are in memory at once. Small segments are read together, too. Raises StoreError if
    a file is missing, swapped, truncated or damaged. The error names it. Raises InvalidInput if
    more documents of a length are subtracted than added.
    """
    foundation = kept or layout.foundation
    blocks = [layout.block(index) for index in indices]
    shapes = [foundation.shapes(block) for block in blocks]
    totals: Any = foundation.totals({})
    sums: list[dict[str, NDArray[np.int64]]] = [{} for _ in blocks]
    wanted = _Wanted(layout, indices, shapes[0])
    for reference, (own, stored) in _read(folder, parts, wanted):
        totals = totals + own if reference.sign > 0 else totals - own
        for total, arrays, own_shapes in zip(sums, stored, shapes, strict=True):
            for name, shape in own_shapes.items():
                rows = arrays.pop(name)[0, : shape[0]]
                total[name] = _accumulated(total.get(name), rows, shape, reference.sign)
    for total, own_shapes in zip(sums, shapes, strict=True):
        for name, shape in own_shapes.items():
            if name not in total:  # only if there are no segments
                total[name] = np.zeros(shape, dtype=np.int64)
    return [
        foundation.statistics(block, totals, total)
        for block, total in zip(blocks, sums, strict=True)
    ]


def sum_block(folder: Folder, parts: Iterable[Part], layout: SegmentLayout, index: int) -> Any:
    """Sum the statistics of one row block, as `sum_blocks` does."""
    return sum_blocks(folder, parts, layout, [index])[0]


def read_blocks(
    folder: Folder,
    parts: Iterable[Part],
    layout: SegmentLayout,
    indices: Sequence[int],
    kept: Foundation | None = None,
) -> list[Any]:
    """Sum row blocks as `sum_blocks` does, and join records that are cut into pieces.

    The pieces of a record, such as a sequence, may be in several segments.
    """
    return [_joined(layout, one) for one in sum_blocks(folder, parts, layout, indices, kept)]


def whole_totals(folder: Folder, parts: Iterable[Part], layout: SegmentLayout) -> Any:
    """Return the totals of some segments, with pieces of records joined as in `read_blocks`."""
    foundation: Any = layout.foundation
    totals = sum_totals(folder, parts, layout)
    return foundation.totals_with_seams(totals) if foundation.joins else totals


def require_apart(
    folder: Folder,
    parts: Iterable[Part],
    layout: SegmentLayout,
    added: Iterable[Segment] = (),
) -> None:
    """Raise PiecesOverlap if segments hold overlapping pieces of one record (such as a sequence).

    The error names the records, where their pieces overlap, and the shards of the segments in
    `added`.
    """
    if layout.foundation.joins:
        try:
            sum_totals(folder, parts, layout).pieces.require_apart()
        except PiecesOverlap as overlap:
            urls = tuple(shard.url for segment in added for shard in segment.shards)
            raise PiecesOverlap(overlap.reason, urls) from None


def joining_bytes(references: Iterable[SegmentReference], layout: SegmentLayout) -> int:
    """Return how many bytes joining the pieces of records needs, in addition to a row block.

    The number is a bound, which takes each record for a piece to join.
    """
    pieces = sum(reference.documents for reference in references)
    return JOINING_BYTES * pieces if layout.foundation.joins else 0


def sum_all_rows(folder: Folder, parts: Sequence[Part], layout: SegmentLayout) -> Any:
    """Sum the statistics of all rows, with pieces of records joined, as `read_blocks` does.

    The memory holds all rows and one row block.
    """
    foundation = layout.foundation
    shapes = foundation.shapes(RowBlock())
    sums = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    totals: Any = foundation.totals({})
    for index in range(layout.row_blocks):
        block = sum_block(folder, parts, layout, index)
        totals = block.totals
        for name, array in block.arrays().items():
            sums[name][block.block.rows] = array
    return _joined(layout, foundation.statistics(RowBlock(), totals, sums))


def block_of(statistics: Statistics, layout: SegmentLayout, index: int) -> Any:
    """Return one row block of statistics that have all rows; both share the same memory.

    Raises InvalidInput if the statistics lack rows, and ForeignStatistics if the layout is for
    another foundation.
    """
    layout.foundation.require_own(statistics)
    if statistics.block.step != 1:
        raise InvalidInput(f"rows {statistics.block} are not all rows; write row blocks one by one")
    block = layout.block(index)
    arrays = {name: array[block.rows] for name, array in statistics.arrays().items()}
    return layout.foundation.statistics(block, statistics.totals, arrays)


def _joined(layout: SegmentLayout, statistics: Any) -> Any:
    foundation: Any = layout.foundation
    return foundation.with_seams(statistics) if foundation.joins else statistics


def _accumulated(
    total: NDArray[np.int64] | None, part: NDArray[np.int64], shape: tuple[int, ...], sign: int
) -> NDArray[np.int64]:
    """Add an array of a segment to the first rows of a sum, or subtract it if `sign` is -1.

    The sum cannot overflow, because commits refuse sums of 2^62 or more.
    """
    if total is None and sign > 0 and part.shape == shape:
        return part  # do not copy the first segment, because most sums are of one segment only
    if total is None:
        total = np.zeros(shape, dtype=np.int64)
    leading = total[: len(part)]
    (np.add if sign > 0 else np.subtract)(leading, part, out=leading)
    return total


@dataclass(frozen=True)
class _Wanted:
    """What to read of segments: the totals, and the row blocks `indices` of the arrays `names`.

    By default, all arrays are read.
    """

    layout: SegmentLayout
    indices: Sequence[int] = ()
    names: Collection[str] | None = None

    def files(
        self, folder: Folder, references: Iterable[SegmentReference]
    ) -> dict[str, StoredGroup]:
        """Read the files of all segments at the same time; return them by segment identifier.

        Memory was reserved for the size of the row blocks only. If the files of several segments
        are larger in total, returns an empty dict, so that the caller reads the segments one by
        one.
        """
        known = {reference.id: reference for reference in references}
        manifests = segment_manifests(folder, list(known.values()))
        chosen = [
            (segment_folder(reference.id), manifest.files, self._paths(reference, manifest.files))
            for reference, manifest in zip(known.values(), manifests, strict=True)
        ]
        size = sum(files[path].size for _, files, paths in chosen for path in paths)
        if len(chosen) > 1 and size > max(len(self.indices) * self.layout.block_bytes, _SMALL):
            return {}
        groups = zip(chosen, read_folders(folder, chosen), strict=True)
        found = (StoredGroup(files, f"{folder.url}/{name}") for (name, *_), files in groups)
        return dict(zip(known, found, strict=True))

    def decoded(
        self, reference: SegmentReference, group: StoredGroup
    ) -> tuple[Totals, list[dict[str, NDArray[np.int64]]]]:
        """Return totals and padded row blocks of a segment, as `read_stored_blocks` does."""
        layout, specs = self.layout.of_first(reference.words), self._specs(reference)
        blocks = [
            {array: group.chunk(array, spec, index) for array, spec in specs.items()}
            for index in self.indices
        ]
        tables = {array: group.whole(array) for array in self._tables(reference, group.files)}
        return layout.foundation.totals(tables, layout.rows), blocks

    def _paths(
        self, reference: SegmentReference, files: Mapping[str, FileRecord]
    ) -> tuple[str, ...]:
        specs = self._specs(reference)
        return (
            _GROUP,
            *(f"{array}/{_GROUP}" for array in specs),
            *(chunk_path(array, specs[array], index) for index in self.indices for array in specs),
            *itertools.chain.from_iterable(self._tables(reference, files).values()),
        )

    def _specs(self, reference: SegmentReference) -> dict[str, ArraySpec]:
        specs = self.layout.of_first(reference.words).specs if self.indices else {}
        return {name: specs[name] for name in specs if self.names is None or name in self.names}

    def _tables(self, reference: SegmentReference, files: Iterable[str]) -> dict[str, list[str]]:
        """Return the paths of a segment's arrays without rows (its totals), by array name."""
        specs = self.layout.of_first(reference.words).specs
        tables: dict[str, list[str]] = {}
        for path in files:
            name, inside, _ = path.partition("/")
            if inside and name not in specs:
                tables.setdefault(name, []).append(path)
        return tables


def _read(
    folder: Folder, parts: Iterable[Part], wanted: _Wanted
) -> Iterator[tuple[SegmentReference, tuple[Totals, list[dict[str, NDArray[np.int64]]]]]]:
    """Read segments and stored sums; if a sum is damaged or missing, read its segments instead.

    Several small parts are read at the same time, if the storage supports it.
    """
    # read segments to add before segments to subtract, because histograms of document lengths must
    # never be negative
    ordered = sorted(parts, key=lambda one: -reference_of(one).sign)
    for start in range(0, len(ordered), _TOGETHER):
        batch = ordered[start : start + _TOGETHER]
        together: dict[str, StoredGroup] = {}
        if len(batch) > 1:
            # if a segment is damaged, read each segment alone below, so that the error names it
            with contextlib.suppress(StoreError):
                together = wanted.files(folder, map(reference_of, batch))
        for part in batch:
            reference = reference_of(part)
            try:
                group = together or wanted.files(folder, [reference])
                found = wanted.decoded(reference, group[reference.id])
            except StoreError:
                if not isinstance(part, Summed):
                    raise
                yield from _read(folder, part.of, wanted)
                continue
            yield reference, found
