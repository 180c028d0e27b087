"""LengthHistogram: documents by length, from which every normalising constant follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class LengthHistogram:
    """How many documents have which length, in vocabulary tokens.

    A mergeable statistic: `zero()` is its identity, `+` and `-` are exact. The constants are
    Python integers, so none can overflow: with c the length of a document,
    `C1 = sum c`, `C2 = sum c(c-1)`, `C3 = sum c(c-1)(c-2)` (Ruffini et al. 2018, Theorem 1).

    Parameters
    ----------
    lengths : (m,) int64
        Different lengths, rising.
    documents : (m,) int64
        Documents of each length, at least 1.

    Examples
    --------
    >>> histogram = LengthHistogram.of([3, 3, 2])
    >>> histogram.C1, histogram.C2, histogram.C3
    (8, 14, 12)
    """

    lengths: NDArray[np.int64]
    documents: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.lengths.setflags(write=False)
        self.documents.setflags(write=False)

    @classmethod
    def zero(cls) -> LengthHistogram:
        """The histogram of no documents."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, lengths: ArrayLike) -> LengthHistogram:
        """Histogram of (documents,) lengths >= 0."""
        values, documents = np.unique(np.asarray(lengths, dtype=np.int64), return_counts=True)
        return cls(values, documents.astype(np.int64))

    @classmethod
    def from_array(cls, table: ArrayLike) -> LengthHistogram:
        """From the (m, 2) int64 table that `to_array` made."""
        array = np.array(table, dtype=np.int64).reshape(-1, 2)
        return cls(array[:, 0].copy(), array[:, 1].copy())

    def to_array(self) -> NDArray[np.int64]:
        """(m, 2) int64: length, documents."""
        return np.stack([self.lengths, self.documents], axis=1)

    def __add__(self, other: LengthHistogram) -> LengthHistogram:
        return self._combine(other, 1)

    def __sub__(self, other: LengthHistogram) -> LengthHistogram:
        return self._combine(other, -1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LengthHistogram):
            return NotImplemented
        return np.array_equal(self.lengths, other.lengths) and np.array_equal(
            self.documents, other.documents
        )

    __hash__ = None  # type: ignore[assignment]

    def _combine(self, other: LengthHistogram, sign: int) -> LengthHistogram:
        both = np.concatenate([self.lengths, other.lengths])
        values, inverse = np.unique(both, return_inverse=True)
        documents = np.zeros(values.size, dtype=np.int64)
        np.add.at(documents, inverse[: self.lengths.size], self.documents)
        np.add.at(documents, inverse[self.lengths.size :], sign * other.documents)
        if (documents < 0).any():
            length = int(values[np.argmin(documents)])
            raise InvalidInput(
                f"taking away {int(-documents.min())} documents of length {length} too many; "
                "subtract only what was added"
            )
        return LengthHistogram(values[documents > 0], documents[documents > 0])

    @property
    def n_documents(self) -> int:
        """Number of documents N, empty ones included."""
        return sum(self.documents.tolist())

    @property
    def n_tokens(self) -> int:
        """Tokens: C1."""
        return self.C1

    @property
    def bound(self) -> int:
        """No pair count of any sum is larger: C2."""
        return self.C2

    def tables(self) -> dict[str, NDArray[np.int64]]:
        """The array that says all of it, by name."""
        return {"length_histogram": self.to_array()}

    @property
    def weight(self) -> float:
        """Sum of the weights of all documents, which weigh 1 each."""
        return float(self.n_documents)

    @property
    def C1(self) -> int:
        """Tokens: `sum c`."""
        return self.falling(1)

    @property
    def C2(self) -> int:
        """Ordered pairs of positions: `sum c(c-1)`."""
        return self.falling(2)

    @property
    def C3(self) -> int:
        """Ordered triples of positions: `sum c(c-1)(c-2)`."""
        return self.falling(3)

    @property
    def W2(self) -> float:
        """`sum (c(c-1))^2 / C2^2`: bounds the error of M2 (Theorem 2); infinite without pairs."""
        return self._concentration(2)

    @property
    def W3(self) -> float:
        """`sum (c(c-1)(c-2))^2 / C3^2`: bounds the error of M3 (Theorem 2)."""
        return self._concentration(3)

    @property
    def effective_documents(self) -> float:
        """`1 / W3`: how many documents of one length would estimate M3 as well."""
        return 1 / self.W3 if self.C3 else 0.0

    @property
    def longest(self) -> int:
        """Length of the longest document, 0 without documents."""
        return int(self.lengths[-1]) if self.lengths.size else 0

    def falling(self, order: int, power: int = 1) -> int:
        """`sum (c(c-1)...)^power` with `order` factors, exactly."""
        total = 0
        for length, documents in zip(self.lengths.tolist(), self.documents.tolist(), strict=True):
            term = 1
            for step in range(order):
                term *= length - step
            total += term**power * documents
        return total

    def _concentration(self, order: int) -> float:
        total = self.falling(order)
        return self.falling(order, power=2) / total**2 if total else float("inf")


@dataclass(frozen=True, eq=False)
class WeightedLengths:
    """Documents by length and weight: the normalising constants of weighted statistics.

    Parameters
    ----------
    parts : tuple of (float, LengthHistogram)
        Each weight once, with the documents that have it.

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
        """Documents of each weight added up."""
        sums: dict[float, LengthHistogram] = {}
        for weight, histogram in parts:
            sums[weight] = sums.get(weight, LengthHistogram.zero()) + histogram
        return cls(tuple(sums.items()))

    @property
    def n_documents(self) -> int:
        """Number of documents, whatever they weigh."""
        return sum(histogram.n_documents for _, histogram in self.parts)

    @property
    def weight(self) -> float:
        """Sum of the weights of all documents."""
        return sum(weight * histogram.n_documents for weight, histogram in self.parts)

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
        """`C3^2 / sum (w c(c-1)(c-2))^2`, 0 without triples."""
        squares = sum(weight**2 * part.falling(3, power=2) for weight, part in self.parts)
        return self.C3**2 / squares if squares else 0.0

    def _falling(self, order: int) -> float:
        return sum(weight * histogram.falling(order) for weight, histogram in self.parts)


Lengths = LengthHistogram | WeightedLengths
