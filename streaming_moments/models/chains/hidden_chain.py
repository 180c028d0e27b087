"""HiddenChain: a hidden Markov chain with any kind of emission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.chains import decoding
from streaming_moments.models.chains.emission import Emission, Likelihoods, Observed
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.read_only import read_only
from streaming_moments.printing.short_repr import short_repr

# this share of the distribution of the first state is spread over all states, so that no state is
# impossible at first
_SMOOTHING = 1e-4


@dataclass(frozen=True, eq=False)
class HiddenChain(Generic[Observed]):
    """Hidden Markov chain that can decode sequences, and can be refitted to them.

    Parameters
    ----------
    emission : Emission
        Distributions of the observations in each state.
    transition : (k, k) float64
        Distribution of the next state, with a column for each current state.
    start : (k,) float64
        Distribution of the first state of a sequence.
    weights : (k,) float64
        Distribution of the states over all places. It is used for the first state of chunks that
        do not begin a sequence.

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
        """Return the (places, k) probability of each state at each place, given the whole chunk."""
        return self.read(sequences)[1]

    def read(self, sequences: Observed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the results of `log_likelihoods` and `posterior`, computed in one pass."""
        posterior = np.empty((int(sequences.offsets[-1]), self.weights.size))
        logs = self._read(sequences, self.emission.likelihoods(sequences), posterior)
        return logs, posterior

    def log_likelihoods(self, sequences: Observed) -> NDArray[np.float64]:
        """Return the (chunks,) log probability, or log density, of each chunk.

        Unobserved places are skipped.
        """
        unread = np.empty((0, self.weights.size))
        return self._read(sequences, self.emission.likelihoods(sequences), unread)

    def decode(self, sequences: Observed) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Return the log probability of the most likely states of each chunk, and these states.

        States are (places,), found by the Viterbi algorithm.
        """
        found = self.emission.log_likelihoods(sequences)
        states = np.empty(found.rows.size, dtype=np.int32)
        with np.errstate(divide="ignore"):
            start, transition = np.log(self._starts(sequences)), np.log(self.transition)
        logs = decoding.viterbi(
            sequences.offsets,
            found.rows,
            read_only(start),
            read_only(transition),
            emission=read_only(found.table),
            states=states,
        )
        return logs, states

    def after_round(self, sequences: Observed) -> tuple[HiddenChain[Observed], float]:
        """Return the chain after one Baum-Welch round, and the log-likelihood before this round.

        Raises
        ------
        InvalidInput
            A chunk continues an earlier one, or all sequences are empty.
        """
        sizes = np.diff(sequences.offsets)
        if not (sequences.begins.all() and sizes.any()):
            raise InvalidInput(
                "Baum-Welch rounds need whole, non-empty sequences; join the chunks of each "
                "sequence"
            )
        found = self.emission.likelihoods(sequences)
        posterior = np.empty((int(sequences.offsets[-1]), self.weights.size))
        score = float(self._read(sequences, found, posterior).sum())
        joint = decoding.expected_moves(
            sequences.offsets,
            found.rows,
            read_only(self._starts(sequences)),
            read_only(self.transition),
            emission=read_only(found.table),
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
        """Return (chunks,) log-likelihoods; also write state probabilities to `posterior`.

        If `posterior` has no rows, the probabilities are not computed.
        """
        logs = decoding.forward_backward(
            sequences.offsets,
            found.rows,
            read_only(self._starts(sequences)),
            read_only(self.transition),
            emission=read_only(found.table),
            posterior=posterior,
        )
        if found.scale is None:
            return logs
        chunks = np.repeat(np.arange(logs.size), np.diff(sequences.offsets))
        factors = np.where(found.rows >= 0, found.scale[found.rows], 0.0)
        return np.asarray(logs + np.bincount(chunks, factors, logs.size))

    def _starts(self, sequences: Observed) -> NDArray[np.float64]:
        """Return the (chunks, k) distribution of the first state of each chunk.

        The distribution is `smooth_start` if the chunk is the beginning of a sequence, else
        `weights`.
        """
        return np.where(sequences.begins[:, None], self.smooth_start, self.weights)

    @property
    def smooth_start(self) -> NDArray[np.float64]:
        """(k,) smoothed distribution of the first state, without zeros."""
        return np.asarray((1 - _SMOOTHING) * self.start + _SMOOTHING / self.start.size)
