"""Checks of arguments: sizes of synthetic data, and shapes of matrices that are compared."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.arguments import checked
from streaming_moments.errors import InvalidInput

D = TypeVar("D", bound=Callable[..., Any])
_NOT_SIZES = ("seed", "draw")


def drawn(function: D) -> D:
    """Wrap a function that draws data, so that it refuses wrong arguments and sizes below 1."""
    parameters = inspect.signature(function).parameters
    sizes = {
        name: place
        for place, (name, one) in enumerate(parameters.items())
        if one.annotation == "int" and name not in _NOT_SIZES
    }

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        for name, place in sizes.items():
            size = args[place] if place < len(args) else named.get(name, 1)
            if isinstance(size, Integral) and size < 1:
                raise InvalidInput(f"{name} is {size}; give at least 1")
        return function(*args, **named)

    return checked(cast("D", called))


def columns_compared(
    found: ArrayLike, truth: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both matrices as arrays; raises InvalidInput if their numbers of rows differ."""
    both = np.asarray(found, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    shapes = tuple(one.shape for one in both)
    if [len(shape) for shape in shapes] != [2, 2] or shapes[0][0] != shapes[1][0]:
        turned = shapes[0] == shapes[1][::-1]
        give = "the transpose of the first" if turned else "matrices with the same number of rows"
        raise InvalidInput(f"the columns have shapes {shapes[0]} and {shapes[1]}; give {give}")
    return both
