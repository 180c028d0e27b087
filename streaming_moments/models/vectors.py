"""What models of vectors share: one fit of all row blocks, bars by halves, rows read by parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.rows import Rows
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.moments import VectorMoments
from streaming_moments.statistics.vectors.statistics import VectorStatistics

M = TypeVar("M")

BY_SPECTRUM = 0
"""Of options: as many components, or factors, as the spectrum tells apart."""

_ROWS = 4096  # that are read at a time
_COPIES = 8  # of a third or fourth moment while it is centred and turned, and of covariances


def tensor_bytes(foundation: VectorsFoundation) -> int:
    """Bytes of the tensors of moments that a fit holds at most."""
    tensor = foundation.columns ** (4 if foundation.fourth else 3)
    covariances = foundation.dimension**2 * (2 if foundation.squares else 1)
    return 8 * _COPIES * (tensor + covariances)


def require_number(number: int, of: str) -> None:
    """Raise InvalidInput for a number below `BY_SPECTRUM`."""
    if number < BY_SPECTRUM:
        raise InvalidInput(f"{number} {of} asked for; it must be at least 1")


def fit_of_blocks(
    rows: Rows, of: str, fit: Callable[[Sequence[VectorStatistics], Any], M], options: Any
) -> M:
    """Fit a model by one step, named after `of`, on the `VectorStatistics` of all row blocks."""
    blocks = rows.each("reading row blocks", _itself)
    made: M = rows.value(rows.once(of, fit, blocks, options))
    return made


def _itself(statistics: VectorStatistics) -> VectorStatistics:
    return statistics


def fits_of_halves(
    whole: VectorStatistics, fit: Callable[[VectorMoments], M]
) -> tuple[M, M] | None:
    """`fit` of the even and of the odd rows; None where there are no halves, or one has no fit."""
    if not whole.foundation.halves:
        return None
    try:
        return fit(VectorMoments.of(whole.half(False))), fit(VectorMoments.of(whole.half(True)))
    except NotIdentifiable:
        return None


def read_by_parts(
    rows: NDArray[Any], dimension: int, read: Callable[[NDArray[Any]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """(n, k) of (n, d) rows, of so many at a time that floats of all are never held.

    Raises ForeignStatistics for rows of another width.

    Examples
    --------
    >>> read_by_parts(np.ones((2, 3)), 3, lambda part: part.sum(axis=1, keepdims=True))
    array([[3.],
           [3.]])
    """
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise ForeignStatistics(
            f"rows of shape {rows.shape}, the model has {dimension} dimensions; give rows "
            "of so many numbers"
        )
    parts = range(0, max(1, len(rows)), _ROWS)
    return np.concatenate([read(rows[at : at + _ROWS]) for at in parts])
