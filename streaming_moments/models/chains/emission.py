"""Emission: protocol of what the states of a chain emit, such as symbols or numeric rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray


class Sequences(Protocol):
    """Chunks of sequences, stored one after another."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(chunks + 1,) index of the first place of each chunk, and then the number of places."""

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
        For each place of the sequences, the index of its row in `table`; -1 for an unobserved
        place.
    table : (m, k) float64
        Positive likelihoods, or their logarithms.
    scale : (m,) float64, optional
        Logarithms of the factors by which the rows of the table were divided.
    """

    rows: NDArray[np.int32]
    table: NDArray[np.float64]
    scale: NDArray[np.float64] | None = None


class Emission(Protocol[Observed_contra]):
    """Distributions of the observations that the hidden states of a chain emit.

    A chain needs only these methods. So a new kind of emission, with its own type of sequences,
    needs only one file.
    """

    def likelihoods(self, sequences: Observed_contra) -> Likelihoods:
        """Return the likelihood of the observation at each place in each state.

        Raises
        ------
        ForeignStatistics
            The sequences have an observation that these states cannot emit.
        """

    def log_likelihoods(self, sequences: Observed_contra) -> Likelihoods:
        """Return the log-likelihoods; raise the errors of `likelihoods`."""

    def maximised(self, sequences: Observed_contra, posterior: NDArray[np.float64]) -> Self:
        """Return the maximum likelihood emission, given the posterior of states at each place.

        `posterior` is (places, k). A state without observations stays unchanged.
        """
