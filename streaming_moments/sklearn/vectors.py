"""Foundations and statistics of an array of numbers, for the estimators of vectors."""

from __future__ import annotations

from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from streaming_moments.arguments import require_fitting
from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.vectors.foundation import LARGEST_OF_FOURTH, VectorsFoundation
from streaming_moments.statistics.vectors.pilot import WHOLE, foundation_of

_DTYPES = [np.float64, np.float32]
_PILOT = 20_000  # rows
_A_COMPONENT = 1.5  # columns
_BESIDE = 2


def foundation_for(
    X: NDArray[Any],
    components: int | Literal["auto"],
    columns: int | None,
    seed: int,
    squares: bool = False,
    fourth: bool = False,
    reach: float | None = None,
) -> VectorsFoundation:
    """A foundation for rows in memory and so many components, by a pilot drawn from them.

    Raises
    ------
    InvalidInput
        As `foundation_of`.
    """
    if columns is None and components != "auto" and X.shape[1] > WHOLE:
        columns = ceil(_A_COMPONENT * components) + _BESIDE
        columns = min(columns, LARGEST_OF_FOURTH) if fourth else columns
    pilot = X
    if len(X) > _PILOT:
        rng = np.random.default_rng(seed)
        pilot = X[np.sort(rng.choice(len(X), _PILOT, replace=False))]
    return foundation_of(pilot, columns, seed, squares, fourth, reach=reach)


def checked_rows(estimator: Any, X: Any, reset: bool = False) -> NDArray[Any]:
    """Rows that an estimator was given, as an array; its parameters are checked where it begins.

    Parameters
    ----------
    estimator : BaseEstimator
        Of vectors.
    X : (n, d) array_like
        Finite numbers.
    reset : bool
        These are the first: they say what a row is, and two of them are needed.

    Returns
    -------
    (n, d) ndarray
        float32 where it was so, else float64.

    Raises
    ------
    InvalidInput
        Names the first parameter of another type, or out of range.
    ValueError
        Of scikit-learn: rows of another width, or not of finite numbers.
    """
    if reset:
        _require_parameters(estimator)
    least = 2 if reset else 1
    checked: NDArray[Any] = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=_DTYPES,
        ensure_min_samples=least,
        ensure_min_features=least,
    )
    return checked


def _require_parameters(estimator: Any) -> None:
    require_fitting(type(estimator).__init__, **estimator.get_params())
    if estimator.random_state < 0:
        raise InvalidInput(f"random_state is {estimator.random_state}; it must be 0 or more")
    components = estimator.n_components
    if components != "auto" and (isinstance(components, str) or components < 1):
        raise InvalidInput(f'n_components is {components!r}; give at least 1, or "auto"')
