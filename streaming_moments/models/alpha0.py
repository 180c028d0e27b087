"""Alpha0: finds the sum of the Dirichlet parameters with the best held-out likelihood."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form, Mixture, form_of
from streaming_moments.decompositions.moments import require_topics
from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.decompositions.svtd import Recovered, recover
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.halves import (
    STEP,
    HalfRows,
    HeldOut,
    fits_of,
    likeliest_alpha,
    parts_of,
    scored_with,
)
from streaming_moments.models.refinement import PairTopics, dirichlet_pair_weights, refined_there
from streaming_moments.models.rows import Rows
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.symmetric import three_orders
from streaming_moments.numerics.unimodal import highest_place
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.pair_rows import PairRows
from streaming_moments.statistics.counts.tensor import (
    TensorSums,
    tensor_sums,
    tensor_sums_bytes,
    unwhitened_rows,
)
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.statistics.counts.whitening import (
    SeenMoments,
    Whitening,
    positive,
    require_columns,
    require_eigenvalues,
)
from streaming_moments.statistics.row_block import interleaved

AUTO: Literal["auto"] = "auto"
WITHOUT_HALVES = 0.1
# Values of alpha0 that a search tries. Together they cost as much as four fits. With larger values,
# all documents would have nearly the same topics. 0 is left out: each document would have one
# topic, and such a model predicts passages badly. If documents do have one topic each, leaving out
# 0 makes the error of the topics 5% larger.
TRIED = (0.05, 0.1, 0.25, 0.6, 1.5, 3.5, 8.0)
# Rounds of refinement of a trial fit. With more rounds, the search chooses a value one step too
# high in `TRIED`. Without refinement, it estimates a large alpha0 badly.
TRIAL_ROUNDS = 2
# Trial fits use only pairs of this many most frequent words. These pairs determine alpha0 as well
# as the pairs of all words do, and cost less.
LEADING_WORDS = 500
# The joint diagonalisation of a trial fit stops when all Jacobi rotations have angles below this,
# in radians. With 50 topics, this early stop changes likelihoods by a tenth of their noise.
_TOLERANCE = 1e-3
_BETWEEN = 2001  # number of points at which the curve of the likelihood over alpha0 is evaluated


@dataclass(frozen=True)
class Alpha0Search:
    """Result of a search for alpha0 by held-out likelihood.

    Each value is scored by the likelihood of the word pairs of one half of the documents under
    topics of the other half.

    tried : values of alpha0 that were tried, in increasing order; empty if the statistics have no
        halves
    held_out : for each value, the mean log-likelihood of a held-out word pair
    noise : for each value, the uncertainty of the difference between its likelihood and that of the
        best value. The difference is computed in each half of the documents; the uncertainty is
        half of the distance between the two results.
    """

    tried: tuple[float, ...] = ()
    held_out: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tried", "held_out", "noise"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def best(self) -> int:
        """Index in `tried` of the value with the best held-out likelihood."""
        return int(np.argmax(self.held_out))

    @property
    def within_noise(self) -> tuple[int, ...]:
        """Indices in `tried` of the other values that differ from the best one by noise alone."""
        least = self.held_out[self.best]
        return tuple(
            place
            for place, (one, noise) in enumerate(zip(self.held_out, self.noise, strict=True))
            if place != self.best and least - one <= noise
        )

    @property
    def alpha0(self) -> float:
        """Best alpha0, rounded to two digits.

        The best alpha0 is the maximum of a cubic spline through the likelihoods of the tried
        values, over the logarithm of alpha0. But if 0 is the best value tried, the result is 0.

        Examples
        --------
        >>> Alpha0Search((0.3, 0.5, 1.0), (-8.2, -8.0, -8.1), (0.0, 0.0, 0.0)).alpha0
        0.6
        >>> Alpha0Search().alpha0
        0.1
        """
        if not self.tried:
            return WITHOUT_HALVES
        from scipy.interpolate import CubicSpline

        best = self.best
        known = [
            (math.log(one), likelihood)
            for one, likelihood in zip(self.tried, self.held_out, strict=True)
            if one
        ]
        if not self.tried[best] or len(known) < 3:
            return self.tried[best]
        # look for the maximum of the curve only between the neighbours of the best tried value
        near = [math.log(one) for one in self.tried[max(best - 1, 0) : best + 2] if one]
        between = np.linspace(near[0], near[-1], _BETWEEN)
        top = between[np.argmax(CubicSpline(*zip(*known, strict=True))(between))]
        return float(f"{math.exp(top):.2g}")

    @property
    def sentence(self) -> str:
        """One sentence for users that says which alpha0 was chosen and why."""
        if not self.tried:
            return (
                f"alpha0 is {WITHOUT_HALVES:g} by default: the statistics have no halves with word "
                "pairs, so a fit cannot choose it"
            )
        values = of_number(len(self.tried), "value")
        chosen = f"alpha0 {self.alpha0:g} has the best held-out likelihood of {values}"
        if self.best == len(self.tried) - 1:
            return f"{chosen}, the largest tried"
        if not self.within_noise:
            return chosen
        near = [self.alpha0, *(self.tried[place] for place in (self.best, *self.within_noise))]
        return f"{chosen}; {min(near):g} to {max(near):g} are within the noise"


@dataclass(frozen=True, eq=False)
class Alpha0Trial:
    """A trial fit with one value of alpha0.

    held_out : log-likelihood of held-out word pairs
    alpha : alpha_sum with which the topics predict held-out word pairs best
    topics : (words, k) topics, over the most frequent words
    """

    held_out: HeldOut
    alpha: float
    topics: NDArray[np.float64]


def search_alpha0(
    rows: Rows, seen: Any, options: Any
) -> tuple[Alpha0Search, tuple[Alpha0Trial, ...]]:
    """Find alpha0 by trial fits.

    Returns the search, and a tuple of trials: the best trial first, then all trials whose scores
    differ from the best by noise alone. `seen` is a handle of the moments that `seen_by` returns,
    which the final fit also needs. All trials share the same `SharedMoments`. A trial fits only the
    most frequent words. Its score is that with the best alpha_sum for inferring topics of
    documents. Raises NotIdentifiable if no value of alpha0 gives separable topics.
    """
    words = min(rows.basis.core, LEADING_WORDS)
    three = rows.brought("pair counts", partial(PairRows.with_halves, leading=words), halves=True)
    pairs, *parts = parts_of(three)
    halves, k = HalfRows(pairs, tuple(parts)), options.topics
    trials: dict[float, Alpha0Trial] = {}
    refusals: list[NotIdentifiable] = []

    def likelihood(alpha0: float) -> float:
        try:
            start = rows.value(rows.once(STEP, leading_topics, moments, form_of(alpha0), k))
            whole = refined_there(pairs, start, TRIAL_ROUNDS)
            fits = fits_of(halves, whole, TRIAL_ROUNDS)
        except NotIdentifiable as error:
            # with a large alpha0, the corrected second moment can have too few positive
            # eigenvalues: give this alpha0 the worst score
            refusals.append(error)
            return -math.inf
        if fits is None:
            return -math.inf
        # score the topics with the alpha_sum that suits them best: if they were scored with alpha0
        # itself, large values would win, because they smooth noisy topics
        last = max(trials, key=lambda one: trials[one].held_out.mean, default=None)
        near = alpha0 if last is None else trials[last].alpha
        alpha = likeliest_alpha(halves, fits, near)
        held_out = scored_with(halves, fits, [alpha])[0]
        trials[alpha0] = Alpha0Trial(held_out, alpha, pairs.once(STEP, topics_of, whole))
        return trials[alpha0].held_out.mean

    require_topics(k)
    require_columns(k, rows.basis)
    whitened = rows.once("whitening", widest, seen, rows.basis, k)
    nbytes = tensor_sums_bytes(rows.basis.columns, k + 1)
    sums = rows.summed("whitened slices", tensor_sums, whitened, nbytes=nbytes)
    leading = rows.each("topic rows", leading_rows, whitened, words)
    moments = rows.once(STEP, SharedMoments.of, sums, whitened, leading)
    highest_place(len(TRIED), lambda place: likelihood(TRIED[place]))
    if not trials:
        if refusals:
            raise refusals[0]
        return Alpha0Search(), ()
    search = _searched(trials)
    if search.alpha0 not in trials:
        # the maximum of a curve through few tried values can be wrong by a tenth: try the alpha0 at
        # this maximum, too, and compute the curve again
        likelihood(search.alpha0)
        search = _searched(trials)
    near = [trials[search.tried[place]] for place in search.within_noise]
    return search, (trials[search.tried[search.best]], *near)


def _searched(trials: Mapping[float, Alpha0Trial]) -> Alpha0Search:
    """Make the result of a search from its trials; `trials` maps each alpha0 to its trial fit."""
    tried = sorted(trials)
    best = max(trials.values(), key=lambda trial: trial.held_out.mean)
    return Alpha0Search(
        tuple(tried),
        tuple(trials[one].held_out.mean for one in tried),
        tuple(best.held_out.gain(trials[one].held_out)[1] for one in tried),
    )


@dataclass(frozen=True, eq=False)
class SharedMoments:
    """Moments projected to the m leading eigenvectors U of M2, for trial fits with any alpha0.

    Also has the rows of M2 for the most frequent words.

    A fit subtracts a multiple of `M1 M1'`, which depends on alpha0, from M2. For exact moments, the
    span of U stays the same. So the statistics are read once for all values of alpha0. m is k + 1,
    because after the subtraction the direction of M1 can be weaker than the direction number k + 1.

    spectrum : (m,) float64, eigenvalues of M2
    mean : (m,) float64 `U' M1`
    third : (m, m, m) float64 `M3(U, U, U)`
    rows : (words, m) float64 `M2 U`
    M1 : (words,) float64, frequencies of the words
    """

    spectrum: NDArray[np.float64]
    mean: NDArray[np.float64]
    third: NDArray[np.float64]
    rows: NDArray[np.float64]
    M1: NDArray[np.float64]

    __sizeof__ = held_bytes

    @classmethod
    def of(
        cls, sums: TensorSums, whitening: Whitening, parts: Sequence[NDArray[np.float64]]
    ) -> SharedMoments:
        """Compute the moments, projected to the leading eigenvectors of M2.

        sums : third moments that were whitened by `whitening`, the result of `widest`
        parts : results of `leading_rows`, one for each row block
        """
        roots = np.sqrt(whitening.spectrum)
        gathered = interleaved(parts)
        third = np.einsum("abc,a,b,c->abc", sums.tensor(whitening), roots, roots, roots)
        return cls(
            whitening.spectrum,
            roots * whitening.first,
            third,
            gathered[:, :-1] * roots,
            gathered[:, -1],
        )

    def recovered(self, form: Form, n_topics: int) -> Recovered:
        """Return the topics for one alpha0 (`form`), as distributions over the most frequent words.

        Topics are computed from A, the second moment corrected for alpha0: `A W o_j` is a topic up
        to a factor, for the whitening W and column j of the rotation. Raises NotIdentifiable if A
        has fewer positive eigenvalues than `n_topics`.
        """
        share = form.mean_share
        values, vectors = np.linalg.eigh(
            np.diag(self.spectrum) - share * np.outer(self.mean, self.mean)
        )
        require_eigenvalues(n_topics, positive(values), form)
        spectrum = values[::-1][:n_topics]
        B = vectors[:, ::-1][:, :n_topics] / np.sqrt(spectrum)
        u, second = B.T @ self.mean, (B.T * self.spectrum) @ B
        raw = np.tensordot(self.third, B, axes=(2, 0))
        raw = np.tensordot(np.tensordot(raw, B, axes=(0, 0)), B, axes=(0, 0))

        def crossed() -> NDArray[np.float64]:
            return three_orders(np.multiply.outer(u, second))

        tensor = form.third(
            raw, crossed, lambda times: times * np.multiply.outer(u, np.outer(u, u))
        )
        O = by_joint_diagonalization(np.sqrt(spectrum)[:, None, None] * tensor, _TOLERANCE)
        rows = (self.rows @ B - share * np.outer(self.M1, u)) @ O
        totals = rows.sum(axis=0)
        # do not divide by 0: if a few texts are repeated, the entries of a topic can have the sum 0
        return recover(rows / np.where(totals == 0.0, 1.0, totals), (O.T @ u) ** 2)


def widest(seen: SeenMoments, basis: Basis, n_topics: int) -> Whitening:
    """Return the whitening of M2 by its `n_topics` + 1 leading directions.

    Uses one direction less if M2 has only `n_topics` positive eigenvalues.
    """
    found = positive(seen.eigenpairs(Mixture())[0])
    return seen.whitened(basis, max(n_topics, min(n_topics + 1, found)), Mixture())


def leading_rows(statistics: Statistics, whitening: Whitening, words: int) -> NDArray[Any]:
    """Return the (r, m + 1) rows `[M2 W, M1]` of a row block for words among the first `words`."""
    number = statistics.block.size(words)
    rows = unwhitened_rows(statistics, whitening, number)
    counts = statistics.moment_counts[:number, None] / statistics.row_lengths.whole.C1
    return np.hstack([rows, counts])


def leading_topics(moments: SharedMoments, form: Form, n_topics: int) -> PairTopics:
    """Return topics for one alpha0 (`form`), as distributions over the most frequent words."""
    found = moments.recovered(form, n_topics)
    pair_weights = dirichlet_pair_weights(found.weights, form.alpha0)
    expected = moments.M1 / moments.M1.sum()
    return PairTopics(found.topics, pair_weights, expected, len(expected))


def topics_of(state: PairTopics) -> NDArray[np.float64]:
    """Return the (words, k) topics of a state, so that the caller receives only these."""
    return state.topics


def with_alpha0_search(model: Any, search: Alpha0Search, *trials: Alpha0Trial) -> Any:
    """Add the search for alpha0 to a model, and widen its error bars by the uncertainty of alpha0.

    The first of `trials` has the best alpha0. The scores of the others differ from it by noise
    alone. A trial has topics over the most frequent words only. For each topic and each of these
    words, take the largest distance between the first trial and another. Its square is added to the
    square of the error bar. All other words of a topic are assumed to change as much as these do on
    average.
    """
    model = replace(model, alpha0_search=search, given_alpha0=None)
    if len(trials) < 2 or model.topic_bars is None:
        return model
    best, *near = (trial.topics for trial in trials)
    leading = model.topics[: len(best)] / model.topics[: len(best)].sum(axis=0)
    moves = np.zeros_like(leading)
    middle = best[:, _matched(leading, best)]
    for other in near:
        np.maximum(moves, np.abs(other[:, _matched(leading, other)] - middle), out=moves)
    topic_moves = moves.sum(axis=0)
    word_moves = model.topics * topic_moves
    word_moves[: len(best)] = moves * model.topics[: len(best)].sum(axis=0)
    return replace(
        model,
        topic_bars=np.hypot(model.topic_bars, topic_moves),
        word_bars=np.hypot(model.word_bars, word_moves),
    )


def _matched(topics: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.intp]:
    """Match topics to the columns of `others` by Hellinger affinity; return a column per topic."""
    from scipy.optimize import linear_sum_assignment

    affinity = np.sqrt(topics).T @ np.sqrt(others)
    columns: NDArray[np.intp] = linear_sum_assignment(-affinity)[1]
    return columns
