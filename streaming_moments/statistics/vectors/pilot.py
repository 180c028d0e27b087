"""Choice of the foundation of vectors from a pilot: grid, radius and sketch."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.vectors.foundation import VectorsFoundation, reach_of
from streaming_moments.statistics.vectors.grid import LARGEST_RADIUS, Grid
from streaming_moments.statistics.views.statistics import LARGEST_SUM

# The median standard deviation of the coordinates has this many steps of the grid. Measured: even 2
# steps would lose no accuracy.
_STEPS = 16
# Whole numbers get a grid with step 1, which is exact, if their standard deviation is at most this.
_MOST_WHOLE_STEPS = 64
# Rows are clipped to the multiple _RADIUS of the median norm of the pilot, which was chosen by
# measurements with 1% outliers. If fourth moments are counted, _FAR is the multiple instead.
_RADIUS = 1.3
_FAR = 4.0
# Rows of the pilot beyond this multiple of the median norm are ignored when the spread is measured.
_STRANGE = 10.0
_SMALLEST = 1e-90  # smallest size of the numbers of a pilot; its square is still a normal float
_WITHIN = 0.99
_MOST = 0.95  # at least this share of rows is not clipped, as a larger tail is data, not outliers
# A row of up to WHOLE numbers is its own sketch; with fourth moments, of up to _WHOLE_OF_FOURTH.
WHOLE, _WHOLE_OF_FOURTH = 64, 40
# Number of components for which the default sketch has enough columns, and its number of random
# columns.
_COMPONENTS = 32
_RANDOM = 2
_SCALE = 127
# The standard deviation of a column of the sketch is 2^3 to 2^4, or down to 2^1 if sums would
# become too large. Larger ones were no better when measured. With these, float32 sums are exact.
_BITS, _FEWEST_BITS = 3, 1
# Largest bits of a number whose cube is below 2^53, and of one whose fourth power is below 2^53.
_LARGEST_BITS, _LARGEST_BITS_OF_FOURTH = 17, 13
# Number of vectors that a store should be able to hold before a sum could exceed 2^62.
_VECTORS = 2 * 10**9
_PASSES, _TOLERANCE = 15, 1e-2
# Smallest variance of the noise of a coordinate in the factor model of the pilot, as a share of the
# median variance. A coordinate without noise would dominate the directions.
_LEAST_NOISE = 1e-3
_DRAWS = 10
# Number of (d, d) arrays in memory while directions are computed. Measured: 7.
_SQUARES = 8


def _shape_said(rows: NDArray[Any]) -> str:
    """Describe the shape of a pilot that has too few rows of numbers."""
    if rows.ndim != 2:
        return f"the array has shape {rows.shape}"
    columns = of_number(rows.shape[1], "column")
    return f"{of_number(len(rows), 'row')} of {columns} can be read as such"


def foundation_of(
    rows: NDArray[Any],
    columns: int | None = None,
    seed: int = 0,
    squares: bool = False,
    fourth: bool = False,
    halves: bool = True,
    reach: float | None = None,
) -> VectorsFoundation:
    """Choose a foundation for vectors like those of a pilot.

    The offset of the grid is the median of the rows. The step is a 16th of the median standard
    deviation of the coordinates that vary. The radius is 1.3 times the median norm. It is larger if
    rows spread in few directions, or if more than a twentieth of the rows would be beyond it. Step
    and radius ignore rows beyond ten median norms.

    The sketch has the leading directions of a factor model of the pilot, rounded to int8, and two
    random columns of +-1. The model has diagonal noise, so that noisy coordinates do not dominate.
    Rows of up to 64 numbers are their own sketch. The sketch is shifted so that the standard
    deviations of y are 2^3 to 2^4, or smaller if 2 x 10^9 rows would not fit.

    Raises InvalidInput if there are fewer than two rows, all rows are equal, a number is NaN or
    infinite, or there are no columns.

    rows : (N, d), finite numbers; 2,000 rows are as good as more rows
    columns : columns of the sketch; a good choice is one and a half for each component plus two.
        The default is d for up to 64 coordinates, else 50, which is enough for 32 components.
    seed : seed of the random columns
    squares, fourth, halves : options of the foundation
    reach : radius as a multiple of the median norm. The default is 1.3 or more, so that outliers do
        not dominate mixtures. With `fourth` it is 4, because tails separate factors.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(500, 3)) + [5, 0, -5]
    >>> foundation = foundation_of(rows)
    >>> foundation.dimension, foundation.columns, bool(abs(foundation.grid.offset[0] - 5) < 0.2)
    (3, 3, True)
    """
    if rows.ndim != 2 or len(rows) < 2 or not rows.shape[1]:
        raise InvalidInput(
            f"vectors need at least 2 rows of numbers, but {_shape_said(rows)}; choose columns of "
            "numbers, or give more rows"
        )
    if columns is not None and columns < 1:
        raise InvalidInput(f"the sketch has {columns} columns; give at least 1")
    grid = grid_of(rows, _FAR if reach is None and fourth else reach)
    found, norms, _ = grid.quantised(rows)
    matrix = _sketch(found.astype(np.float64), columns, fourth, np.random.default_rng(seed))
    wide = found.astype(np.float64) @ matrix
    for bits in range(_BITS, _FEWEST_BITS - 1, -1):
        shift = _shift(wide, matrix, grid, bits, fourth)
        made = VectorsFoundation(grid, matrix, shift, squares, fourth, halves)
        gains = made.gains(made.sketched(found).astype(np.int64), norms).astype(np.float64)
        if gains.mean() * _VECTORS < LARGEST_SUM:
            break
    return made


def sketching_bytes(dimension: int, columns: int | None = None, fourth: bool = False) -> int:
    """Return how many bytes `foundation_of` with these arguments needs besides the rows.

    Examples
    --------
    >>> sketching_bytes(64), sketching_bytes(768) >> 20
    (0, 36)
    """
    whole = _columns_of(dimension, columns, fourth) >= dimension
    return 0 if whole else _SQUARES * 8 * dimension**2


def _columns_of(size: int, columns: int | None, fourth: bool) -> int:
    if columns is not None:
        return columns
    return size if size <= (_WHOLE_OF_FOURTH if fourth else WHOLE) else ceil(1.5 * _COMPONENTS) + 2


def _shift(
    wide: NDArray[np.float64], matrix: NDArray[np.int8], grid: Grid, bits: int, fourth: bool
) -> NDArray[np.uint8]:
    """Return (s,) shifts after which Q'x has standard deviations of `2^bits` to `2^(bits + 1)`.

    If powers of the largest possible Q'x would then exceed 2^53, the shifts are larger.
    """
    most = np.sqrt((matrix.astype(np.float64) ** 2).sum(axis=0)) * reach_of(grid)
    room = np.frexp(most)[1] - (_LARGEST_BITS_OF_FOURTH if fourth else _LARGEST_BITS)
    needed = np.frexp(np.maximum(wide.std(axis=0), 1.0))[1] - 1 - bits
    shift: NDArray[np.uint8] = np.maximum(np.maximum(needed, room), 0).astype(np.uint8)
    return shift


def grid_of(rows: NDArray[Any], reach: float | None = None) -> Grid:
    """Choose the grid for a pilot; arguments and errors are those of `foundation_of`."""
    values = np.asarray(rows, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InvalidInput("the pilot has NaN or infinite numbers; leave out rows that have some")
    if len(values) and not (values.min(axis=0) < values.max(axis=0)).any():
        raise InvalidInput(
            f"all {len(values)} rows of the pilot are equal; give other rows, or more rows"
        )
    offset = np.median(values, axis=0)
    with np.errstate(over="ignore"):
        far = values - offset
        size = _middle(np.maximum(far.max(axis=1), -far.min(axis=1)))
        far /= size
        norms = np.sqrt(np.einsum("nd,nd->n", far, far)) * size
    del far
    if not _SMALLEST < size < 1 / _SMALLEST:
        raise InvalidInput(
            f"numbers of the pilot lie {size:.3g} from their median; scale them by {1 / size:.0e}"
        )
    middle = _middle(norms)
    # ignore outliers, which could make steps so large that all other rows become equal
    near = norms <= _STRANGE * middle
    ordinary = values if near.all() else values[near]
    spread = ordinary.std(axis=0)
    middling = float(np.median(spread[ordinary.min(axis=0) < ordinary.max(axis=0)]))
    whole = middling <= _MOST_WHOLE_STEPS and bool((values == np.rint(values)).all())
    if whole:
        offset = np.rint(offset)
        middle = _middle(np.linalg.norm(values - offset, axis=1))
    reach = middle * (_reach(ordinary, norms[near] / _middle(norms)) if reach is None else reach)
    step = 1.0 if whole else middling / _STEPS
    if reach / step > LARGEST_RADIUS:
        step, whole = reach / LARGEST_RADIUS, False
    return Grid(offset, step, min(ceil(reach / step), LARGEST_RADIUS), whole)


def _middle(sizes: NDArray[np.float64]) -> float:
    """Return the median of the sizes of rows, or that of the positive sizes if the median is 0.

    The median can be 0, because in sparse data half of the rows can be at the offset of the grid.
    """
    return float(np.median(sizes)) or float(np.median(sizes[sizes > 0]))


def _reach(values: NDArray[np.float64], norms: NDArray[np.float64]) -> float:
    """Return the radius as a multiple of the median norm: 1.3, or more to include 95% of the rows.

    If rows spread in few directions, the radius also includes 99% of a Gaussian distribution with
    as many directions.
    """
    from scipy.special import gammaincinv

    centred = values - values.mean(axis=0)
    tall = centred.shape[0] > centred.shape[1]
    gram = centred.T @ centred if tall else centred @ centred.T
    directions = 1 / ((gram / np.trace(gram)) ** 2).sum()
    far, middle = (2 * gammaincinv(directions / 2, share) for share in (_WITHIN, 0.5))
    return max(_RADIUS, float(np.sqrt(far / middle)), float(np.quantile(norms, _MOST)))


def _sketch(
    rows: NDArray[np.float64], columns: int | None, fourth: bool, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Return the sketch (d, s) int8: leading directions and random columns, or the identity."""
    size = rows.shape[1]
    columns = _columns_of(size, columns, fourth)
    if columns >= size:
        return np.eye(size, dtype=np.int8)
    leading = max(1, columns - _RANDOM)
    directions = _directions(rows, leading)
    peaks = np.abs(directions).max(axis=0)
    rounded = np.rint(directions / peaks * _SCALE).astype(np.int8)
    for _ in range(_DRAWS):
        random = rng.choice(np.array([-1, 1], dtype=np.int8), size=(size, columns - leading))
        matrix = np.hstack([rounded, random])
        if np.linalg.matrix_rank(matrix.astype(np.float64)) == columns:
            break
    return matrix


def _directions(rows: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """Return (d, number) leading directions of a factor model: orthonormal, largest entry positive.

    The variances psi of the noise and the loadings F are found by approximate maximum likelihood
    (Lawley). The directions are the left singular vectors of `psi^-1 F`. If all coordinates have
    equal noise, they are the leading eigenvectors of the covariance.
    """
    rows = rows - rows.mean(axis=0)
    covariance = rows.T @ rows / len(rows)
    variances = covariance.diagonal().copy()
    least = _LEAST_NOISE * float(np.median(variances[variances > 0]))
    # eigenvalues of pure noise reach up to this edge by chance; a short pilot has a larger edge
    edge = (1 + np.sqrt(rows.shape[1] / len(rows))) ** 2
    noise = np.full(len(covariance), max(float(np.median(variances)), least))
    for _ in range(_PASSES):
        root = np.sqrt(noise)
        values, vectors = np.linalg.eigh(covariance / np.outer(root, root))
        kept = min(max(1, int((values > edge).sum())), number, values.size - 1)
        loadings = root[:, None] * vectors[:, -kept:] * np.sqrt(np.maximum(values[-kept:] - 1, 0))
        before, noise = noise, np.maximum(variances - (loadings**2).sum(axis=1), least)
        if np.abs(noise - before).max() <= _TOLERANCE * noise.max():
            break
    root = np.sqrt(noise)
    values, vectors = np.linalg.eigh(covariance / np.outer(root, root))
    leading = vectors[:, ::-1][:, :number]
    weights = np.sqrt(np.maximum(values[::-1][:number] - 1, 1e-3))
    left = np.linalg.svd(leading * weights / root[:, None], full_matrices=False)[0]
    peaks = left[np.abs(left).argmax(axis=0), np.arange(number)]
    return np.asarray(left * np.sign(peaks))
