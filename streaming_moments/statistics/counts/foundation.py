"""CountsFoundation: the basis on which words in documents are counted, and what holds of the sums.

The identities are those of `MomentStatistics`: any integers that are statistics of documents keep
them, so that a store can tell damage that no hash tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, short
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths import LengthHistogram
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.statistics.counts.row_lengths import RowLengths
from streaming_moments.statistics.counts.statistics import MomentStatistics, statistic_shapes
from streaming_moments.statistics.row_block import RowBlock

_HISTOGRAM = "length_histogram"
_PROBES = 4  # random vectors; an asymmetry escapes one of them with a chance below 2^-32
_SEED = 2018

Arrays = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class CountsFoundation:
    """What statistics of words in documents are gathered on, a `Foundation`.

    Parameters
    ----------
    basis : Basis
        Q, with the fingerprint of its vocabulary.
    codocuments : bool
        Whether co-document counts are gathered.

    Examples
    --------
    >>> foundation = CountsFoundation(Basis(np.eye(4, 2, dtype=np.int8), 6), codocuments=False)
    >>> foundation.shapes(RowBlock(1, 2))["pair_counts"], foundation.rows
    ((3, 4), 6)
    """

    basis: Basis
    codocuments: bool
    kind: ClassVar[str] = "counts"

    @property
    def fingerprint(self) -> str:
        """That of the basis."""
        return self.basis.fingerprint

    @property
    def rows(self) -> int:
        """Words n."""
        return self.basis.n_words

    def parts(self) -> tuple[dict[str, NDArray[np.int8]], dict[str, Any]]:
        """Q, and the attributes of the basis."""
        return {"Q": self.basis.matrix}, {
            "n_words": self.basis.n_words,
            "vocabulary": self.basis.vocabulary,
        }

    @classmethod
    def from_parts(
        cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]
    ) -> CountsFoundation:
        """The foundation of `parts`, and of whether co-document counts are kept.

        Raises
        ------
        KeyError, InvalidInput
            They describe no basis.
        """
        words, vocabulary = int(attributes["n_words"]), str(attributes["vocabulary"])
        return cls(Basis(arrays["Q"], words, vocabulary), bool(attributes["codocuments"]))

    def names(self) -> dict[str, str]:
        """Fingerprints of basis and vocabulary."""
        return {"basis": self.basis.fingerprint, "vocabulary": self.basis.vocabulary}

    def shapes(self, block: RowBlock, rows: int | None = None) -> dict[str, tuple[int, ...]]:
        """Shape of each row array of a block by name; maybe of the first so many words only."""
        return statistic_shapes(self.basis, block, self.codocuments, rows)

    def compresses(self, name: str) -> bool:
        """Whether an array's bytes are worth compressing: the sketch is noise to a compressor."""
        return name != "triple_sketch"

    def totals(self, tables: Arrays, rows: int | None = None) -> RowLengths[LengthHistogram]:
        """Lengths of the documents, of which the first so many words were counted."""
        words = None if rows == self.rows else rows
        table = tables.get(_HISTOGRAM, np.empty((0, 2), dtype=np.int64))
        return RowLengths.of_first(LengthHistogram.from_array(table), words)

    def statistics(
        self, block: RowBlock, totals: RowLengths[LengthHistogram], arrays: Arrays
    ) -> MomentStatistics:
        """The statistics whose arrays were read back."""
        return MomentStatistics(
            self.basis,
            block,
            totals.whole,
            arrays["word_counts"],
            arrays["document_frequencies"],
            arrays["pair_counts"],
            arrays["triple_sketch"],
            arrays.get("codocuments"),
            totals.later,
        )

    def of(
        self, batches: Iterable[ProjectedBatch], block: RowBlock = RowBlock()
    ) -> MomentStatistics:
        """The statistics of projected batches; zero without any."""
        return MomentStatistics.of_projected(batches, self.basis, block, self.codocuments)

    def require_own(self, statistics: MomentStatistics) -> None:
        """Refuse statistics of another basis, of fewer words, or with other arrays.

        Raises
        ------
        ForeignStatistics
            Names what differs.
        """
        if statistics.basis != self.basis:
            raise ForeignStatistics(
                f"the statistics are of basis {short(statistics.basis.fingerprint)}, the store "
                f"of {short(self.basis.fingerprint)}; gather them with the store's basis"
            )
        if statistics.later:
            raise ForeignStatistics(
                f"the statistics hold documents that count fewer than all {self.basis.n_words} "
                "words; write the documents of each vocabulary into a segment of their own"
            )
        if (statistics.codocuments is not None) != self.codocuments:
            raise ForeignStatistics(
                f"co-document counts are {'' if self.codocuments else 'not '}kept in the store; "
                f"gather the statistics with codocuments={self.codocuments}"
            )

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: RowLengths[LengthHistogram]
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Identities that stored statistics break, each with its row block or None for all."""
        sums = _Sums.of(self.basis)
        for block, arrays in blocks:
            for problem in self._block_problems(block, arrays):
                yield block, problem
            sums.add(block, arrays)
        for problem in sums.problems(totals.whole):
            yield None, problem

    def _block_problems(self, block: RowBlock, arrays: Arrays) -> Iterator[str]:
        for name, shape in self.shapes(block).items():
            array = arrays[name]
            if array[shape[0] :].any():
                yield f"the padding of {name} is not zero"
            if name != "triple_sketch" and array.size and array.min() < 0:
                yield f"{name} has counts below zero"
        rows, core_rows = block.size(self.rows), block.size(self.basis.core)
        words, documents = arrays["word_counts"][:rows], arrays["document_frequencies"][:rows]
        if (documents > words).any() or ((documents == 0) & (words > 0)).any():
            yield "document_frequencies do not fit word_counts"
        absent = words == 0
        for name in ("pair_counts", "triple_sketch"):
            if arrays[name][:rows][absent].any():
                yield f"{name} is not zero for words that never occurred"
        if "codocuments" in arrays:
            own = np.arange(core_rows)
            together = arrays["codocuments"][:core_rows]
            if (together[own, own * block.step + block.index] != documents[:core_rows]).any():
                yield "the diagonal of codocuments is not document_frequencies"


@dataclass
class _Sums:
    """Sums over the row blocks of one segment from which its identities are checked.

    That P = P' inside the core is checked by r' P q = q' P r for random r and q, so that no core
    times core matrix is held; like the sketch's identity in integers modulo 2^64, hence exact.
    """

    basis: Basis
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    cubes: NDArray[np.int64]
    words: int = 0
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
        self.pairs += sum(arrays["pair_counts"].sum(axis=1).tolist())
        left, right = self.left[block.rows], self.right[block.rows]
        for name in ("pair_counts", "codocuments"):
            if name in arrays:
                inner = arrays[name][:rows]
                skew = (left * (inner @ self.right) - right * (inner @ self.left)).sum(axis=0)
                self.skew[name] = self.skew.get(name, 0) + skew
        own = self.basis.matrix[block.rows].astype(np.int64)
        self.cubes += own.T @ arrays["triple_sketch"][:rows]

    def problems(self, lengths: LengthHistogram) -> Iterator[str]:
        basis = self.basis
        if self.words != lengths.C1:
            yield f"word_counts add up to {self.words}, the lengths to C1 = {lengths.C1}"
        if self.pairs > lengths.C2 or (basis.core == basis.n_words and self.pairs != lengths.C2):
            yield f"pair_counts add up to {self.pairs}, the lengths to C2 = {lengths.C2}"
        for name, skew in self.skew.items():
            if skew.any():
                yield f"{name} is not symmetric inside the core"
        # sum_i Q_ia (T_i)_bc = sum_d y_a y_b y_c does not depend on the order of a, b and c
        rows, columns = np.triu_indices(basis.columns)
        cubes = np.empty((basis.columns,) * 3, dtype=np.int64)
        cubes[:, rows, columns] = cubes[:, columns, rows] = self.cubes
        if (cubes != cubes.transpose(1, 0, 2)).any():
            yield "triple_sketch is not the sketch of a symmetric tensor"
