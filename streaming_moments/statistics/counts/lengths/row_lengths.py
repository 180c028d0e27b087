"""RowLengths: number of documents of each length, for each row of the counts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form, Mixture
from streaming_moments.statistics.base import adds_own
from streaming_moments.statistics.counts.lengths.histogram import (
    LengthHistogram,
    Lengths,
    WeightedLengths,
)

L = TypeVar("L", bound=Lengths, covariant=True)


@adds_own
@dataclass(frozen=True)
class RowLengths(Generic[L]):
    """Lengths of the documents that are counted in each row.

    Words that were added to a vocabulary later have the last rows, and are counted in fewer
    documents. So the lengths are a step function of the row. `+` and `-` are exact for each row,
    and `RowLengths(LengthHistogram.zero())` is the identity.

    whole : lengths of all documents, because all of them are counted in the first rows
    later : first row of each step, increasing, and the lengths of the documents that are counted
        from that row on; a step that changes nothing is left out

    Examples
    --------
    >>> before = RowLengths.of_first(LengthHistogram.of([3, 3]), words=5)
    >>> after = RowLengths(LengthHistogram.of([4]))
    >>> (before + after).at(4).n_documents, (before + after).at(5).n_documents
    (3, 1)
    >>> before + after - before == after
    True
    """

    whole: L
    later: tuple[tuple[int, L], ...] = ()

    @staticmethod
    def of_first(lengths: LengthHistogram, words: int | None) -> RowLengths[LengthHistogram]:
        """Return lengths of documents counted in the first `words` rows; None means all rows."""
        whole = RowLengths(lengths)
        return whole if words is None else whole.until(words)

    def until(self: RowLengths[LengthHistogram], words: int) -> RowLengths[LengthHistogram]:
        """Return lengths of the same documents, counted only in the first `words` rows."""
        nothing = LengthHistogram.zero(self.whole.weights)
        return _in_steps(self.whole, [*self.later, (words, nothing)])

    @staticmethod
    def weighted(
        parts: Iterable[tuple[float, RowLengths[LengthHistogram]]],
    ) -> RowLengths[WeightedLengths]:
        """Return the weighted sum of several `RowLengths`, row by row."""
        given = list(parts)
        firsts = sorted({first for _, part in given for first, _ in part.later})
        return RowLengths(
            WeightedLengths.of((weight, part.whole) for weight, part in given),
            tuple(
                (first, WeightedLengths.of((weight, part.at(first)) for weight, part in given))
                for first in firsts
            ),
        )

    def __add__(
        self: RowLengths[LengthHistogram], other: RowLengths[LengthHistogram]
    ) -> RowLengths[LengthHistogram]:
        return _combined(self, other, operator.add)

    def __sub__(
        self: RowLengths[LengthHistogram], other: RowLengths[LengthHistogram]
    ) -> RowLengths[LengthHistogram]:
        return _combined(self, other, operator.sub)

    @property
    def n_documents(self) -> int:
        """Number of all documents."""
        return self.whole.n_documents

    @property
    def n_tokens(self: RowLengths[LengthHistogram]) -> int:
        """Number of tokens of all documents."""
        return self.whole.n_tokens

    @property
    def bound(self: RowLengths[LengthHistogram]) -> int:
        """Upper bound of the pair counts."""
        return self.whole.bound

    def tables(self: RowLengths[LengthHistogram]) -> dict[str, NDArray[np.int64]]:
        """Return the array from which the lengths can be restored, by its name."""
        return self.whole.tables()

    def at(self, row: int) -> L:
        """Return the lengths of the documents that are counted in a row."""
        found = self.whole
        for first, lengths in self.later:
            found = lengths if first <= row else found
        return found

    def constants(
        self, rows: NDArray[np.int64], form: Form = Mixture()
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the normalising constants C1, C2 and C3 of each row, for the form of a model.

        Those of a row are sums over the documents that are counted in the row.

        Examples
        --------
        >>> RowLengths.of_first(LengthHistogram.of([3]), words=2).constants(np.array([0, 2]))[2]
        array([6., 0.])
        """
        places = np.searchsorted([first for first, _ in self.later], rows, side="right")
        steps = (self.whole, *(lengths for _, lengths in self.later))
        C1, C2, C3 = np.array([form.totals(lengths) for lengths in steps], dtype=np.float64).T
        return C1[places], C2[places], C3[places]


def quotients(values: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide (r, ...) values by the (r,) totals of their rows; return 0 where a total is 0.

    Examples
    --------
    >>> quotients(np.array([[2.0, 4.0], [0.0, 0.0]]), np.array([2.0, 0.0]))
    array([[1., 2.],
           [0., 0.]])
    """
    below = totals.reshape(totals.shape + (1,) * (values.ndim - 1))
    divided: NDArray[np.float64] = np.divide(
        values, below, out=np.zeros_like(values, dtype=np.float64), where=below > 0
    )
    return divided


def _combined(
    one: RowLengths[LengthHistogram],
    other: RowLengths[LengthHistogram],
    combine: Callable[[LengthHistogram, LengthHistogram], LengthHistogram],
) -> RowLengths[LengthHistogram]:
    firsts = sorted({first for first, _ in (*one.later, *other.later)})
    steps = [(first, combine(one.at(first), other.at(first))) for first in firsts]
    return _in_steps(combine(one.whole, other.whole), steps)


def _in_steps(
    whole: LengthHistogram, steps: Sequence[tuple[int, LengthHistogram]]
) -> RowLengths[LengthHistogram]:
    """Make row lengths without steps that change nothing, so that equal values compare equal."""
    later: list[tuple[int, LengthHistogram]] = []
    for first, lengths in steps:
        if lengths != (later[-1][1] if later else whole):
            later.append((first, lengths))
    return RowLengths(whole, tuple(later))
