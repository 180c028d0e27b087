"""Views of arrays that cannot be written to, as kernels read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array in C order, as a view that cannot be written to.

    A kernel is compiled for each kind of its arguments, and an array that can be written to is of
    another kind than one that cannot.

    Examples
    --------
    >>> read_only(np.arange(3)).flags.writeable
    False
    """
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view
