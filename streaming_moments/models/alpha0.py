"""Alpha0: search for the sum of the Dirichlet parameters with the best held-out likelihood."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.evidence import Directions
from streaming_moments.decompositions.forms import form_of
from streaming_moments.decompositions.moments import require_topics
from streaming_moments.decompositions.svtd import recover
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.halves import (
    STEP,
    HalfRows,
    HeldOut,
    fits_of,
    scored,
    with_dirichlet,
)
from streaming_moments.models.refinement import (
    PairTopics,
    dirichlet_pair_weights,
    refined_there,
)
from streaming_moments.models.rows import Rows
from streaming_moments.models.sweeps import TopicRows, seen_by, solved_by, topic_rows
from streaming_moments.numerics.unimodal import highest_place
from streaming_moments.statistics.counts.pair_rows import PairRows
from streaming_moments.statistics.counts.whitening import (
    SeenMoments,
    Whitening,
    require_columns,
)
from streaming_moments.statistics.row_block import interleaved

# The curve through few values can miss its maximum by a tenth, so trials follow there.
TOPS_TRIED = 2
AUTO: Literal["auto"] = "auto"
WITHOUT_HALVES = 0.1
# A search over them costs five fits. With larger ones all documents are alike. With 0 a document is
# read with one topic only, which predicts passages badly; where it is true, topics err 5% less.
TRIED = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
# With more rounds the best alpha0 is a step too high; with none a large alpha0 is estimated badly.
TRIAL_ROUNDS = 2
# Trials use the pairs of the most frequent words: they determine alpha0 as well, at a low cost.
LEADING_WORDS = 1000
_BETWEEN = 2001  # points at which the curve is evaluated
_POWERS = 8  # of two, between alpha0 and the sum of alpha at most


@dataclass(frozen=True)
class Alpha0Search:
    """Result of a search for alpha0, by the word pairs of one half under topics of the other.

    Parameters
    ----------
    tried : tuple of float
        Values in increasing order; empty if the statistics have no halves.
    held_out : tuple of float
        Mean log-likelihood of a held-out pair for each value.
    noise : tuple of float
        Half the difference between the halves in the gain of the best value over each.
    """

    tried: tuple[float, ...] = ()
    held_out: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tried", "held_out", "noise"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def best(self) -> int:
        """Index of the best value."""
        return int(np.argmax(self.held_out))

    @property
    def within_noise(self) -> tuple[int, ...]:
        """Indices of the other values that differ from the best by noise alone."""
        least = self.held_out[self.best]
        return tuple(
            place
            for place, (one, noise) in enumerate(zip(self.held_out, self.noise, strict=True))
            if place != self.best and least - one <= noise
        )

    @property
    def alpha0(self) -> float:
        """Best alpha0, to two digits: the maximum of a cubic spline over the logarithm of alpha0.

        On planted corpora its mean error is 3%, and that of a parabola through three points 10%. It
        is 0 if 0 is the best value tried.

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
        # the curve has one maximum between the neighbours of the best value
        near = [math.log(one) for one in self.tried[max(best - 1, 0) : best + 2] if one]
        between = np.linspace(near[0], near[-1], _BETWEEN)
        top = between[np.argmax(CubicSpline(*zip(*known, strict=True))(between))]
        return float(f"{math.exp(top):.2g}")

    @property
    def sentence(self) -> str:
        """One sentence that says which alpha0 was chosen and why."""
        if not self.tried:
            return (
                f"alpha0 is {WITHOUT_HALVES:g} by default: the statistics have no halves with word "
                "pairs, so a fit cannot choose it"
            )
        chosen = (
            f"chose alpha0 {self.alpha0:g}: best held-out likelihood of {len(self.tried)} values"
        )
        if self.best == len(self.tried) - 1:
            return f"{chosen}, the largest tried"
        if not self.within_noise:
            return chosen
        near = [self.alpha0, *(self.tried[place] for place in (self.best, *self.within_noise))]
        return f"{chosen}; {min(near):g} to {max(near):g} are within the noise"


@dataclass(frozen=True, eq=False)
class Alpha0Trial:
    """A fit with one alpha0: its score, the alpha it predicts best with, its (words, k) topics."""

    held_out: HeldOut
    alpha: float
    topics: NDArray[np.float64]


def search_alpha0(rows: Rows, options: Any) -> tuple[Alpha0Search, tuple[Alpha0Trial, ...]]:
    """Find alpha0 by trial fits; return the search, then the best trial and those within its noise.

    All trials share the moments through the basis. Each diagonalises the slices of all words, but
    refines and scores topics of the most frequent words only.

    Raises NotIdentifiable if no value of alpha0 gives separable topics.
    """
    words = min(rows.basis.core, LEADING_WORDS)
    pairs = rows.brought("pair counts", partial(PairRows.of, leading=words))
    even, odd = (
        rows.brought("pair counts", partial(PairRows.of, half=half, leading=words), halves=True)
        for half in (0, 1)
    )
    halves, seen = HalfRows(pairs, (even, odd)), seen_by(rows)
    k, method, seed = options.topics, options.method, options.seed
    trials: dict[float, Alpha0Trial] = {}
    refusals: list[NotIdentifiable] = []

    def likelihood(alpha0: float) -> float:
        form = form_of(alpha0)
        try:
            whitened = rows.once("whitening", SeenMoments.whitened, seen, rows.basis, k, form)
            solved = solved_by(rows, whitened, k, method, seed)
            parts = rows.each("topic rows", topic_rows, whitened, solved, words)
            start = rows.value(rows.once(STEP, leading_topics, whitened, solved, parts))
            whole = refined_there(pairs, start, TRIAL_ROUNDS)
            fits = fits_of(halves, whole, TRIAL_ROUNDS)
        except NotIdentifiable as error:
            # a larger alpha0 leaves fewer positive eigenvalues
            refusals.append(error)
            return -math.inf
        if fits is None:
            return -math.inf
        trials[alpha0] = Alpha0Trial(
            *likeliest(halves, fits, alpha0), pairs.once(STEP, topics_of, whole)
        )
        return trials[alpha0].held_out.mean

    require_topics(k)
    require_columns(k, rows.basis)
    highest_place(len(TRIED), lambda place: likelihood(TRIED[place]))
    if not trials:
        if refusals:
            raise refusals[0]
        return Alpha0Search(), ()
    search = _searched(trials)
    for _ in range(TOPS_TRIED):
        if search.alpha0 in trials:
            break
        likelihood(search.alpha0)
        search = _searched(trials)
    near = [trials[search.tried[place]] for place in search.within_noise]
    return search, (trials[search.tried[search.best]], *near)


def likeliest(halves: HalfRows, fits: Sequence[Any], alpha0: float) -> tuple[HeldOut, float]:
    """Scores of the topics of both halves with the alpha that predicts best, and the sum of alpha.

    Noisy topics predict best with a larger sum than the alpha0 that they should be fitted with, so
    scores with alpha0 itself would favour too large a value where documents are few. The sum is
    `alpha0` times a power of two, or the top of a parabola beside the best; at least `alpha0`.
    """
    rows, known = halves.rows, dict[float, HeldOut]()

    def at(power: float) -> float:
        if power not in known:
            mixed = [rows.once(STEP, with_dirichlet, one, alpha0 * 2.0**power) for one in fits]
            known[power] = scored(halves, mixed)
        return known[power].mean

    top = 0
    while top < _POWERS and at(top + 1) > at(top):
        top += 1
    bend = at(top - 1) - 2 * at(top) + at(top + 1)
    # one topic predicts the same with any sum
    if bend < 0:
        at(max(top + (at(top - 1) - at(top + 1)) / (2 * bend), 0.0))
    best = max((power for power in known if power >= 0), key=at)
    return known[best], float(f"{alpha0 * 2.0**best:.2g}")


def _searched(trials: Mapping[float, Alpha0Trial]) -> Alpha0Search:
    """Summarise trials by their alpha0."""
    tried = sorted(trials)
    best = max(trials.values(), key=lambda trial: trial.held_out.mean)
    return Alpha0Search(
        tuple(tried),
        tuple(trials[one].held_out.mean for one in tried),
        tuple(best.held_out.gain(trials[one].held_out)[1] for one in tried),
    )


def leading_topics(
    whitening: Whitening, directions: Directions, parts: Sequence[TopicRows]
) -> PairTopics:
    """Topics of the leading words from a decomposition, as if the other words did not exist."""
    rows = interleaved([rows for rows, _ in parts])
    counts = interleaved([counts for _, counts in parts]).astype(np.float64)
    recovered = recover(rows, (directions.vectors.T @ whitening.first) ** 2)
    pair_weights = dirichlet_pair_weights(recovered.weights, whitening.form.alpha0)
    return PairTopics(recovered.topics, pair_weights, counts / counts.sum(), len(counts))


def topics_of(state: PairTopics) -> NDArray[np.float64]:
    """(words, k) topics."""
    return state.topics


def with_alpha0_search(model: Any, search: Alpha0Search, *trials: Alpha0Trial) -> Any:
    """Add the search and the alpha to read documents with, and widen bars by alpha0's uncertainty.

    `trials` have topics of the leading words: with the alpha0 chosen, then with others within the
    noise. The squares of the largest distances from the first are added to the squared bars, by
    topic and by word. Other words of a topic are assumed to change as much as its leading words do
    on average.
    """
    model = replace(model, alpha0_search=search, alpha0=trials[0].alpha if trials else model.alpha0)
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
    """Columns of `others` matched one to one to topics by Hellinger affinity."""
    from scipy.optimize import linear_sum_assignment

    affinity = np.sqrt(topics).T @ np.sqrt(others)
    columns: NDArray[np.intp] = linear_sum_assignment(-affinity)[1]
    return columns
