"""Halves: which half of the documents a row of a table belongs to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def odd_half(first: int, number: int) -> NDArray[np.bool_]:
    """(number,) whether rows are in the odd half, by turns from the one numbered `first`.

    Examples
    --------
    >>> odd_half(3, 4).tolist()
    [True, False, True, False]
    """
    return np.asarray(np.arange(first, first + number) % 2 == 1)
