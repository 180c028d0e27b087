"""Emission: protocol of the distributions that the states of a chain emit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray


class Sequences(Protocol):
    """Chunks of sequences, one after another."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(chunks + 1,) start of each chunk."""

    @property
    def begins(self) -> NDArray[np.bool_]:
        """(chunks,) whether a chunk is the beginning of a sequence."""


Observed = TypeVar("Observed", bound=Sequences)
Observed_contra = TypeVar("Observed_contra", bound=Sequences, contravariant=True)


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """Likelihood of each observation in each state.

    Parameters
    ----------
    rows : (places,) int32
        Row of the table for each place of the sequences; -1 for an unobserved place.
    table : (m, k) float64
        Positive likelihoods, or their logarithms.
    scale : (m,) float64, optional
        Logarithms of the factors by which the rows of the table were divided.
    """

    rows: NDArray[np.int32]
    table: NDArray[np.float64]
    scale: NDArray[np.float64] | None = None


class Emission(Protocol[Observed_contra]):
    """Distributions that the states of a chain emit.

    A chain needs nothing else. So a new kind of emission, with its own type of sequences, needs
    only one file.
    """

    def likelihoods(self, sequences: Observed_contra) -> Likelihoods:
        """Return the likelihood of each place in each state.

        Raises
        ------
        ForeignStatistics
            These states cannot emit an observation.
        """

    def log_likelihoods(self, sequences: Observed_contra) -> Likelihoods:
        """Log-likelihoods; raises as `likelihoods`."""

    def maximised(self, sequences: Observed_contra, posterior: NDArray[np.float64]) -> Self:
        """Return the maximum likelihood emission, given the posterior of states at each place.

        `posterior` is (places, k). A state without observations stays unchanged.
        """
