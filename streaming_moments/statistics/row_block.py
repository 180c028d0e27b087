"""RowBlock: part of the rows of all statistics, for one worker or file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput


@dataclass(frozen=True)
class RowBlock:
    """Words `index, index + step, ...`: a block of rows with an equal share of the work.

    Words are ordered by decreasing frequency, which follows Zipf's law. If they are dealt to the
    blocks in turn, all blocks have about the same work and bytes. Blocks of adjacent words would
    differ.

    Parameters
    ----------
    index, step : int
        `0 <= index < step`; `RowBlock(0, 1)`, the default, is all rows.

    Examples
    --------
    >>> list(range(7))[RowBlock(1, 3).rows], RowBlock(1, 3).size(7)
    ([1, 4], 2)
    """

    index: int = 0
    step: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.step:
            raise InvalidInput(
                f"row block {self.index} of {self.step} does not exist; blocks are numbered from 0"
            )

    @property
    def rows(self) -> slice:
        """Slice of the rows of the block in an (n, ...) array."""
        return slice(self.index, None, self.step)

    def size(self, n_words: int) -> int:
        """Return how many of the first `n_words` rows are in the block."""
        return max(0, -(-(n_words - self.index) // self.step))


def interleaved(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join the rows of all blocks, given in order, to (n, ...) rows in the order of the words.

    Examples
    --------
    >>> interleaved([np.array([0, 2, 4]), np.array([1, 3])])
    array([0, 1, 2, 3, 4])
    """
    if len(parts) == 1:
        return parts[0]
    joined = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), dtype=parts[0].dtype)
    for index, part in enumerate(parts):
        joined[RowBlock(index, len(parts)).rows] = part
    return joined
