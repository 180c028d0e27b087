"""LengthHistogram: number of documents of each length, from which normalising constants follow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import adds_own
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights


@adds_own
@dataclass(frozen=True, eq=False)
class LengthHistogram:
    """Number of documents by length, in vocabulary tokens.

    A mergeable statistic: `zero()` is its identity, `+` and `-` are exact. A document of length c
    counts w(c) times. The constants C1, C2 and C3 are `sum w c`, `sum w c(c-1)` and `sum w
    c(c-1)(c-2)` (Ruffini et al. 2018, Theorem 1, where w = 1). They are Python integers, so none
    can overflow.

    Parameters
    ----------
    lengths : (m,) int64
        Distinct lengths, increasing.
    documents : (m,) int64
        Number of documents of each length, at least 1.
    weights : LengthWeights
        Weights w(c).

    Examples
    --------
    >>> histogram = LengthHistogram.of([3, 3, 2])
    >>> histogram.C1, histogram.C2, histogram.C3
    (8, 14, 12)
    """

    lengths: NDArray[np.int64]
    documents: NDArray[np.int64]
    weights: LengthWeights = POOLED

    __repr__ = short_repr

    def __post_init__(self) -> None:
        self.lengths.setflags(write=False)
        self.documents.setflags(write=False)

    @classmethod
    def zero(cls, weights: LengthWeights = POOLED) -> LengthHistogram:
        """Return a histogram without documents."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), weights)

    @classmethod
    def of(cls, lengths: ArrayLike, weights: LengthWeights = POOLED) -> LengthHistogram:
        """Count (documents,) lengths, each at least 0."""
        values, documents = np.unique(np.asarray(lengths, dtype=np.int64), return_counts=True)
        return cls(values, documents.astype(np.int64), weights)

    @classmethod
    def from_array(cls, table: ArrayLike, weights: LengthWeights = POOLED) -> LengthHistogram:
        """Restore from the (m, 2) int64 table of `to_array`."""
        array = np.array(table, dtype=np.int64).reshape(-1, 2)
        return cls(array[:, 0].copy(), array[:, 1].copy(), weights)

    def to_array(self) -> NDArray[np.int64]:
        """Return an (m, 2) int64 table of lengths and the number of documents of each."""
        return np.stack([self.lengths, self.documents], axis=1)

    def __add__(self, other: LengthHistogram) -> LengthHistogram:
        return self._combine(other, 1)

    def __sub__(self, other: LengthHistogram) -> LengthHistogram:
        return self._combine(other, -1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LengthHistogram):
            return NotImplemented
        return (
            np.array_equal(self.lengths, other.lengths)
            and np.array_equal(self.documents, other.documents)
            and self.weights == other.weights
        )

    __hash__ = None  # type: ignore[assignment]

    def _combine(self, other: LengthHistogram, sign: int) -> LengthHistogram:
        if self.weights != other.weights:
            raise ForeignStatistics(
                "documents with different length weights cannot be added or subtracted; gather "
                "both with one basis"
            )
        both = np.concatenate([self.lengths, other.lengths])
        values, inverse = np.unique(both, return_inverse=True)
        documents = np.zeros(values.size, dtype=np.int64)
        np.add.at(documents, inverse[: self.lengths.size], self.documents)
        np.add.at(documents, inverse[self.lengths.size :], sign * other.documents)
        if (documents < 0).any():
            length = int(values[np.argmin(documents)])
            missing = int(-documents.min())
            was, they = ("was", "it") if missing == 1 else ("were", "they")
            raise InvalidInput(
                f"{of_number(missing, 'document')} of length {length} {was} never added, so {they} "
                "cannot be subtracted; subtract only added documents"
            )
        return LengthHistogram(values[documents > 0], documents[documents > 0], self.weights)

    @property
    def n_documents(self) -> int:
        """Number of documents N, empty ones included."""
        return sum(self.documents.tolist())

    @property
    def n_tokens(self) -> int:
        """Number of tokens without weights: `sum c`."""
        pairs = zip(self.lengths.tolist(), self.documents.tolist(), strict=True)
        return sum(length * documents for length, documents in pairs)

    @property
    def bound(self) -> int:
        """Upper bound of the pair counts: C2."""
        return self.C2

    def tables(self) -> dict[str, NDArray[np.int64]]:
        """Return the array from which the histogram can be restored, by its name."""
        return {"length_histogram": self.to_array()}

    @property
    def aged_documents(self) -> float:
        """Number of documents N, because in this class no document is weighted by age."""
        return float(self.n_documents)

    @property
    def weight(self) -> float:
        """Sum of the weights of all documents: `sum w`."""
        return float(self.falling(0))

    @property
    def is_pooled(self) -> bool:
        """Whether documents of all lengths have weight 1."""
        return self.weights.is_pooled

    @property
    def C1(self) -> int:
        """Weighted tokens: `sum w c`."""
        return self.falling(1)

    @property
    def C2(self) -> int:
        """Ordered pairs of positions: `sum w c(c-1)`."""
        return self.falling(2)

    @property
    def C3(self) -> int:
        """Ordered triples of positions: `sum w c(c-1)(c-2)`."""
        return self.falling(3)

    @property
    def W2(self) -> float:
        """`sum (w c(c-1))^2 / C2^2`: bounds the error of M2 (Theorem 2); infinite without pairs."""
        return self._concentration(2)

    @property
    def W3(self) -> float:
        """`sum (w c(c-1)(c-2))^2 / C3^2`: bounds the error of M3 (Theorem 2)."""
        return self._concentration(3)

    @property
    def effective_documents(self) -> float:
        """`1 / W3`: number of documents of equal length that estimate M3 equally well."""
        return 1 / self.W3 if self.C3 else 0.0

    @property
    def longest(self) -> int:
        """Length of the longest document, 0 without documents."""
        return int(self.lengths[-1]) if self.lengths.size else 0

    def falling(self, order: int, power: int = 1) -> int:
        """Return the exact sum over documents of `(w c(c-1)...)^power`: w and `order` factors."""
        total = 0
        weights = self.weights.at(self.lengths).tolist()
        for length, documents, weight in zip(
            self.lengths.tolist(), self.documents.tolist(), weights, strict=True
        ):
            term = weight
            for step in range(order):
                term *= length - step
            total += term**power * documents
        return total

    def _concentration(self, order: int) -> float:
        total = self.falling(order)
        return self.falling(order, power=2) / total**2 if total else float("inf")


@dataclass(frozen=True, eq=False)
class WeightedLengths:
    """Documents by length and weight: normalising constants of weighted statistics.

    parts : each distinct weight, with the lengths of the documents that have this weight

    Examples
    --------
    >>> one, other = LengthHistogram.of([3]), LengthHistogram.of([2])
    >>> lengths = WeightedLengths.of([(1.0, one), (0.5, other)])
    >>> lengths.C1, lengths.n_documents, lengths.weight
    (4.0, 2, 1.5)
    """

    parts: tuple[tuple[float, LengthHistogram], ...]

    @classmethod
    def of(cls, parts: Iterable[tuple[float, LengthHistogram]]) -> WeightedLengths:
        """Add up the documents that have the same weight."""
        sums: dict[float, LengthHistogram] = {}
        for weight, histogram in parts:
            sums[weight] = sums[weight] + histogram if weight in sums else histogram
        return cls(tuple(sums.items()))

    @property
    def n_documents(self) -> int:
        """Number of documents, without weights."""
        return sum(histogram.n_documents for _, histogram in self.parts)

    @property
    def aged_documents(self) -> float:
        """Number of documents, weighted by age but not by length, as document frequencies are."""
        return sum(weight * histogram.n_documents for weight, histogram in self.parts)

    @property
    def weight(self) -> float:
        """Sum of the weights of all documents."""
        return sum(weight * histogram.weight for weight, histogram in self.parts)

    @property
    def is_pooled(self) -> bool:
        """Whether weights are independent of the length."""
        return all(histogram.is_pooled for _, histogram in self.parts)

    @property
    def C1(self) -> float:
        """Weighted tokens."""
        return self._falling(1)

    @property
    def C2(self) -> float:
        """Weighted ordered pairs of positions."""
        return self._falling(2)

    @property
    def C3(self) -> float:
        """Weighted ordered triples of positions."""
        return self._falling(3)

    @property
    def effective_documents(self) -> float:
        """Effective number of documents for M3; 0 if no document has three words.

        It is `C3^2 / sum (v w c(c-1)(c-2))^2`, where v is the weight of a part.
        """
        squares = sum(weight**2 * part.falling(3, power=2) for weight, part in self.parts)
        return self.C3**2 / squares if squares else 0.0

    def _falling(self, order: int) -> float:
        return sum(weight * histogram.falling(order) for weight, histogram in self.parts)


Lengths = LengthHistogram | WeightedLengths
