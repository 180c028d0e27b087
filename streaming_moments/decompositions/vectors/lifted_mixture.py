"""Fits mixtures of Gaussians to moments of rows, by the method of Hsu and Kakade 2013."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.decompositions.vectors.central_moments import (
    CentralMoments,
    contracted,
    crossed,
)
from streaming_moments.decompositions.vectors.signal import Signal
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.numerics.symmetric import three_orders

Covariance = Literal["spherical", "tied-spherical", "diag", "tied-diag"]
COVARIANCES: tuple[Covariance, ...] = ("spherical", "tied-spherical", "diag", "tied-diag")

_COMPLETIONS = 60
_SETTLED = 1e-10
_REMEMBERED = 6  # a round of `_diagonal_spread` extrapolates from at most this many earlier rounds
_SINGULAR = 1e-8
_LEAST_ROOT = 1e-6  # the weight of a component counts as zero if its square root is below this
# The variance of each component is at least this share of the mean variance of all components.
_LEAST_VARIANCE = 1e-3
# The variance of each component is also at least this share of the mean variance of the coordinates
# over all rows, so that a component has a density even if all its rows are equal.
_LEAST_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class Components:
    """Components of a mixture of Gaussians, by decreasing weight.

    means : (k, d) float64, means of the components
    weights : (k,) float64, weights, with sum 1
    variances : (k, 1) or (k, d) float64, one variance for all coordinates, or one for each
        coordinate
    spectrum : (k - 1,) float64, `spectrum` of the `Signal`: variances of the means of components
        along k - 1 directions
    clipped : number of estimated variances that were below a thousandth of their mean, and were
        raised to this value
    """

    means: NDArray[np.float64]
    weights: NDArray[np.float64]
    variances: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    clipped: int = 0


def mixture_components(
    moments: CentralMoments, k: int, covariance: Covariance = "spherical"
) -> Components:
    """Fit a mixture of k Gaussians to the moments of rows.

    Rows are centred and get an extra coordinate 1. So the k means of the components need to span
    only k - 1 dimensions, wherever the origin is. Covariance "diag" needs moments with `squares`.
    With "tied-", all components have the same covariance.

    Raises NotIdentifiable if the rows vary in too few directions. Also raises it if the third
    moment does not separate the components, or if the variances of each component and coordinate do
    not converge.

    Examples
    --------
    >>> from streaming_moments.decompositions.vectors.central_moments import GivenMoments
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(4000, 3)) + np.repeat([[6.0, 0, 0], [0, 0, 0]], [3000, 1000], 0)
    >>> found = mixture_components(GivenMoments.of_rows(rows, np.eye(3)), 2)
    >>> found.means.round(0) + 0.0, found.weights.round(1), found.variances.round(1).ravel()
    (array([[6., 0., 0.],
           [0., 0., 0.]]), array([0.7, 0.3]), array([1., 1.]))
    """
    require_covariance(covariance)
    if k < 1:
        raise InvalidInput(f"{k} components are asked for; give at least 1")
    diagonal = covariance.endswith("diag")
    signal = Signal.of(moments, k - 1, diagonal)
    third = contracted(moments.third, *(signal.inside,) * 3)
    if covariance == "tied-spherical":
        rotation = lifted_rotation(third)
        variances = np.full((k, 1), signal.noise[0])
    elif covariance == "tied-diag":
        rotation = lifted_rotation(third)
        variances = np.tile(signal.noise, (k, 1))
    elif covariance == "spherical":
        spread = _spherical_spread(moments, signal)
        grams = signal.whitening.T @ signal.whitening
        rotation = lifted_rotation(third - crossed(spread, grams))
        variances = _component_variances(rotation, spread[:, None], signal.noise[:1])
    else:
        rotation, spread = _diagonal_spread(moments, signal, third)
        variances = _component_variances(rotation, spread, signal.noise)
    mean_variance = np.trace(moments.covariance) / moments.mean.size
    least = max(_LEAST_VARIANCE * signal.noise.mean(), _LEAST_SHARE * mean_variance)
    weights = rotation[-1] ** 2
    means = moments.mean + _whitened_means(rotation).T @ signal.loadings.T
    # order by rounded weights, because equal weights can differ by rounding errors
    order = np.lexsort((means[:, 0], -weights.round(9)))
    return Components(
        means[order],
        weights[order] / weights.sum(),
        np.maximum(variances, least)[order],
        signal.spectrum,
        int((variances < least).sum()),
    )


def require_covariance(covariance: str) -> None:
    """Raise InvalidInput for a name that is not in `COVARIANCES`."""
    if covariance not in COVARIANCES:
        known = ", ".join(COVARIANCES)
        raise InvalidInput(f'a covariance of type "{covariance}" is unknown; choose {known}')


def lifted_rotation(third: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (k, k) rotation O from the whitened third moment of the means of components.

    `third` is (k - 1, k - 1, k - 1).

    The columns of O are `sqrt(w_j) (W'(mu_j - m), 1)` for a component j with weight w_j and mean
    mu_j, where m is the mean of all rows. They are orthonormal if W whitens the means. Signs are
    chosen so that the last row is positive. Raises NotIdentifiable if a component has weight zero,
    because the third moment then comes from fewer components.
    """
    r = len(third)
    lifted = np.zeros((r + 1,) * 3)
    lifted[:r, :r, :r] = third
    inner = np.arange(r)
    lifted[inner, inner, r] = lifted[inner, r, inner] = lifted[r, inner, inner] = 1.0
    lifted[r, r, r] = 1.0
    rotation = by_joint_diagonalization(lifted)
    small = int((np.abs(rotation[r]) < _LEAST_ROOT).sum())
    if small:
        raise NotIdentifiable(
            f"{small} of {r + 1} components have no weight; ask for {r + 1 - small}, or add rows"
        )
    return np.asarray(rotation * np.sign(rotation[r]))


def _whitened_means(rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (k - 1, k) whitened means `W'(mu_j - m)` of the components."""
    return np.asarray(rotation[:-1] / rotation[-1])


def _component_variances(
    rotation: NDArray[np.float64], spread: NDArray[np.float64], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (k, c) variances s_j of the components; c is 1, or the number of coordinates.

    spread : `sum_j w_j W'(mu_j - m) s_j`, for components with weights w_j and means mu_j
    noise : `sum_j w_j s_j`, the mean variance
    """
    return np.asarray((rotation / rotation[-1]).T @ np.vstack([spread, noise]))


def _spherical_spread(moments: CentralMoments, signal: Signal) -> NDArray[np.float64]:
    """Return the (r,) vector `W'b` with `b = sum_j w_j s_j (mu_j - m)`.

    A component j has weight w_j, variance s_j and mean mu_j; m is the mean of all rows.

    The vector is computed from third moments along directions without signal. Theorem 2 of Hsu and
    Kakade uses one of these directions. This function uses all d - r of them: it subtracts from |x
    - m|^2 the part along the signal.
    """
    B, r = signal.inside, signal.spectrum.size
    along = B * np.sqrt(signal.spectrum)  # orthonormal columns
    within = np.einsum("abc,bi,ci->a", moments.third, along, along, optimize=True)
    found = B.T @ (moments.norms - within) / (moments.mean.size - r)
    return np.asarray(found)


def _diagonal_spread(
    moments: CentralMoments, signal: Signal, third: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rotation O, and the (r, d) spread `sum_j w_j W'(mu_j - m) s_j'`.

    The spread says how the variances of components vary with their means mu_j.

    s_jh is the variance of component j in coordinate h. The statistic `squares` is the sum of two
    terms: the spread before whitening, and the third moment of the means. Each round computes O
    from the spread, and then the spread from O. Anderson acceleration (1965) extrapolates from the
    latest rounds. Raises NotIdentifiable if the rounds do not converge.
    """
    if moments.squares is None:
        raise InvalidInput(
            'covariance "diag" needs the statistic squares; create the store with it, or choose '
            '"tied-diag"'
        )
    W, squares = signal.whitening, moments.squares

    def rotation_of(spread: NDArray[np.float64]) -> NDArray[np.float64]:
        turned = np.einsum("ah,hb,hc->abc", spread, W, W, optimize=True)
        return lifted_rotation(third - three_orders(turned))

    def left(rotation: NDArray[np.float64]) -> NDArray[np.float64]:
        centred = signal.loadings @ _whitened_means(rotation)
        noise_part = squares - (centred * rotation[-1] ** 2) @ np.square(centred).T
        np.fill_diagonal(noise_part, noise_part.diagonal() / 3)
        return np.asarray(W.T @ noise_part)

    spread = np.zeros(W.T.shape)
    tried: list[NDArray[np.float64]] = []
    found: list[NDArray[np.float64]] = []
    for _ in range(_COMPLETIONS):
        rotation = rotation_of(spread)
        tried.append(spread)
        found.append(left(rotation))
        misses = np.array([(one - other).ravel() for one, other in zip(found, tried, strict=True)])
        if np.abs(misses[-1]).max(initial=0) <= _SETTLED * np.abs(found[-1]).max(initial=0):
            break
        spread = found[-1]
        if len(found) > 1:
            steps = np.diff(misses, axis=0)
            shares = np.linalg.lstsq(steps.T, misses[-1], rcond=_SINGULAR)[0]
            spread = spread - np.tensordot(shares, np.diff(np.array(found), axis=0), axes=1)
        tried, found = tried[-_REMEMBERED:], found[-_REMEMBERED:]
    else:
        raise NotIdentifiable(
            f"the variances of {len(third) + 1} components in each coordinate did not converge in "
            f'{_COMPLETIONS} rounds; ask for fewer components, choose "tied-diag" or "spherical", '
            "or add rows"
        )
    return rotation, found[-1]
