"""Blocks: statistics of a row block read back from segments, and summed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.basis import Basis
from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.lengths import LengthHistogram
from streaming_moments.row_lengths import RowLengths
from streaming_moments.rows import RowBlock
from streaming_moments.statistics import MomentStatistics, statistic_shapes
from streaming_moments.storage.arrays import array_in, decode
from streaming_moments.storage.folders import Folder
from streaming_moments.storage.layout import HISTOGRAM, SegmentLayout, segment_folder
from streaming_moments.storage.manifests import read_files, segment_manifests
from streaming_moments.storage.versions import SegmentReference

_GROUP = "zarr.json"


def read_stored_block(
    folder: Folder, reference: SegmentReference, layout: SegmentLayout, index: int
) -> tuple[LengthHistogram, dict[str, NDArray[np.int64]]]:
    """Histogram and (1, ceil(n / B), ...) arrays of a row block of one segment, with the padding.

    n is the number of words that were counted in the segment.

    Raises
    ------
    StoreError
        A file is missing, swapped, cut off or damaged: names it.
    """
    name = segment_folder(reference.id)
    where = f"{folder.url}/{name}"
    [manifest] = segment_manifests(folder, [reference])
    layout = layout.of_first(reference.words)
    specs = layout.specs
    paths = [
        _GROUP,
        *(f"{array}/zarr.json" for array in specs),
        *layout.chunks(index),
        *(path for path in manifest.files if path.startswith(f"{HISTOGRAM}/")),
    ]
    group = decode(read_files(folder, name, manifest.files, paths), where)
    arrays: dict[str, NDArray[np.int64]] = {}
    for array, spec in specs.items():
        stored = array_in(group, array, where)
        found = (stored.shape, stored.chunks, str(stored.dtype))
        if found != (spec.shape, spec.chunks, spec.dtype):
            raise StoreError(
                f"{where}/{array} is {stored.shape} of {stored.dtype} instead of {spec.shape} of "
                "int64; restore it from a copy"
            )
        arrays[array] = _entries(stored, slice(index, index + 1), f"{where}/{array}")
    table = array_in(group, HISTOGRAM, where)
    return LengthHistogram.from_array(_entries(table, slice(None), f"{where}/{HISTOGRAM}")), arrays


def read_histogram(folder: Folder, reference: SegmentReference) -> LengthHistogram:
    """Length histogram of one segment.

    Raises
    ------
    StoreError
        A file is missing or damaged: names it.
    """
    name = segment_folder(reference.id)
    where = f"{folder.url}/{name}"
    [manifest] = segment_manifests(folder, [reference])
    files = manifest.files
    paths = [_GROUP, *(path for path in files if path.startswith(f"{HISTOGRAM}/"))]
    group = decode(read_files(folder, name, files, paths), where)
    table = array_in(group, HISTOGRAM, where)
    return LengthHistogram.from_array(_entries(table, slice(None), f"{where}/{HISTOGRAM}"))


def sum_lengths(
    folder: Folder, references: Iterable[SegmentReference]
) -> RowLengths[LengthHistogram]:
    """Lengths of the documents of some segments, each with its sign; errors as `sum_block`."""
    total = RowLengths(LengthHistogram.zero())
    for reference in _added_first(references):
        own = RowLengths.of_first(read_histogram(folder, reference), reference.words)
        total = total + own if reference.sign > 0 else total - own
    return total


def sum_block(
    folder: Folder, references: Iterable[SegmentReference], layout: SegmentLayout, index: int
) -> MomentStatistics:
    """Statistics of a row block, summed over segments in place, each with its sign.

    A segment of fewer words adds to the leading rows alone.

    Raises
    ------
    StoreError
        A file is missing, swapped, cut off or damaged: names it.
    InvalidInput
        More documents of a length are taken away than were added.
    """
    block = layout.block(index)
    lengths = RowLengths(LengthHistogram.zero())
    shapes = statistic_shapes(layout.basis, block, layout.codocuments)
    totals: dict[str, NDArray[np.int64]] = {}
    for reference in _added_first(references):
        stored, arrays = read_stored_block(folder, reference, layout, index)
        added, words = reference.sign > 0, layout.of_first(reference.words).words
        own = RowLengths.of_first(stored, words)
        lengths = lengths + own if added else lengths - own
        for name, shape in shapes.items():
            part = arrays.pop(name)[0, : shape[0]]
            totals[name] = _accumulated(totals.get(name), part, shape, reference.sign)
    if not totals:
        totals = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    return _statistics(layout.basis, block, lengths, totals)


def sum_all_rows(
    folder: Folder, references: Sequence[SegmentReference], layout: SegmentLayout
) -> MomentStatistics:
    """Statistics of all rows, summed over segments; holds them once, and one block.

    Raises
    ------
    StoreError
        A file is missing, swapped, cut off or damaged: names it.
    """
    shapes = statistic_shapes(layout.basis, RowBlock(), layout.codocuments)
    totals = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    lengths = RowLengths(LengthHistogram.zero())
    for index in range(layout.row_blocks):
        part = sum_block(folder, references, layout, index)
        lengths = part.row_lengths
        for name, array in part.arrays().items():
            totals[name][part.block.rows] = array
    return _statistics(layout.basis, RowBlock(), lengths, totals)


def block_of(statistics: MomentStatistics, layout: SegmentLayout, index: int) -> MomentStatistics:
    """Row block of the statistics of all rows, sharing their memory.

    Raises
    ------
    InvalidInput
        The statistics are not of all rows.
    """
    if statistics.block.step != 1:
        raise InvalidInput(f"rows {statistics.block} are not all rows; write blocks one by one")
    block = layout.block(index)
    arrays = {name: array[block.rows] for name, array in statistics.arrays().items()}
    return _statistics(layout.basis, block, statistics.row_lengths, arrays)


def _statistics(
    basis: Basis,
    block: RowBlock,
    lengths: RowLengths[LengthHistogram],
    arrays: Mapping[str, NDArray[np.int64]],
) -> MomentStatistics:
    return MomentStatistics(
        basis,
        block,
        lengths.whole,
        arrays["word_counts"],
        arrays["document_frequencies"],
        arrays["pair_counts"],
        arrays["triple_sketch"],
        arrays.get("codocuments"),
        lengths.later,
    )


def _accumulated(
    total: NDArray[np.int64] | None, part: NDArray[np.int64], shape: tuple[int, ...], sign: int
) -> NDArray[np.int64]:
    """A sum and what a segment has of its leading rows; the commit's bound keeps it below 2^62."""
    if total is None and sign > 0 and part.shape == shape:
        return part  # most sums are of one segment
    if total is None:
        total = np.zeros(shape, dtype=np.int64)
    leading = total[: len(part)]
    (np.add if sign > 0 else np.subtract)(leading, part, out=leading)
    return total


def _added_first(references: Iterable[SegmentReference]) -> list[SegmentReference]:
    # a histogram holds no numbers below zero on the way either
    return sorted(references, key=lambda reference: -reference.sign)


def _entries(array: Any, selection: slice, where: str) -> NDArray[np.int64]:
    try:
        entries: NDArray[np.int64] = np.asarray(array[selection])
    except (ValueError, RuntimeError) as error:
        raise StoreError(f"{where} cannot be decoded ({error}); restore it from a copy") from error
    return entries
