"""LengthWeights: weight of a document in the moments by its length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput

Weighting = Literal["even", "pooled"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)

# In a document of this many tokens, the sampling noise of words is as large as the variation of
# topic proportions between documents. A longer document adds little information.
TAU = 30


@dataclass(frozen=True, eq=False)
class LengthWeights:
    """Fixed whole weights w(c): a document of length c counts w(c) times.

    Estimates of the moments stay unbiased with any function of the length (Ruffini et al. 2018,
    Theorems 1 and 3, applied to each length). Weights are whole numbers, so that sums stay whole.

    Parameters
    ----------
    table : (m,) int64
        w(0), w(1), ..., at least 1; the last one is for all longer documents.

    Raises
    ------
    InvalidInput
        The table is empty, not int64, or has a weight below 1.

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
                "length weights must be a non-empty one-dimensional int64 array with all values at "
                f"least 1; got shape {table.shape}, type {table.dtype}"
                f"{f', smallest value {table.min()}' if table.size else ''}"
            )
        # keep the shortest table of the same weights, so that equal weights compare equal
        last = int(np.flatnonzero(table != table[-1])[-1]) + 1 if (table != table[-1]).any() else 0
        own = table[: last + 1].copy()
        own.setflags(write=False)
        object.__setattr__(self, "table", own)

    @classmethod
    def even(cls, most: int, tau: int = TAU) -> LengthWeights:
        """Return the weights `w(c) = max(1, round((most + tau)^2 / (c + tau)^2))`.

        A document of c words has influence `c^3 w(c)` on M3. The weights are a compromise between
        two estimators. In Theorem 1 (w = 1) long documents dominate, whose words share one topic
        mixture. In Zou, Hsu, Parkes, Adams 2013 (`w = 1 / c^2`) short documents dominate, whose few
        words are noise.

        most : documents that are longer have weight 1; larger values give finer weights
        tau : number of tokens in the formula

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
        """Return the weight of each length."""
        places = np.minimum(np.asarray(lengths, dtype=np.int64), self.table.size - 1)
        return self.table[places]

    @property
    def is_pooled(self) -> bool:
        """Whether all documents have weight 1, as in Theorem 1."""
        return self.table.size == 1 and int(self.table[0]) == 1

    @property
    def sentence(self) -> str:
        """Sentence that describes the length weights.

        Examples
        --------
        >>> POOLED.sentence
        'all documents have weight 1'
        """
        if self.is_pooled:
            return "all documents have weight 1"
        short, middle, long = self.at([10, 100, 1000]).tolist()
        return (
            f"long documents are down-weighted (weight {short:,} for 10 words, {middle:,} for 100, "
            f"{long:,} for 1,000)"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LengthWeights):
            return NotImplemented
        return np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash(self.table.tobytes())


POOLED = LengthWeights(np.ones(1, dtype=np.int64))
