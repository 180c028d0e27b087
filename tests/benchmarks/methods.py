"""What every method is given and gives back, so that all are measured alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streaming_moments import CountBatch

CORES = 2


@dataclass(frozen=True)
class Prior:
    """Parameters of the Dirichlet priors a method is told.

    Parameters
    ----------
    alpha0 : float
        Sum of the parameters of the proportions: for methods of moments always, for peers
        where it is `known`.
    eta : float
        Parameter of each word of the topics; only peers have one.
    known : bool
        Whether these are the truth. Where they are not, peers take their own recommended values.
    """

    alpha0: float
    eta: float
    known: bool


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method found.

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex.
    alpha : (k,) float64
        Dirichlet parameters of the proportions.
    """

    topics: NDArray[np.float64]
    alpha: NDArray[np.float64]


class Method(Protocol):
    """A way from counts to topics."""

    @property
    def name(self) -> str:
        """Name for the tables."""

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        """The counts in the method's own input format; outside the clock."""

    def fit(self, prepared: Any) -> Any:
        """The work; inside the clock."""

    def result(self, fitted: Any, n_words: int) -> Fitted:
        """Topics as arrays; outside the clock."""
