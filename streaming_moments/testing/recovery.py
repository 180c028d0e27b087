"""Recovery: whether a fit finds the model that drew the documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray


def matched(found: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.intp]:
    """(k,) column of `truth` for each column of `found`; each is matched once."""
    distances = np.abs(found[:, :, None] - truth[:, None, :]).sum(axis=0)
    order: NDArray[np.intp] = distances.argmin(axis=1)
    assert sorted(order.tolist()) == list(range(truth.shape[1])), "a true column has two matches"
    return order


def check_rate(
    error: Callable[[int], float], documents: Sequence[int], bounds: Sequence[float]
) -> None:
    """Check that errors decrease like `documents^-1/2`, and stay below the bounds.

    `error` draws a given number of documents from a known model, fits it and returns the error. The
    slope needs at least three numbers of documents, each a multiple of the one before.
    """
    errors = np.array([error(number) for number in documents])
    slope = np.polyfit(np.log(np.array(documents)), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4, f"errors {errors.round(4)} fall like documents^{slope:.2f}"
    assert (errors < np.array(bounds)).all(), f"errors {errors.round(4)} are not below {bounds}"
