"""Signal: separates the covariance of rows into signal and noise, and whitens by the signal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.vectors.central_moments import CentralMoments
from streaming_moments.errors import NotIdentifiable

_ROUNDING = 1e-12  # eigenvalues below this share of the largest one are rounding errors
# a noise variance below this share of the mean variance of the coordinates counts as zero
_LEAST_NOISE = 1e-9
# the noise variance of a coordinate is at least this share of its total variance
_LEAST_SHARE = 0.01
_SETTLED = 1e-10
_ROUNDS = 100
_HALVINGS = 20
_RIDGE = 1e-9
# with fewer rows per coordinate than this, `signal_directions` counts directions upwards from zero
_FEW_ROWS = 2
# 99% quantile of the Tracy-Widom law, which the largest eigenvalue of pure noise follows
_TAIL = 2.02


@dataclass(frozen=True, eq=False)
class Signal:
    """The r strongest directions of the signal, and the whitening W, with `W'(C - D) W = I`.

    C is the (d, d) covariance of the rows, D the diagonal covariance of the noise, and C - D the
    covariance of the signal. Q is the (d, s) basis, and `W = Q B`.

    noise : (d,) float64 D, variance of the noise of each coordinate
    inside : (s, r) float64 B
    whitening : (d, r) float64 W
    loadings : (d, r) float64 (C - D) W
    spectrum : (r,) float64, decreasing: variance of the signal along each direction, in units of
        the noise variance if that differs by coordinate
    """

    noise: NDArray[np.float64]
    inside: NDArray[np.float64]
    whitening: NDArray[np.float64]
    loadings: NDArray[np.float64]
    spectrum: NDArray[np.float64]

    @classmethod
    def of(
        cls, moments: CentralMoments, r: int, diagonal: bool = False, whole: bool = False
    ) -> Signal:
        """Return the signal with the r leading directions in the range of the basis.

        With `diagonal`, each coordinate has its own noise variance. With `whole`, the signal can
        have as many directions as the rows have dimensions; there is then no noise. Raises
        NotIdentifiable if the rows have too few dimensions for r directions of signal or for
        separate noise variances, or if they vary in fewer than r directions.
        """
        C, basis, d = moments.covariance, moments.basis, moments.mean.size
        scale = np.trace(C) / d
        if not scale > 0:
            raise NotIdentifiable(
                "all rows are equal, so there is nothing to fit; add rows that differ"
            )
        vary = int(_varying(C).sum())
        if vary < r or (vary == r and not whole):
            which = f"{d} numbers" if vary == d else f"{d} numbers ({vary} of them vary)"
            raise NotIdentifiable(
                f"rows of {which} have at most {vary if whole else vary - 1} directions of signal, "
                f"but {r} are asked for; ask for {vary} components or {vary} factors at most"
            )
        # if r equals vary, no direction remains from which noise could be estimated
        diagonal = diagonal and r < vary
        if diagonal and r > (most := _identified(C)):
            raise NotIdentifiable(
                f"{r} directions of signal are too many: if each coordinate has its own noise, the "
                f"covariances of {vary} coordinates identify at most {most}. Ask for at most "
                f"{most + 1} components or {most} factors, or choose spherical noise or covariances"
            )
        if diagonal:
            noise = diagonal_noise(C, r)
            metric = np.maximum(noise, _LEAST_NOISE * scale)
        else:
            noise, metric = np.full(d, spherical_noise(C, r)), np.ones(d)
        within = basis.T @ C @ basis - (basis.T * noise) @ basis
        values, vectors = _pencil(within, (basis.T * metric) @ basis)
        positive = int((values > _ROUNDING * scale / metric.mean()).sum())
        if positive < r:
            raise NotIdentifiable(
                f"{r} directions of signal are asked for, but the rows vary in {positive} beyond "
                "noise; "
                f"ask for {positive + 1} components or {positive} factors at most, or create the "
                "store with a wider basis"
            )
        values, inside = values[:r], vectors[:, :r] / np.sqrt(values[:r])
        whitening = basis @ inside
        loadings = C @ whitening - noise[:, None] * whitening
        return cls(noise, inside, whitening, loadings, values)


def spherical_noise(covariance: NDArray[np.float64], r: int) -> float:
    """Return the variance of noise that is equal in all coordinates.

    This variance is the mean of the d - r smallest eigenvalues of the covariance, or 0 if r is d.
    Theorem 1 of Hsu and Kakade uses the smallest eigenvalue, which underestimates the noise.

    Examples
    --------
    >>> spherical_noise(np.diag([5.0, 1.0, 3.0]), 1)
    2.0
    """
    values = np.linalg.eigvalsh(covariance)
    return float(max(values[: len(values) - r].mean(), 0.0)) if r < len(values) else 0.0


def diagonal_noise(covariance: NDArray[np.float64], r: int) -> NDArray[np.float64]:
    """Return the (d,) noise variances of maximum likelihood for normal rows with r factors.

    Let l be the d - r smallest eigenvalues of the covariance in units of the noise. These
    eigenvalues are near 1 for the right noise variances. Newton steps in the logarithms of the
    noise minimise `sum(l - log l - 1)` (Joreskog 1967). The noise variance of a coordinate is at
    least a hundredth of its total variance, because a coordinate without noise would hide all other
    signals. A constant coordinate has no noise. r must be less than the number of coordinates that
    vary.

    Examples
    --------
    >>> loadings = np.array([[2.0], [1.0], [1.0], [0.5]])
    >>> diagonal_noise(loadings @ loadings.T + np.diag([1.0, 2.0, 0.5, 1.0]), 1).round(6)
    array([1. , 2. , 0.5, 1. ])
    """
    variances, varying = np.diag(covariance), _varying(covariance)
    noise = np.zeros(variances.size)
    if 0 < r < varying.sum():
        noise[varying] = _likeliest_noise(covariance[np.ix_(varying, varying)], r)
    elif r == 0:
        noise[varying] = variances[varying]
    return noise


def _likeliest_noise(C: NDArray[np.float64], r: int) -> NDArray[np.float64]:
    upper = np.log(np.diag(C))
    lower = upper + np.log(_LEAST_SHARE)
    # start near the residual variance of each coordinate given all others, because the noise
    # variance is at most the residual variance
    left = 1 / np.diag(np.linalg.pinv(C, hermitian=True))
    # if coordinates are dependent, the rounding of stored rows can make C indefinite
    left = np.where(left > 0, left, np.exp(lower))
    logs = np.clip(np.log(left * (1 - r / (2 * len(C)))), lower, upper)
    distance, slope, curvature = _misfit(C, logs, r)
    for _ in range(_ROUNDS):
        held = ((logs <= lower) & (slope > 0)) | ((logs >= upper) & (slope < 0))
        free = np.flatnonzero(~held)
        if not free.size:
            break
        inner = curvature[np.ix_(free, free)]
        inner[np.diag_indices(free.size)] += _RIDGE
        step = np.zeros(logs.size)
        step[free] = -np.linalg.solve(inner, slope[free])
        # limit the step, so that no logarithm changes by more than 1
        step /= max(1.0, np.abs(step).max())
        for _ in range(_HALVINGS):
            tried = np.clip(logs + step, lower, upper)
            found = _misfit(C, tried, r)
            if found[0] <= distance:
                break
            step /= 2
        else:
            break
        moved = np.abs(tried - logs).max()
        logs, (distance, slope, curvature) = tried, found
        if moved <= _SETTLED:
            break
    return np.asarray(np.exp(logs))


def _misfit(
    C: NDArray[np.float64], logs: NDArray[np.float64], r: int
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the distance of the noise eigenvalues from 1, its gradient and expected Hessian.

    `logs` are the logarithms of the noise variances. Both derivatives are with respect to these
    logarithms.
    """
    root = np.exp(logs / 2)
    values, vectors = np.linalg.eigh(C / np.outer(root, root))
    values, vectors = np.maximum(values[: len(C) - r], _ROUNDING), vectors[:, : len(C) - r]
    distance = float((values - np.log(values) - 1).sum())
    return distance, np.square(vectors) @ (1 - values), np.square(vectors @ vectors.T)


def signal_covariance(
    moments: CentralMoments, r: int, diagonal: bool = False
) -> NDArray[np.float64]:
    """Return the (d, d) maximum likelihood covariance of rows with r directions of signal.

    All other variance is noise. For r = 0, this is the covariance of noise alone. With `diagonal`,
    each coordinate has its own noise variance. Raises NotIdentifiable if r is larger than the
    number of directions that can be separated from noise.

    Examples
    --------
    >>> from streaming_moments.decompositions.vectors.central_moments import GivenMoments
    >>> rows = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> signal_covariance(GivenMoments.of_rows(rows, np.eye(2)), 0)
    array([[1.25, 0.  ],
           [0.  , 1.25]])
    """
    C = moments.covariance
    d = len(C)
    most = min(d - 1, _identified(C)) if diagonal else d - 1
    if r > most:
        raise NotIdentifiable(
            f"{r} directions of signal are asked for, but in these rows at most {most} can be "
            f"separated from noise; ask for at most {most + 1} components or {most} factors"
        )
    noise = diagonal_noise(C, r) if diagonal else np.full(d, spherical_noise(C, r))
    root = np.sqrt(np.maximum(noise, _LEAST_NOISE * np.trace(C) / d))
    values, vectors = np.linalg.eigh(C / np.outer(root, root))
    loadings = root[:, None] * vectors[:, d - r :] * np.sqrt(np.maximum(values[d - r :] - 1, 0.0))
    return np.asarray(loadings @ loadings.T + np.diag(noise))


def normal_logarithm(
    moments: CentralMoments, mean: NDArray[np.float64], covariance: NDArray[np.float64]
) -> float:
    """Return the mean log density of rows under a normal law, from the moments of the rows.

    Examples
    --------
    >>> from streaming_moments.decompositions.vectors.central_moments import GivenMoments
    >>> moments = GivenMoments.of_rows(np.array([[1.0], [-1.0]]), np.eye(1))
    >>> round(normal_logarithm(moments, np.zeros(1), np.eye(1)), 4)
    -1.4189
    """
    away = moments.mean - mean
    spread = moments.covariance + np.outer(away, away)
    size = np.linalg.slogdet(2 * np.pi * covariance)[1]
    return float(-(size + np.trace(np.linalg.solve(covariance, spread))) / 2)


def signal_directions(moments: CentralMoments, diagonal: bool = False) -> int:
    """Return the number of directions in which rows vary more than rows of pure noise would.

    Counts the eigenvalues of the covariance, in units of the noise variance, that are above a
    limit. The largest eigenvalue of pure noise exceeds this limit once in a hundred times
    (Johnstone 2001). With `diagonal`, each coordinate has its own noise variance.
    """
    d, s = moments.basis.shape
    C, n = moments.covariance, moments.number
    if not np.trace(C) > 0:
        return 0
    most: int = min(s, d - 1, _identified(C)) if diagonal else min(s, d - 1)
    roots = np.sqrt(max(n - 1, 1)), np.sqrt(d)
    spread = sum(roots) * sum(1 / one for one in roots) ** (1 / 3)
    edge = (sum(roots) ** 2 + _TAIL * spread) / n

    def told(found: int) -> int:
        noise = diagonal_noise(C, found) if diagonal else np.full(d, spherical_noise(C, found))
        return min(_above(C, noise, edge), most)

    if diagonal or n < _FEW_ROWS * d:
        # Estimate the noise with no direction of signal, count the directions that exceed it, and
        # repeat with this count. Starting from many directions would be wrong: they would fit
        # noise, and with few rows some directions have no noise.
        found = 0
        while found < (more := told(found)):
            found = more
        return found
    # Begin with all directions, and count down, so that the noise is estimated from the smallest
    # eigenvalues. If the count began at zero, the estimate of the noise would include the signal,
    # and directions of equal strength would not exceed it.
    found = most
    while found > (less := told(found)):
        found = less
    return found


def _above(C: NDArray[np.float64], noise: NDArray[np.float64], edge: float) -> int:
    """Return how many eigenvalues of C, in units of the noise variance, are above `edge`.

    Coordinates without noise are left out. If no coordinate has noise, the result is the rank of C.
    """
    varying = noise > _LEAST_NOISE * np.trace(C) / len(C)
    if not varying.any():
        return int(np.linalg.matrix_rank(C, hermitian=True))
    root = np.sqrt(noise[varying])
    values = np.linalg.eigvalsh(C[np.ix_(varying, varying)] / np.outer(root, root))
    return int((values > edge).sum())


def _varying(C: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a (d,) mask of the coordinates that are not constant."""
    variances = np.diag(C)
    return np.asarray(variances > _LEAST_NOISE * variances.mean())


def _identified(C: NDArray[np.float64]) -> int:
    """Return how many factors are identified if each coordinate has its own noise variance.

    This is the bound of Ledermann.
    """
    d = _varying(C).sum()
    return int((2 * d + 1 - np.sqrt(8 * d + 1)) / 2)


def _pencil(
    A: NDArray[np.float64], G: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve `A v = l G v` for symmetric A and G; return eigenvalues l, decreasing, and vectors v.

    The matrix V of the vectors satisfies `V'GV = I`.

    G may be singular.
    """
    sizes, axes = np.linalg.eigh(G)
    kept = sizes > _ROUNDING * sizes.max(initial=0.0)
    root = axes[:, kept] / np.sqrt(sizes[kept])
    turned = root.T @ A @ root
    values, vectors = np.linalg.eigh((turned + turned.T) / 2)
    # make the largest entry of each vector positive, so that signs are equal on any machine
    found = root @ vectors[:, ::-1]
    signs = np.sign(found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])])
    return values[::-1], found * np.where(signs == 0, 1.0, signs)
