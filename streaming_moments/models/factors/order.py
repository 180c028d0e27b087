"""Order: choose whether third or fourth cumulants, or both, separate the factors best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.vectors.factors import (
    ORDERS,
    Factors,
    Order,
    independent_factors,
    weak_factors,
)
from streaming_moments.models.mixtures.matching import matched_rows
from streaming_moments.models.vectors import fits_of_halves
from streaming_moments.statistics.vectors.moments import VectorMoments
from streaming_moments.statistics.vectors.statistics import VectorStatistics

AUTO = "auto"
"""Value of the option `order` that lets the cumulants decide."""
# Take only third or only fourth cumulants if the columns of the two halves of the rows then differ
# by less than this share of their difference with both cumulants.
_BETTER = 0.9
_NAMES = {"third": "third cumulants", "fourth": "fourth cumulants", "both": "both"}

Halves = tuple[Factors, Factors]


def fitted(
    whole: VectorStatistics, moments: VectorMoments, k: int, order: str, noise: Any
) -> tuple[Factors, Order, Halves | None, str]:
    """Fit the factors by third cumulants, fourth cumulants, or both; "auto" chooses the order.

    Returns the factors, the order, the factors of the two halves, and why "auto" chose this order.
    The reason is empty if the order was given.

    "auto" uses both cumulants, with an exception: if factors by only one of them differ less
    between the two halves of the rows, and at most one factor has this cumulant within noise, it
    uses only this one. Without fourth moments it uses third cumulants. Raises as
    `independent_factors` does.
    """

    def fit(given: VectorMoments, order: Any) -> Factors:
        return independent_factors(given, k, order, noise)

    if order != AUTO or moments.fourth is None:
        chosen: Any = "third" if order == AUTO else order
        found = fit(moments, chosen)
        halves = fits_of_halves(whole, lambda half: fit(half, chosen))
        told = "order third, as there are no fourth moments" if order == AUTO else ""
        return found, chosen, halves, told
    tried = {one: fit(moments, one) for one in ORDERS}
    both = fits_of_halves(whole, lambda half: {one: fit(half, one) for one in ORDERS})
    if both is None or k == 1:
        return tried["both"], "both", both and (both[0]["both"], both[1]["both"]), "order both"
    by_half = {one: (both[0][one], both[1][one]) for one in ORDERS}
    apart = {one: _apart(tried[one], by_half[one]) for one in ORDERS}
    clear = [one for one in ORDERS if weak_factors(tried[one], one).size <= 1]
    best: Order = min(clear, key=lambda one: apart[one], default="both")
    if apart[best] > _BETTER * apart["both"]:
        best = "both"
    shares = ", ".join(f"{apart[one]:.1%} with {_NAMES[one]}" for one in ORDERS)
    told = f"order {best}: factors fitted to the two halves of the rows differ by {shares}"
    return tried[best], best, by_half[best], told


def matched_halves(
    found: Factors, halves: Halves
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (k, d) columns of the even and of the odd half of the rows.

    Row j of each result is the column that belongs to factor j of all rows, with the same sign.
    """
    own = found.mixing.T
    # the sign of a factor without skewness is arbitrary: match either sign
    either = [
        matched_rows(np.vstack([own, -own]), np.vstack([one.mixing.T, -one.mixing.T]))
        for one in halves
    ]
    even, odd = (one[: len(own)] for one in either)
    return even, odd


def _apart(found: Factors, halves: Halves) -> float:
    """Return by how much the columns of the two halves of the rows differ.

    The result is the root mean square of the distances, each relative to the length of the column.
    """
    even, odd = matched_halves(found, halves)
    lengths = np.linalg.norm(found.mixing, axis=0)
    return float(np.sqrt(np.square(np.linalg.norm(even - odd, axis=1) / lengths).mean()))
