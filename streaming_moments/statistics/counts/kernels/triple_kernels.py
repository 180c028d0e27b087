"""Numba kernels of the triple sketch: `T_i += sum_d x_di y_d y_d'`, nearly all work of a pass.

Here x_di is the count of word i in document d, and y_d is the projection of the document's counts.
Like all `kernels` they are serial, run without the interpreter lock, and add to arrays of the
caller.

The sum over one word's documents is a small product of matrices with s = 10 to 150 columns. A BLAS
computes both triangles of it, and its packing and calls cost as much again at this size. So the
upper triangle is computed here in *tiles* that stay in the vector registers while documents are
added. A tile has 8 rows and 16 columns of T_i (4 and 8 without AVX-512). Numba cannot do this from
loops over scalars, and its vectorised loops use half the width of the registers, so the tile is
written as vector code.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.statistics.counts.kernels.prefetch import prefetching

# Number of floats in a vector, and of rows in a tile. With this number, a tile has enough sums to
# hide the latency of an addition, and few enough to fit in the registers.
_LANES = 8 if llvmlite.binding.get_host_cpu_features().get("avx512f", False) else 4
# Number of documents whose projections y are copied into a panel at a time. The panel and the sums
# then stay in the L1 cache for s up to 64.
_GATHER = 48
# Projections y are prefetched this many documents before their use. Those of a large batch do not
# fit in the L2 cache. Without prefetching, kernels waited for them for up to a third of the time.
_AHEAD = 24


def _tile(vectors: int) -> Any:
    """Make an intrinsic that adds a tile of `panel' diag(weights) panel` to `sums`.

    The panel has a row for each of `filled` documents. The tile has _LANES rows from `row` on and
    `vectors * _LANES` columns from `column` on.
    """
    lanes = ir.VectorType(ir.DoubleType(), _LANES)
    first_lane = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)

    def add(
        typing: Any, panel: Any, weights: Any, filled: Any, row: Any, column: Any, sums: Any
    ) -> Any:
        return types.void(panel, weights, filled, row, column, sums), generate

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        panel, weights, sums = (
            context.make_array(signature.args[place])(context, builder, values[place])
            for place in (0, 1, 5)
        )
        filled, row, column = values[2:5]
        width = cgutils.unpack_tuple(builder, panel.shape)[1]

        def at(array: Any, begin: Any, plus: int) -> Any:
            index = builder.add(begin, ir.Constant(begin.type, plus))
            return builder.gep(array.data, [index])

        def vector_at(array: Any, begin: Any, number: int) -> Any:
            return builder.bitcast(at(array, begin, number * _LANES), lanes.as_pointer())

        def in_all_lanes(number: Any) -> Any:
            unset = ir.Constant(lanes, ir.Undefined)
            one = builder.insert_element(unset, number, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, unset, first_lane)

        zero = ir.Constant(lanes, [0.0] * _LANES)
        tile = [
            [cgutils.alloca_once_value(builder, zero) for _ in range(vectors)]
            for _ in range(_LANES)
        ]
        with cgutils.for_range(builder, filled) as loop:
            document = builder.mul(loop.index, width)
            weight = in_all_lanes(builder.load(at(weights, loop.index, 0)))
            begin = builder.add(document, column)
            weighted = [
                builder.fmul(weight, builder.load(vector_at(panel, begin, number), align=8))
                for number in range(vectors)
            ]
            begin = builder.add(document, row)
            for one in range(_LANES):
                y = in_all_lanes(builder.load(at(panel, begin, one)))
                for cell, right in zip(tile[one], weighted, strict=True):
                    # numbers are whole and below 2^53, so a fused multiply-add gives the same sum
                    product = builder.fmul(y, right, flags=("contract",))
                    total = builder.fadd(product, builder.load(cell), flags=("contract",))
                    builder.store(total, cell)
        for one in range(_LANES):
            begin = builder.add(row, ir.Constant(row.type, one))
            begin = builder.add(builder.mul(begin, width), column)
            for number, cell in enumerate(tile[one]):
                place = vector_at(sums, begin, number)
                total = builder.fadd(builder.load(place, align=8), builder.load(cell))
                builder.store(total, place, align=8)
        return context.get_dummy_value()

    return intrinsic(add)


_add_wide_tile, _add_narrow_tile = _tile(2), _tile(1)
_prefetch = prefetching(lines=4)


def add_triples(
    first: int,
    step: int,
    starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    values: NDArray[np.int32],
    projections: NDArray[np.float32],
    long: NDArray[np.bool_],
    triples: NDArray[np.int64],
) -> None:
    """`T_i += sum_d x_di y_d y_d'` over the documents that are not in `long`, as packed triangles.

    Handles one word after another: the y of the documents with word i are gathered and multiplied
    in the cache, because the sparse product `X' (y (x) y)` is limited by memory. The caller ensures
    that every partial sum is below 2^53, so float64 is exact.
    """
    padded = -(-projections.shape[1] // _LANES) * _LANES
    panel, sums = _aligned(_GATHER, padded), _aligned(padded, padded)
    _add_triples(
        first,
        step,
        starts,
        documents,
        values,
        projections,
        long,
        panel,
        np.zeros(_GATHER),
        sums,
        triples,
    )


def _aligned(rows: int, columns: int) -> NDArray[np.float64]:
    """Return zeros aligned to 64 bytes, because vectors that cross two cache lines are slower."""
    numbers = np.zeros(rows * columns + 8)
    begin = -numbers.ctypes.data % 64 // 8
    return numbers[begin : begin + rows * columns].reshape(rows, columns)


@kernel()
def _add_triples(
    first: int,
    step: int,
    starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    values: NDArray[np.int32],
    projections: NDArray[np.float32],
    long: NDArray[np.bool_],
    panel: NDArray[np.float64],
    weights: NDArray[np.float64],
    sums: NDArray[np.float64],
    triples: NDArray[np.int64],
) -> None:
    columns, padded = projections.shape[1], sums.shape[1]
    last = documents.size - 1
    for row in range(triples.shape[0]):
        entry, stop = starts[first + row * step], starts[first + row * step + 1]
        if entry == stop:
            continue
        sums[:] = 0
        while entry < stop:
            filled = 0
            while entry < stop and filled < _GATHER:
                document = documents[entry]
                _prefetch(projections, np.int64(documents[min(entry + _AHEAD, last)]) * columns)
                if not long[document]:
                    for column in range(columns):
                        panel[filled, column] = projections[document, column]
                    weights[filled] = values[entry]
                    filled += 1
                entry += 1
            for top in range(0, padded, _LANES):
                left = top
                while left + 2 * _LANES <= padded:
                    _add_wide_tile(panel, weights, filled, top, left, sums)
                    left += 2 * _LANES
                if left < padded:
                    _add_narrow_tile(panel, weights, filled, top, left, sums)
        place = 0
        for one in range(columns):
            for two in range(one, columns):
                triples[row, place] += np.int64(sums[one, two])
                place += 1


@kernel()
def add_long_triples(
    first: int,
    step: int,
    starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    values: NDArray[np.int32],
    projections: NDArray[np.float32],
    long: NDArray[np.bool_],
    triples: NDArray[np.int64],
) -> None:
    """Do the same as `add_triples` for documents in `long`, in int64 arithmetic.

    Float64 would not be exact for these documents; int64 sums are exact below 2^62.
    """
    columns = projections.shape[1]
    for row in range(triples.shape[0]):
        word = first + row * step
        for entry in range(starts[word], starts[word + 1]):
            if not long[documents[entry]]:
                continue
            y = projections[documents[entry]]
            place = 0
            for one in range(columns):
                scaled = np.int64(values[entry]) * np.int64(y[one])
                for two in range(one, columns):
                    triples[row, place] += scaled * np.int64(y[two])
                    place += 1
