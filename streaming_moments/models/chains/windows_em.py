"""Expectation maximisation of a hidden Markov model on windows of three symbols."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.three_view.triples import Triples
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.simplex import as_columns


@dataclass(frozen=True, eq=False)
class Chain:
    """Parameters of a hidden Markov model that is fitted to windows of three symbols.

    Implements the protocol `Hidden`.

    emission : (n, k) float64, distribution of the symbols of each state, in columns
    transition : (k, k) float64, distribution of the next state, with a column for each current
        state
    weights : (k,) float64, distribution of the state at the first place of a window
    """

    emission: NDArray[np.float64]
    transition: NDArray[np.float64]
    weights: NDArray[np.float64]

    __sizeof__ = held_bytes

    @property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """The parameters: `emission`, `transition` and `weights`."""
        return self.emission, self.transition, self.weights

    def drawn(self, rng: np.random.Generator) -> Chain:
        """Return random parameters of the same shapes."""
        n, k = self.emission.shape
        emission, transition = rng.dirichlet(np.ones(n), k).T, rng.dirichlet(np.ones(k), k).T
        return Chain(emission, transition, np.full(k, 1 / k))

    def after_round(self, triples: Triples) -> tuple[Chain, float]:
        """Return the parameters after an EM round, and the mean log-likelihood before it."""
        O, T, w = self.tables
        joint = T * w
        told = triples.posteriors(O @ joint.T, O, O @ T)
        first, second = joint * (told.left.T @ O), T * (O.T @ told.right)
        emitted = O * (told.left @ joint) + told.middle + O * (told.right @ T.T)
        shares = first.sum(axis=0) / first.sum()
        return Chain(as_columns(emitted), as_columns(first + second), shares), told.score
