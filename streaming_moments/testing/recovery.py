"""Recovery: checks that a fit finds the model from which the documents were drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray


def matched(found: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the column of `truth` that is nearest to each column of `found`, (k,).

    No column of `truth` may be nearest to two columns of `found`.
    """
    distances = np.abs(found[:, :, None] - truth[:, None, :]).sum(axis=0)
    order: NDArray[np.intp] = distances.argmin(axis=1)
    assert sorted(order.tolist()) == list(range(truth.shape[1])), "a true column has two matches"
    return order


def check_rate(
    error: Callable[[int], float], documents: Sequence[int], bounds: Sequence[float]
) -> None:
    """Check that errors decrease like `documents^-1/2`, and stay below the bounds.

    `error` draws a given number of documents from a known model, fits the model and returns the
    error of the fit. To measure the slope of the decrease, give at least three numbers of
    documents, each a multiple of the one before.
    """
    errors = np.array([error(number) for number in documents])
    slope = np.polyfit(np.log(np.array(documents)), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4, f"errors {errors.round(4)} fall like documents^{slope:.2f}"
    assert (errors < np.array(bounds)).all(), f"errors {errors.round(4)} are not below {bounds}"
