"""VectorSequences: sequences of numeric rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class VectorSequences:
    """Whole sequences of numeric rows, one after another.

    Parameters
    ----------
    offsets : (sequences + 1,) int64
        Start of the rows of each sequence.
    values : (rows, d) float64
        All rows. A row with a NaN is unobserved.

    Raises
    ------
    InvalidInput
        The arrays do not match, or a number is infinite.

    Examples
    --------
    >>> sequences = VectorSequences.of([[[0.0], [1.0]], [[2.0], [np.nan], [3.0]]])
    >>> sequences.offsets, sequences.seen.tolist()
    (array([0, 2, 5]), [True, True, True, False, True])
    """

    offsets: NDArray[np.int64]
    values: NDArray[np.float64]

    __repr__ = short_repr

    def __post_init__(self) -> None:
        shape, offsets = self.values.shape, self.offsets
        fits = self.values.ndim == 2 and offsets.size and offsets[0] == 0
        if not fits or offsets[-1] != shape[0] or (np.diff(offsets) < 0).any():
            raise InvalidInput(
                f"rows of shape {shape} do not match offsets that end at "
                f"{offsets[-1:]}; give (rows, d) numbers"
            )
        if np.isinf(self.values).any():
            raise InvalidInput("a row has an infinite number; give NaN for an unobserved row")

    @classmethod
    def of(cls, sequences: Sequence[Any]) -> VectorSequences:
        """Make sequences from (t, d) arrays.

        Raises
        ------
        InvalidInput
            There are no sequences, or rows have different widths.
        """
        given = [np.asarray(one, dtype=np.float64) for one in sequences]
        shapes = {one.shape[1:] for one in given}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise InvalidInput(
                f"the sequences have rows of shapes {sorted(shapes)}; give (t, d) arrays with the "
                "same d"
            )
        sizes = [len(one) for one in given]
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(given))

    @property
    def begins(self) -> NDArray[np.bool_]:
        """(sequences,) True for each sequence, because all are whole, not chunks of longer ones."""
        return np.ones(self.offsets.size - 1, dtype=np.bool_)

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """(rows,) bool, True for rows without a NaN."""
        return np.asarray(~np.isnan(self.values).any(axis=1))
