"""Emission: what the states of a chain emit, whatever it is: symbols, or rows of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray


class Sequences(Protocol):
    """Chunks of sequences, one after another."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(chunks + 1,) where each begins."""

    @property
    def begins(self) -> NDArray[np.bool_]:
        """(chunks,) whether a sequence begins with the chunk."""


Observed = TypeVar("Observed", bound=Sequences)
Observed_contra = TypeVar("Observed_contra", bound=Sequences, contravariant=True)


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """How likely what was observed is in each state.

    Parameters
    ----------
    rows : (places,) int32
        The row of the table that each place of the sequences has; -1 where nothing was seen.
    table : (m, k) float64
        Positive likelihoods, or their logarithms.
    scale : (m,) float64, optional
        Logarithms of the factors that were taken out of the rows of likelihoods.
    """

    rows: NDArray[np.int32]
    table: NDArray[np.float64]
    scale: NDArray[np.float64] | None = None


class Emission(Protocol[Observed_contra]):
    """What the states of a chain emit.

    A chain asks nothing else of it, so a further emission is one file: with its own sequences.
    """

    def likelihoods(self, sequences: Observed_contra) -> Likelihoods:
        """Of each place in each state.

        Raises
        ------
        ForeignStatistics
            What was observed is nothing that these states emit.
        """

    def log_likelihoods(self, sequences: Observed_contra) -> Likelihoods:
        """As logarithms; errors as `likelihoods`."""

    def maximised(self, sequences: Observed_contra, posterior: NDArray[np.float64]) -> Self:
        """The likeliest emission where each place is in each state with that probability.

        `posterior` is (places, k). A state in which nothing was seen stays as it is.
        """
