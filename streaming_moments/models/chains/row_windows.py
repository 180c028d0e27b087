"""Fits chains of numeric rows: by moments of three consecutive rows, then Baum-Welch rounds.

Given the hidden state of the middle row, three consecutive rows x1, x2, x3 are independent. So the
sums over all windows of three rows

    T = sum [1; x2; upper(x2 x2')] (x) [1; x1] (x) [1; x3]

are those of a mixture of three views (see `decompositions.views`). A column of the mixture has a 1,
which fixes its scale, and then the means and second moments of the rows of a state. T is additive,
but no kind of store has it: kind "vectors" ignores the order of rows, and kind "sequences" has
symbols, not numbers. For rows of d numbers, T has `(d + 1)^3 (d + 2) / 2` entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.decompositions.views import (
    contracted,
    row_pairs,
    whiten_row_view,
    whiten_sides,
    whitened_tensor,
)
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.chains.gaussian import GaussianEmission, no_narrower
from streaming_moments.models.chains.hidden_chain import HiddenChain
from streaming_moments.models.chains.vector_sequences import VectorSequences
from streaming_moments.numerics.lazy_scipy import optimize

# The variance of a state in any direction is raised to at least this share of the variance of all
# rows, because estimates from moments can be negative.
_LEAST = 0.1
_PART = 1 << 13  # number of windows that are multiplied at a time
# Before the first Baum-Welch round, this share of each column of the transition matrix is spread
# over all states, because rounds never change a probability of 0.
_SPREAD = 1e-2
# Baum-Welch rounds end when a round raises the log-likelihood by fewer nats per row than this.
_GAIN = 1e-7


@dataclass(frozen=True, eq=False)
class RowWindows:
    """Sums over windows of three consecutive rows. Each column of the rows is standardised.

    centre, scale : (d,) float64, means and standard deviations of the columns
    sums : (1 + d + d (d + 1) / 2, 1 + d, 1 + d) float64, T of the module docstring. Its axes are
        the middle row, the row before it and the row after it.
    firsts : (1 + d,) float64, sum of the first rows of the sequences
    """

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    sums: NDArray[np.float64]
    firsts: NDArray[np.float64]

    @classmethod
    def of(cls, sequences: VectorSequences) -> RowWindows:
        """Sum over the windows of whole sequences; raise InvalidInput if a column is constant."""
        seen, offsets = sequences.seen, sequences.offsets
        rows = sequences.values[seen]
        centre, scale = rows.mean(axis=0), rows.std(axis=0)
        if not (scale > 0).all():
            constant = np.flatnonzero(~(scale > 0)).tolist()
            raise InvalidInput(f"columns {constant} of the rows are constant; leave them out")
        wide = np.ones((len(seen), 1 + scale.size))
        wide[:, 1:] = np.where(seen[:, None], (sequences.values - centre) / scale, 0.0)
        last = np.arange(len(seen))
        inside = last - np.repeat(offsets[:-1], np.diff(offsets)) >= 2
        places = last[inside & seen & np.roll(seen, 1) & np.roll(seen, 2)]
        one, two = np.triu_indices(scale.size)
        sums = np.zeros((1 + scale.size + one.size, wide.shape[1] ** 2))
        for part in np.split(places, range(_PART, places.size, _PART)):
            middle = wide[part - 1]
            features = np.hstack([middle, middle[:, 1 + one] * middle[:, 1 + two]])
            outer = wide[part - 2][:, :, None] * wide[part][:, None, :]
            sums += features.T @ outer.reshape(part.size, sums.shape[1])
        begun = offsets[:-1][np.diff(offsets) > 0]
        firsts = wide[begun[seen[begun]]].sum(axis=0)
        return cls(centre, scale, sums.reshape(len(sums), *[wide.shape[1]] * 2), firsts)

    def chain(self, k: int) -> HiddenChain[VectorSequences]:
        """Compute the hidden chain of k states that has these moments.

        Raises NotIdentifiable for more than d + 1 states, or if the means of states are linearly
        dependent.
        """
        d = self.scale.size
        if k > d + 1:
            raise NotIdentifiable(
                f"{k} states need rows of at least {k - 1} numbers, but these have {d}; ask for at "
                f"most {d + 1} states"
            )
        # Use the constant column of 1 twice: the columns are centred, so the means of k states span
        # only k - 1 directions, and the copy adds the missing direction.
        twice = np.r_[0, : d + 1]
        slices = self.sums[:, twice][:, :, twice]
        sides = whiten_sides(slices[0], np.eye(d + 1), np.eye(d + 1), k)
        pairs = row_pairs(slices, sides)
        whitened = whiten_row_view(pairs[: d + 1], sides)
        means = contracted(slices[: d + 1], whitened.W) / sides.triples
        rotation = by_joint_diagonalization(whitened_tensor(whitened, means))
        before, after = pairs[:, :k], pairs[:, k:]
        columns = before @ (pairs[: d + 1, k:].T @ whitened.W)
        columns += after @ (pairs[: d + 1, :k].T @ whitened.W)
        columns = columns @ rotation
        shares = columns[0] ** 2
        if not (shares > 0).all():
            raise NotIdentifiable(f"some of {k} states have weight 0; ask for fewer states")
        columns = columns / columns[0]
        order = np.argsort(-shares, kind="stable")
        return self._of_columns(columns[:, order], shares[order] / shares.sum())

    def _of_columns(
        self, columns: NDArray[np.float64], shares: NDArray[np.float64]
    ) -> HiddenChain[VectorSequences]:
        """Return the chain whose states have the first and second moments in `columns`."""
        d, k = self.scale.size, shares.size
        means = columns[: d + 1]
        one, two = np.triu_indices(d)
        seconds = np.empty((k, d, d))
        seconds[:, one, two] = seconds[:, two, one] = columns[d + 1 :].T
        spread = seconds - means[1:].T[:, :, None] * means[1:].T[:, None, :]
        spread = np.stack([no_narrower(each, _LEAST) for each in spread])
        emission = GaussianEmission(
            self.centre + means[1:].T * self.scale, spread * np.outer(self.scale, self.scale)
        )
        # the mean product of a middle row and the row before it is `M J M'`, where M has the means
        # of the states, and J the shares of pairs of consecutive states
        pairs = self.sums[: d + 1, :, 0] / self.sums[0, 0, 0]
        joint = optimize.nnls(np.kron(means, means), pairs.ravel())[0].reshape(k, k)
        left = joint.sum(axis=0)
        transition = np.where(left > 0, joint / np.where(left > 0, left, 1), 1 / k)
        start = optimize.nnls(means, self.firsts / max(self.firsts[0], 1))[0]
        start = start / start.sum() if start.sum() > 0 else shares
        return HiddenChain(emission, transition, start, shares)


def gaussian_chain(
    sequences: VectorSequences, k: int, rounds: int = 100
) -> HiddenChain[VectorSequences]:
    """Fit a chain of k states to sequences of numeric rows.

    The fit starts from moments of three consecutive rows. Baum-Welch rounds follow, until a round
    raises the log-likelihood by less than a ten millionth of a nat per row.

    Parameters
    ----------
    sequences : VectorSequences
        Whole sequences.
    k : int
        Number of states, at most one more than the number of columns of the rows.
    rounds : int
        Maximum number of Baum-Welch rounds. With 0, only moments are used.

    Raises
    ------
    NotIdentifiable
        The moments identify fewer states; the message says how many.
    InvalidInput
        A column is constant.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> states = np.cumsum(rng.random((50, 40)) < 0.1, axis=1) % 2
    >>> rows = [4 * one[:, None] + rng.normal(size=(40, 1)) for one in states]
    >>> gaussian_chain(VectorSequences.of(rows), 2).transition.diagonal().round(1)
    array([0.9, 0.9])
    """
    chain, before = RowWindows.of(sequences).chain(k), -np.inf
    if rounds:
        chain = replace(chain, transition=(1 - _SPREAD) * chain.transition + _SPREAD / k)
    for _ in range(rounds):
        following, score = chain.after_round(sequences)
        if score - before < _GAIN * sequences.seen.sum():
            break
        chain, before = following, score
    return chain
