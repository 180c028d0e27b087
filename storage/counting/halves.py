"""Halves of the records of stores of earlier formats: by their places, in turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def odd_in_turn(first: int, number: int) -> NDArray[np.bool_]:
    """(number,) whether rows are in the odd half, by turns from the one numbered `first`.

    Rows of a shard are numbered from its size in bytes on, so that shards of one row are not all of
    the same half.

    Examples
    --------
    >>> odd_in_turn(3, 4).tolist()
    [True, False, True, False]
    """
    return np.asarray(np.arange(first, first + number) % 2 == 1)
