"""DiscreteEmission: emission of a hidden Markov model whose states emit symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics
from streaming_moments.models.chains.emission import Likelihoods
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.simplex import as_columns
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.sequences.windows import SymbolBatch

# This share of each state's distribution is spread over all symbols, so that no symbol is
# impossible in a state.
_SMOOTHING = 1e-4


@dataclass(frozen=True, eq=False)
class DiscreteEmission:
    """`Emission` of symbols, for `SymbolBatch`.

    Parameters
    ----------
    columns : (n, k) float64
        Distribution of the symbols of each state, in columns. For inference, a ten thousandth of
        each column is spread over all symbols.

    Examples
    --------
    >>> emission = DiscreteEmission(np.array([[0.9, 0.2], [0.1, 0.8]]))
    >>> emission.likelihoods(SymbolBatch.of([[1, 0]])).rows
    array([1, 0], dtype=int32)
    """

    columns: NDArray[np.float64]

    __repr__ = short_repr

    __sizeof__ = held_bytes

    @property
    def smoothed(self) -> NDArray[np.float64]:
        """(n, k) distributions of the symbols of each state, without zeros."""
        return np.asarray((1 - _SMOOTHING) * self.columns + _SMOOTHING / len(self.columns))

    def likelihoods(self, sequences: SymbolBatch) -> Likelihoods:
        """Return the likelihood of each symbol in each state; the symbol -1 is unobserved.

        Raises
        ------
        ForeignStatistics
            A symbol is outside the alphabet.
        """
        self.require(sequences.symbols)
        return Likelihoods(sequences.symbols, self.smoothed)

    def log_likelihoods(self, sequences: SymbolBatch) -> Likelihoods:
        """Return the log-likelihoods; raise the errors of `likelihoods`."""
        self.require(sequences.symbols)
        return Likelihoods(sequences.symbols, np.log(self.smoothed))

    def maximised(self, sequences: SymbolBatch, posterior: NDArray[np.float64]) -> DiscreteEmission:
        """Return the maximum likelihood emission, given the posterior of states at each place."""
        self.require(sequences.symbols)
        seen = sequences.symbols >= 0
        counts = np.zeros_like(self.columns)
        np.add.at(counts, sequences.symbols[seen], posterior[seen])
        return DiscreteEmission(np.where(counts.sum(axis=0) > 0, as_columns(counts), self.columns))

    def require(self, symbols: NDArray[Any]) -> None:
        """Check that all symbols are in the alphabet.

        Raises
        ------
        ForeignStatistics
            A symbol is outside the alphabet; the message names it.
        """
        n = len(self.columns)
        if symbols.size and not -1 <= symbols.min() <= symbols.max() < n:
            strange = symbols.max() if symbols.max() >= n else symbols.min()
            raise ForeignStatistics(
                f"symbol {strange} is not in the model's alphabet of {n}; replace symbols outside "
                "it by -1"
            )
