"""Finds independent factors of numeric rows by their third or fourth cumulants."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.decompositions.vectors.central_moments import CentralMoments, contracted
from streaming_moments.decompositions.vectors.signal import Signal
from streaming_moments.errors import InvalidInput, NotIdentifiable

Order = Literal["third", "fourth", "both"]
ORDERS: tuple[Order, ...] = ("third", "fourth", "both")
Noise = Literal["spherical", "diag", "full"]
NOISES: tuple[Noise, ...] = ("spherical", "diag", "full")

_CALLED = MappingProxyType(
    {
        "third": ("skewness", "fourth or both"),
        "fourth": ("kurtosis", "third or both"),
        "both": ("skewness or kurtosis", ""),
    }
)
_STANDS_OUT = 3.0  # a skewness or kurtosis below this many standard errors could be noise alone
_TURNS = 3
# Weight of slices of the third cumulant in a joint diagonalisation, relative to slices of the
# fourth cumulant, which have more noise. Measured on skewed, kurtotic and flat factors: with weight
# 5, the error is at most a fifth larger than with the better of the two cumulants alone. If factors
# of several kinds are mixed, the error is smaller than with either alone.
_OF_THIRD = 5.0


@dataclass(frozen=True, eq=False)
class Factors:
    """Independent factors, by decreasing size of the skewness or kurtosis that separated them.

    mixing : (d, k) float64, A in `x = m + A h + noise` for factors h with variance 1
    unmixing : (d, k) float64; `unmixing' (x - m)` are the factors of a row x, plus noise; m is the
        mean of all rows
    skewness, kurtosis : (k,) float64, third and excess fourth cumulants; kurtosis is NaN without
        fourth moments
    skewness_error, kurtosis_error : (k,) float64, standard errors of skewness and kurtosis for
        normal rows
    spectrum : (k,) float64, leading eigenvalues of the covariance without noise (see `Signal`)
    noise : (d,) float64, noise variance of each coordinate; empty for noise of unknown covariance
    """

    mixing: NDArray[np.float64]
    unmixing: NDArray[np.float64]
    skewness: NDArray[np.float64]
    kurtosis: NDArray[np.float64]
    skewness_error: NDArray[np.float64]
    kurtosis_error: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    noise: NDArray[np.float64]


def independent_factors(
    moments: CentralMoments, k: int, order: Order = "third", noise: Noise = "spherical"
) -> Factors:
    """Find k independent factors h of rows `x = m + A h + noise`; at most one may be normal.

    Order "third" separates skewed factors, "fourth" separates kurtotic factors, and "both"
    separates factors of either kind. `require_significant` checks that the cumulants of the factors
    exceed noise. The noise of the rows is normal. It has one variance ("spherical"), one for each
    coordinate ("diag"), or an unknown covariance ("full"). With "full", the length of a column of A
    is unknown, and the variance of a factor plus its noise is set to 1. Moments must have `fourth`,
    except for order "third" with noise "spherical" or "diag".

    If noise is "full", and the factors have kurtoses of both signs, whitening does not remove the
    noise.

    Raises NotIdentifiable if the rows have too few dimensions, or vary in too few directions.

    Examples
    --------
    >>> from streaming_moments.decompositions.vectors.central_moments import GivenMoments
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.exponential(size=(20000, 2)) @ np.array([[2.0, 0, 1], [0, 1, 0]])
    >>> moments = GivenMoments.of_rows(rows + rng.normal(0, 0.1, (20000, 3)), np.eye(3))
    >>> np.abs(independent_factors(moments, 2).mixing.round(1)).T.tolist()
    [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    require_order(order)
    require_noise(noise)
    if k < 1:
        raise InvalidInput(f"{k} factors are asked for; give at least 1")
    wanted = (order != "third" and f"order {order}", noise == "full" and "full noise")
    if moments.fourth is None and any(wanted):
        named = " and ".join(one for one in wanted if one)
        raise InvalidInput(
            f"{named} needs the statistic fourth; create the store with it, or ask for order third "
            "and noise spherical or diag"
        )
    if noise == "full":
        return _unknown_noise(moments, k, order)
    return _known_noise(moments, k, order, diagonal=noise == "diag")


def weak_factors(found: Any, order: str) -> NDArray[np.intp]:
    """Return the indices of factors whose skewness or kurtosis is below three standard errors.

    `order` chooses which of the two is compared.
    """
    size, error = _separating(found, order)
    return np.flatnonzero(np.abs(size) < _STANDS_OUT * error)


def require_significant(found: Factors, order: str) -> None:
    """Raise NotIdentifiable if noise alone could explain the skewness or kurtosis of a factor."""
    weak = weak_factors(found, order)
    if not weak.size:
        return
    size, error = _separating(found, order)
    called, other = _CALLED[order]
    first, rest = weak[0], size.size - weak.size
    remedy = f"ask for {rest} factors" if rest else "add rows"
    remedy += f", or for order {other}" if other else ""
    if np.isnan(found.kurtosis).any():
        remedy += " of a store that is created with the statistic fourth"
    raise NotIdentifiable(
        f"{weak.size} of {size.size} factors have no {called} beyond noise: for factor {first}, it "
        f"is {size[first]:.3f}, with a standard error of {error[first]:.3f}; {remedy}"
    )


def _separating(found: Any, order: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (k,) skewness or kurtosis that separated each factor, and (k,) standard errors.

    For order "both", take for each factor the one that is larger in units of its standard error.
    """
    third = found.skewness, found.skewness_error
    if order == "third":
        return third
    fourth = found.kurtosis, found.kurtosis_error
    if order == "fourth":
        return fourth
    clearer = np.abs(third[0]) * fourth[1] > np.abs(fourth[0]) * third[1]
    return np.where(clearer, third[0], fourth[0]), np.where(clearer, third[1], fourth[1])


def require_order(order: str) -> None:
    """Raise InvalidInput for a name that is not in `ORDERS`."""
    if order not in ORDERS:
        raise InvalidInput(f'order is "{order}"; choose {", ".join(ORDERS)}')


def require_noise(noise: str) -> None:
    """Raise InvalidInput for a name that is not in `NOISES`."""
    if noise not in NOISES:
        raise InvalidInput(f'noise is "{noise}"; choose {", ".join(NOISES)}')


def fourth_cumulant(moments: CentralMoments) -> NDArray[np.float64]:
    """Return the (s, s, s, s) fourth moment of projections, minus that of a normal law.

    The normal law has the covariance of the projections.
    """
    assert moments.fourth is not None
    S = moments.sketch_covariance
    pairs = np.multiply.outer(S, S)
    cumulant = moments.fourth - pairs
    cumulant -= pairs.transpose(0, 2, 1, 3)
    cumulant -= pairs.transpose(0, 2, 3, 1)
    return np.asarray(cumulant)


def _known_noise(moments: CentralMoments, k: int, order: Order, diagonal: bool) -> Factors:
    signal = Signal.of(moments, k, diagonal, whole=True)
    B = signal.inside
    fourth = None if moments.fourth is None else fourth_cumulant(moments)
    third = contracted(moments.third, B, B, B)
    four = None if fourth is None else contracted(fourth, B, B, B, B)
    rotation = _rotation(third, four, order)
    unmixing = signal.whitening @ rotation
    # along a column of `unmixing`, a row has variance 1 + v: 1 of the factor, and v of the noise
    sizes = 1 + np.square(unmixing).T @ signal.noise
    return _ordered(
        signal.loadings @ rotation, unmixing, sizes, third, four, rotation, order, moments.number,
        signal.spectrum, signal.noise,
    )  # fmt: skip


def _unknown_noise(moments: CentralMoments, k: int, order: Order) -> Factors:
    """Find factors with noise of unknown covariance.

    Whitens the rows by a contraction of the fourth cumulant over two of its indices, because normal
    noise does not change this cumulant.
    """
    fourth, basis = fourth_cumulant(moments), moments.basis
    s = len(moments.sketch_covariance)
    if s < k:
        raise NotIdentifiable(
            f"{k} factors are asked for, but the basis has {s} columns; create the store with a "
            "wider one"
        )
    values, vectors = np.linalg.eigh(moments.sketch_covariance)
    weights = _weighting(values[-k:], vectors[:, -k:])
    for _ in range(_TURNS):
        folded = np.einsum("abcd,cd->ab", fourth, weights, optimize=True)
        values, vectors = np.linalg.eigh(folded)
        chosen = np.argsort(-np.abs(values))[:k]
        values, vectors = values[chosen], vectors[:, chosen]
        weights = _weighting(np.abs(values), vectors)
    if (values > 0).any() and (values < 0).any():
        # if eigenvalues of the contraction have both signs, it cannot whiten the rows: whiten by
        # the covariance instead, although it includes noise
        values, vectors = np.linalg.eigh(moments.sketch_covariance)
        values, vectors = values[-k:], vectors[:, -k:]
    B = vectors / np.sqrt(np.abs(values))
    third, four = contracted(moments.third, B, B, B), contracted(fourth, B, B, B, B)
    rotation = _rotation(third, four, order)
    inside = B @ rotation
    lengths = np.sqrt((inside * (moments.sketch_covariance @ inside)).sum(axis=0))
    turned = rotation / lengths
    # `columns` are projections of the columns of `mixing`; choose those in the range of the basis
    columns = np.abs(values) * vectors * np.sqrt(1 / np.abs(values)) @ rotation * lengths
    mixing = np.linalg.pinv(basis.T) @ columns
    return _ordered(
        mixing, basis @ B @ turned, np.ones(k), third, four, turned, order, moments.number,
        np.abs(values), np.empty(0),
    )  # fmt: skip


def _weighting(values: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((vectors / values) @ vectors.T)


def _rotation(
    third: NDArray[np.float64], fourth: NDArray[np.float64] | None, order: Order
) -> NDArray[np.float64]:
    """Return the (k, k) rotation that diagonalises slices of the third or fourth cumulant, or both.

    The slices of the fourth cumulant are its k leading eigenmatrices (Cardoso and Souloumiac 1993,
    JADE).
    """
    if order == "third" or fourth is None:
        return by_joint_diagonalization(third)
    k = len(fourth)
    unfolded = fourth.reshape(k * k, k * k)
    values, vectors = np.linalg.eigh((unfolded + unfolded.T) / 2)
    chosen = np.argsort(-np.abs(values))[:k]
    matrices = (vectors[:, chosen] * values[chosen]).T.reshape(k, k, k)
    slices = (matrices + matrices.transpose(0, 2, 1)) / 2
    if order == "both":
        slices = np.concatenate([_OF_THIRD * third, slices])
    return by_joint_diagonalization(slices)


def _ordered(
    mixing: NDArray[np.float64],
    unmixing: NDArray[np.float64],
    sizes: NDArray[np.float64],
    third: NDArray[np.float64],
    fourth: NDArray[np.float64] | None,
    rotation: NDArray[np.float64],
    order: Order,
    rows: int,
    spectrum: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> Factors:
    """Return factors ordered by decreasing skewness or kurtosis (`order` chooses which).

    The sign of each factor is chosen so that its skewness is positive.
    """
    skewness = np.einsum("abc,aj,bj,cj->j", third, *(rotation,) * 3, optimize=True)
    if fourth is None:
        kurtosis = np.full(skewness.size, np.nan)
    else:
        kurtosis = np.einsum("abcd,aj,bj,cj,dj->j", fourth, *(rotation,) * 4, optimize=True)
    errors = np.sqrt(6 / rows) * sizes**1.5, np.sqrt(24 / rows) * sizes**2
    if order == "both":
        told = np.maximum(np.abs(skewness / errors[0]), np.abs(kurtosis / errors[1]))
    else:
        told = np.abs(skewness if order == "third" else kurtosis)
    place = np.lexsort((np.arange(told.size), -told.round(9)))
    signs = np.where(skewness < 0, -1.0, 1.0)
    return Factors(
        (mixing * signs)[:, place],
        (unmixing * signs)[:, place],
        (skewness * signs)[place],
        kurtosis[place],
        errors[0][place],
        errors[1][place],
        spectrum,
        noise,
    )
