"""Parts that models of vectors share: fits of all rows and of their halves, and reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.vectors.signal import normal_logarithm, signal_covariance
from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.rows import Rows
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.moments import VectorMoments
from streaming_moments.statistics.vectors.statistics import VectorStatistics

M = TypeVar("M")

BY_SPECTRUM = 0
"""Value of an option: as many factors as the spectrum separates."""

# For held-out scores, the variance of each coordinate is enlarged by this share of it, and at least
# by `_LEAST_NOISE` times the mean variance of all coordinates.
_LEAST_SHARE = 0.05
_LEAST_NOISE = 1e-9
_ROWS = 4096  # number of rows that are read at a time
_COPIES = 8  # a fit holds this many copies of its largest moment and of its covariances


def tensor_bytes(foundation: VectorsFoundation) -> int:
    """Return the largest number of bytes that a fit holds in tensors of moments."""
    tensor = foundation.columns ** (4 if foundation.fourth else 3)
    covariances = foundation.dimension**2 * (2 if foundation.squares else 1)
    return 8 * _COPIES * (tensor + covariances)


def require_number(number: int, of: str, least: int = 1) -> None:
    """Raise InvalidInput if `number` is below `least`; for factors, `least` is `BY_SPECTRUM`."""
    if number < least:
        raise InvalidInput(f"{number} {of} are asked for; give at least 1")


def fit_of_blocks(
    rows: Rows, of: str, fit: Callable[[Sequence[VectorStatistics], Any], M], options: Any
) -> M:
    """Fit a model in one step to the `VectorStatistics` of all row blocks.

    `of` says what is fitted, and names the step.
    """
    blocks = rows.each("reading row blocks", _itself)
    made: M = rows.value(rows.once(of, fit, blocks, options))
    return made


def _itself(statistics: VectorStatistics) -> VectorStatistics:
    return statistics


def fits_of_halves(
    whole: VectorStatistics, fit: Callable[[VectorMoments], M]
) -> tuple[M, M] | None:
    """Call `fit` for the moments of the even and of the odd rows.

    Returns None if the statistics have no halves, or if a half identifies no model.
    """
    if not whole.foundation.halves:
        return None
    try:
        return fit(VectorMoments.of(whole.half(False))), fit(VectorMoments.of(whole.half(True)))
    except NotIdentifiable:
        return None


def held_out_rows(whole: VectorStatistics, r: int, diagonal: bool) -> HeldOut:
    """Fit signal and noise to each half of the rows, and score them by the rows of the other half.

    The score is the mean log density of a row. The signal has r directions. The distributions are
    assumed to be normal, because only moments of the rows are known. Raises InvalidInput if the
    statistics have no halves, or if a half has no rows. Raises NotIdentifiable if r directions are
    too many.
    """
    if not whole.foundation.halves:
        raise InvalidInput(
            "the statistics have no halves of the rows, so the number of components cannot be "
            "chosen by halves; give the number, or count with halves"
        )
    totals = whole.totals
    if not 0 < totals.even_documents < totals.n_tokens:
        raise InvalidInput(
            "all rows are in one half, so the number of components cannot be chosen by halves; "
            "give the number, or count more rows"
        )
    halves = [VectorMoments.of(whole.half(odd)) for odd in (False, True)]
    variances = VectorMoments.of(whole).covariance.diagonal()
    if not variances.any():
        raise NotIdentifiable(
            "all rows are equal, so there is nothing to fit; add rows that differ"
        )
    # a coordinate that hardly varies in one half may vary in the other: add some variance
    least = np.diag(np.maximum(_LEAST_SHARE * variances, _LEAST_NOISE * variances.mean()))
    laws = [(one.mean, signal_covariance(one, r, diagonal) + least) for one in halves]
    return HeldOut(normal_logarithm(halves[0], *laws[1]), normal_logarithm(halves[1], *laws[0]))


def read_by_parts(
    rows: NDArray[Any], dimension: int, read: Callable[[NDArray[Any]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Call `read` for parts of the (n, d) rows, and join the (n, k) results.

    Only the rows of one part are floats at a time, to save memory. Raises ForeignStatistics if the
    rows have not `dimension` coordinates.
    """
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise ForeignStatistics(
            f"rows have shape {rows.shape}, but the model has {dimension} dimensions; give rows of "
            f"{dimension} numbers"
        )
    parts = range(0, max(1, len(rows)), _ROWS)
    return np.concatenate([read(rows[at : at + _ROWS]) for at in parts])
