"""HiddenChain: states that follow one another, and what each emits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.chains import decoding
from streaming_moments.models.chains.emission import Emission, Likelihoods, Observed
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.printing.short_repr import short_repr

_SMOOTHING = 1e-4  # of the start: a state in which no sequence seen has begun is not ruled out


@dataclass(frozen=True, eq=False)
class HiddenChain(Generic[Observed]):
    """A hidden Markov chain, by which sequences are read, and which they make likelier.

    Parameters
    ----------
    emission : Emission
        What the states emit.
    transition : (k, k) float64
        Columns on the simplex: a column for each state gone from.
    start : (k,) float64
        Shares of the states with which sequences begin.
    weights : (k,) float64
        Shares of the states over all places, of chunks with which no sequence begins.

    Examples
    --------
    >>> from streaming_moments.models.chains import GaussianEmission, VectorSequences
    >>> emission = GaussianEmission(np.array([[0.0], [9.0]]), np.ones((2, 1, 1)))
    >>> half = np.array([0.5, 0.5])
    >>> chain = HiddenChain(emission, np.array([[0.9, 0.1], [0.1, 0.9]]), half, half)
    >>> chain.decode(VectorSequences.of([[[0.1], [-0.4], [8.7]]]))[1]
    array([0, 0, 1], dtype=int32)
    """

    emission: Emission[Observed]
    transition: NDArray[np.float64]
    start: NDArray[np.float64]
    weights: NDArray[np.float64]

    __repr__ = short_repr

    __sizeof__ = held_bytes

    def posterior(self, sequences: Observed) -> NDArray[np.float64]:
        """(places, k) probability of each state at each place, given the whole sequence."""
        return self.read(sequences)[1]

    def read(self, sequences: Observed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What `log_likelihoods` and `posterior` give, in one pass."""
        posterior = np.empty((int(sequences.offsets[-1]), self.weights.size))
        logs = self._read(sequences, self.emission.likelihoods(sequences), posterior)
        return logs, posterior

    def log_likelihoods(self, sequences: Observed) -> NDArray[np.float64]:
        """(chunks,) log probability, or density, of each; what was not seen says nothing."""
        unread = np.empty((0, self.weights.size))
        return self._read(sequences, self.emission.likelihoods(sequences), unread)

    def decode(self, sequences: Observed) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Likeliest states of each sequence (Viterbi): log probabilities, and (places,) states."""
        found = self.emission.log_likelihoods(sequences)
        states = np.empty(found.rows.size, dtype=np.int32)
        with np.errstate(divide="ignore"):
            start, transition = np.log(self._starts(sequences)), np.log(self.transition)
        logs = decoding.viterbi(
            sequences.offsets, found.rows, start, transition, emission=found.table, states=states
        )
        return logs, states

    def after_round(self, sequences: Observed) -> tuple[HiddenChain[Observed], float]:
        """The likelier chain after a round of Baum and Welch, and the log likelihood by this one.

        Raises
        ------
        InvalidInput
            A chunk that goes on with an earlier one, or no sequences.
        """
        sizes = np.diff(sequences.offsets)
        if not (sequences.begins.all() and sizes.any()):
            raise InvalidInput(
                "rounds need whole sequences, and places in them; join the chunks of each sequence"
            )
        found = self.emission.likelihoods(sequences)
        posterior = np.empty((int(sequences.offsets[-1]), self.weights.size))
        score = float(self._read(sequences, found, posterior).sum())
        joint = decoding.expected_moves(
            sequences.offsets,
            found.rows,
            self._starts(sequences),
            self.transition,
            emission=found.table,
            posterior=posterior,
        )
        left = joint.sum(axis=0)
        transition = np.where(left > 0, joint / np.where(left > 0, left, 1), self.transition)
        start = posterior[sequences.offsets[:-1][sizes > 0]].mean(axis=0)
        emission = self.emission.maximised(sequences, posterior)
        return HiddenChain(emission, transition, start, posterior.mean(axis=0)), score

    def _read(
        self, sequences: Observed, found: Likelihoods, posterior: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(chunks,) log likelihoods; posteriors where there is room for them."""
        logs = decoding.forward_backward(
            sequences.offsets,
            found.rows,
            self._starts(sequences),
            self.transition,
            emission=found.table,
            posterior=posterior,
        )
        if found.scale is None:
            return logs
        chunks = np.repeat(np.arange(logs.size), np.diff(sequences.offsets))
        factors = np.where(found.rows >= 0, found.scale[found.rows], 0.0)
        return np.asarray(logs + np.bincount(chunks, factors, logs.size))

    def _starts(self, sequences: Observed) -> NDArray[np.float64]:
        """(chunks, k) states of the first place of each, where a sequence may begin or not."""
        return np.where(sequences.begins[:, None], self.smooth_start, self.weights)

    @property
    def smooth_start(self) -> NDArray[np.float64]:
        """(k,) shares of the states with which sequences begin, without zeros."""
        return np.asarray((1 - _SMOOTHING) * self.start + _SMOOTHING / self.start.size)
