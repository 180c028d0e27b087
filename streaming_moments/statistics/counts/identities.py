"""Identities between the sums of word counts, valid for any documents.

All statistics of documents satisfy them, so a store can detect damage that hashes do not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.statistics import SIGNED
from streaming_moments.statistics.row_block import RowBlock

# Number of random vectors with which the symmetry of a matrix is checked. Each of them misses an
# asymmetry with a probability below 2^-32.
_PROBES = 4
_SEED = 2018


def broken_identities(
    basis: Basis,
    shapes: Callable[[RowBlock], Mapping[str, tuple[int, ...]]],
    blocks: Iterable[tuple[RowBlock, Arrays]],
    lengths: LengthHistogram,
) -> Iterator[tuple[RowBlock | None, str]]:
    """Yield each identity that is violated, with its row block, or with None for all blocks.

    `shapes` returns the shape of each row array of a block, without the padding. `blocks` are all
    row blocks with their int64 arrays, padded to the number of rows of the longest block.
    """
    sums = _Sums.of(basis)
    for block, arrays in blocks:
        for problem in _block_problems(basis, shapes(block), block, arrays):
            yield block, problem
        sums.add(block, arrays)
    for problem in sums.problems(lengths):
        yield None, problem


def _block_problems(
    basis: Basis, shapes: Mapping[str, tuple[int, ...]], block: RowBlock, arrays: Arrays
) -> Iterator[str]:
    for name, shape in shapes.items():
        array = arrays[name]
        if array[shape[0] :].any():
            yield f"the padding of {name} is not zero"
        if name not in SIGNED and array.size and array.min() < 0:
            yield f"{name} has counts below zero"
    rows, core_rows = block.size(basis.n_words), block.size(basis.core)
    words, documents = arrays["word_counts"][:rows], arrays["document_frequencies"][:rows]
    if (documents > words).any() or ((documents == 0) & (words > 0)).any():
        yield "document_frequencies do not fit word_counts"
    absent = words == 0
    if "weighted_counts" in arrays:
        weighted = arrays["weighted_counts"][:rows]
        if (weighted < words).any() or weighted[absent].any():
            yield "weighted_counts do not fit word_counts"
    for name in ("pair_counts", "triple_sketch"):
        if arrays[name][:rows][absent].any():
            yield f"{name} is not zero for words that never occurred"
    own = np.arange(core_rows)
    for name in ("pair_counts", "even_pair_counts"):
        # a document with x tokens of a word has x (x - 1) ordered pairs of the word with itself, an
        # even number
        if name in arrays and (arrays[name][own, own * block.step + block.index] & 1).any():
            yield f"the diagonal of {name} is not even"
    if "even_pair_counts" in arrays and (arrays["even_pair_counts"] > arrays["pair_counts"]).any():
        yield "even_pair_counts has more than pair_counts"
    if "codocuments" in arrays:
        together = arrays["codocuments"][:core_rows]
        if (together[own, own * block.step + block.index] != documents[:core_rows]).any():
            yield "the diagonal of codocuments is not document_frequencies"


@dataclass
class _Sums:
    """Sums over row blocks, from which the identities of a segment are checked.

    The pair counts P of the core words are symmetric. This is checked by r' P q = q' P r for random
    vectors r and q, so that no (core, core) matrix is needed. This identity and that of the triple
    sketch are exact, because they are computed in integers modulo 2^64.
    """

    basis: Basis
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    cubes: NDArray[np.int64]
    words: int = 0
    weighted: int = 0
    pairs: int = 0
    skew: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of(cls, basis: Basis) -> _Sums:
        rng = np.random.default_rng(_SEED)
        shape, limits = (basis.core, _PROBES), np.iinfo(np.int64)
        left = rng.integers(limits.min, limits.max, shape, dtype=np.int64)
        right = rng.integers(limits.min, limits.max, shape, dtype=np.int64)
        return cls(basis, left, right, np.zeros((basis.columns, basis.packed), dtype=np.int64))

    def add(self, block: RowBlock, arrays: Arrays) -> None:
        rows = block.size(self.basis.core)
        self.words += sum(arrays["word_counts"].tolist())
        self.weighted += sum(arrays.get("weighted_counts", arrays["word_counts"]).tolist())
        self.pairs += sum(arrays["pair_counts"].sum(axis=1).tolist())
        left, right = self.left[block.rows], self.right[block.rows]
        for name in ("pair_counts", "even_pair_counts", "codocuments"):
            if name in arrays:
                inner = arrays[name][:rows]
                skew = (left * (inner @ self.right) - right * (inner @ self.left)).sum(axis=0)
                self.skew[name] = self.skew.get(name, 0) + skew
        own = self.basis.matrix[block.rows].astype(np.int64)
        self.cubes += own.T @ arrays["triple_sketch"][:rows]

    def problems(self, lengths: LengthHistogram) -> Iterator[str]:
        basis = self.basis
        if self.words != lengths.n_tokens:
            yield f"word_counts add up to {self.words}, the lengths to {lengths.n_tokens} tokens"
        if not self.basis.weights.is_pooled and self.weighted != lengths.C1:
            yield f"weighted_counts add up to {self.weighted}, the lengths to C1 = {lengths.C1}"
        if self.pairs > lengths.C2 or (basis.core == basis.n_words and self.pairs != lengths.C2):
            yield f"pair_counts add up to {self.pairs}, the lengths to C2 = {lengths.C2}"
        for name, skew in self.skew.items():
            if skew.any():
                yield f"{name} is not symmetric inside the core"
        # sum_i Q_ia (T_i)_bc = sum_d y_a y_b y_c must not depend on the order of a, b and c
        rows, columns = np.triu_indices(basis.columns)
        cubes = np.empty((basis.columns,) * 3, dtype=np.int64)
        cubes[:, rows, columns] = cubes[:, columns, rows] = self.cubes
        if (cubes != cubes.transpose(1, 0, 2)).any():
            yield "triple_sketch is not the sketch of a symmetric tensor"
