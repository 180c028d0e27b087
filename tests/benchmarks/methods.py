"""What every method is given and gives back, so that all are measured alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streaming_moments import CountBatch

CORES = 2


@dataclass(frozen=True, eq=False)
class Prior:
    """What a method is told of the Dirichlet priors.

    Parameters
    ----------
    alpha0 : float, optional
        Sum of the parameters of the proportions. Where it is not known each method takes, or
        learns, its own.
    eta : (n,) float64, optional
        Parameter of each word of the topics; ours has no use for it. Where it is not known peers
        take, or learn, their own.
    """

    alpha0: float | None = None
    eta: NDArray[np.float64] | None = None

    def alpha(self, n_topics: int) -> float | None:
        """Of each topic."""
        return None if self.alpha0 is None else self.alpha0 / n_topics


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method found.

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex.
    alpha : (k,) float64, optional
        Dirichlet parameters of the proportions, of methods that have them.
    weights : (k,) float64, optional
        Shares of the topics, of a model of one topic a document, whose alpha is all zeros.
    likelihood : float
        What the method says itself of how well it fits: of several runs of it, and of nothing
        else, the one that says most is the best. NaN where it says nothing.
    """

    topics: NDArray[np.float64]
    alpha: NDArray[np.float64] | None
    likelihood: float = float("nan")
    weights: NDArray[np.float64] | None = None


class Method(Protocol):
    """A way from counts to topics."""

    @property
    def name(self) -> str:
        """Name for the tables."""

    @property
    def seed(self) -> int | None:
        """Of a method whose runs differ."""

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        """The counts in the method's own input format; outside the clock."""

    def fit(self, prepared: Any) -> Any:
        """The work; inside the clock."""

    def result(self, fitted: Any, prepared: Any) -> Fitted:
        """Topics as arrays; outside the clock."""

    def proportions(self, fitted: Any, prepared: Any) -> NDArray[np.float64]:
        """(documents, k) shares of the topics in the documents given, as its users get them."""


def run_name(corpus: str, method: Method) -> str:
    """Of a measurement; `method_of` and `setting_of` take it apart."""
    return f"{corpus}: {method.name}" + ("" if method.seed is None else f", seed {method.seed}")


def method_of(name: str) -> str:
    """Method and seed."""
    return name.partition(": ")[2]


def setting_of(name: str) -> str:
    """Method without the seed."""
    return method_of(name).partition(", seed ")[0]
