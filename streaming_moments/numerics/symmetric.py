"""Symmetric tensors of three indices."""

import numpy as np
from numpy.typing import NDArray


def three_orders(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of an (n, n, n) tensor over the places of its first index.

    The tensor is symmetric in the other two, so the sum is symmetric in all.
    """
    return np.asarray(tensor + tensor.transpose(1, 0, 2) + tensor.transpose(1, 2, 0))
