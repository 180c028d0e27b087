"""Symmetric tensors of three indices."""

import numpy as np
from numpy.typing import NDArray


def three_orders(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum three copies of an (n, n, n) tensor, with its first index in each of the three places.

    The tensor is symmetric in the other two indices, so the sum is symmetric in all three.
    """
    return np.asarray(tensor + tensor.transpose(1, 0, 2) + tensor.transpose(1, 2, 0))
