"""LengthWeights: how many times a document of each length counts in the moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput

Weighting = Literal["even", "pooled"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)

# Tokens below which the noise of a document's words, and beyond which its share of topics, decides
# how much it tells.
TAU = 30


@dataclass(frozen=True, eq=False)
class LengthWeights:
    """Whole numbers w(c), chosen once: a document of length c counts w(c) times.

    Estimates of the moments stay unbiased with any function of the length (Ruffini et al. 2018,
    Theorems 1 and 3, document by document), and so do sums of integers.

    Parameters
    ----------
    table : (m,) int64
        w(0), w(1), ..., at least 1; the last holds for every longer document as well.

    Raises
    ------
    InvalidInput
        A table that is empty, not of int64, or has a weight below 1.

    Examples
    --------
    >>> weights = LengthWeights(np.array([9, 9, 4, 1]))
    >>> weights.at([1, 2, 3, 100])
    array([9, 4, 1, 1])
    >>> LengthWeights(np.array([1, 1, 1])) == POOLED
    True
    """

    table: NDArray[np.int64]

    def __post_init__(self) -> None:
        table = np.asarray(self.table)
        if table.dtype != np.int64 or table.ndim != 1 or not table.size or table.min() < 1:
            raise InvalidInput(
                f"length weights are a table of int64, at least 1, got {table.shape} of "
                f"{table.dtype}{f' down to {table.min()}' if table.size else ''}"
            )
        # the shortest table of the same weights, so that what is equal looks equal
        last = int(np.flatnonzero(table != table[-1])[-1]) + 1 if (table != table[-1]).any() else 0
        own = table[: last + 1].copy()
        own.setflags(write=False)
        object.__setattr__(self, "table", own)

    @classmethod
    def even(cls, most: int, tau: int = TAU) -> LengthWeights:
        """`w(c) = max(1, round((most + tau)^2 / (c + tau)^2))`: whole numbers in place of weights.

        A document of c words tells of M3 as much as `c^3 w(c)`. Between Theorem 1 (w = 1: long
        documents rule, whose words share one draw of topics) and Zou, Hsu, Parkes, Adams 2013
        (`w = 1 / c^2`: short ones do, whose few words are noise).

        Parameters
        ----------
        most : int
            Length from which on documents count once; the larger, the finer the weights.
        tau : int
            As above, in tokens.

        Examples
        --------
        >>> LengthWeights.even(most=100, tau=30).at([3, 10, 30, 50, 100])
        array([16, 11,  5,  3,  1])
        """
        if most < 0 or tau < 0:
            raise InvalidInput(f"most is {most} and tau {tau} tokens; both must be at least 0")
        squares = (np.arange(most + 1, dtype=np.int64) + max(tau, 1)) ** 2
        return cls(np.maximum((2 * squares[-1] + squares) // (2 * squares), 1))

    def at(self, lengths: ArrayLike) -> NDArray[np.int64]:
        """Weight of each length."""
        places = np.minimum(np.asarray(lengths, dtype=np.int64), self.table.size - 1)
        return self.table[places]

    @property
    def is_pooled(self) -> bool:
        """Whether all documents count once: Theorem 1 itself."""
        return self.table.size == 1 and int(self.table[0]) == 1

    @property
    def sentence(self) -> str:
        """How often documents count in the moments.

        Examples
        --------
        >>> POOLED.sentence
        'documents count once, whatever their length'
        """
        if self.is_pooled:
            return "documents count once, whatever their length"
        short, middle, long = self.at([10, 100, 1000]).tolist()
        return (
            f"documents of 10 words count {short:,} times, of 100 words {middle:,}, "
            f"of 1,000 words {long:,}"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LengthWeights):
            return NotImplemented
        return np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash(self.table.tobytes())


POOLED = LengthWeights(np.ones(1, dtype=np.int64))
