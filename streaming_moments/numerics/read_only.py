"""Read-only views of arrays, for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in C order, as a read-only view.

    A kernel is compiled for each combination of argument types. Writeable and read-only arrays have
    different types. If all inputs are read-only, a kernel is compiled only once.

    Examples
    --------
    >>> read_only(np.arange(3)).flags.writeable
    False
    """
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view
