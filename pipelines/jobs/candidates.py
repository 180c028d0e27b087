"""Candidates: the models that `select` compares, and their scores."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, DataFrame, Table
from streaming_moments.decompositions.evidence import Directions
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.halves import HeldOut, likely, noise
from streaming_moments.models.numbers.number_search import NumberSearch, one_of, shown_numbers
from streaming_moments.models.sweeps import Evidence, TopicRows, slice_evidence, solve, topic_rows
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.relevance import top_words
from streaming_moments.pipelines.jobs.refit import WordPairs
from streaming_moments.plots import LOG_LIKELIHOOD, Axes, plot_numbers
from streaming_moments.printing.plural import of_number
from streaming_moments.quality.coherences.registry import COHERENCES
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.statistics.counts.whitening import Whitening

# fields of a candidate that are columns of frames, after the number, alpha0 and held-out score
_LISTED = (
    "apart",
    "npmi",
    "umass",
    "umass_20",
    "captured",
    "smallest_weight",
    "seconds",
    "refined",
)


@dataclass(frozen=True)
class Candidate:
    """A number of topics and an alpha0, with the scores of their model.

    alpha0 : sum of the Dirichlet parameters
    npmi, umass : mean coherence over the top 10 words; None without co-document counts
    umass_20 : mean UMass over the top 20 words, as in the paper of the method
    captured : smallest share of an eigenvalue that the basis captures
    smallest_weight : share of the corpus that belongs to the smallest topic
    seconds : seconds of the tasks that only this candidate needed, and of its refinement
    refusal : reason if it cannot be fitted; all numbers are None then
    held_out : log-likelihood of a word pair of each half of the documents, under the topics of the
        other half, if the store has halves
    refined : rounds of refinement
    apart : as in `Trial`; None unless each half was fitted alone
    coherences : means of the other coherences over the topics, by the name of their column
    """

    n_topics: int
    alpha0: float
    npmi: float | None = None
    umass: float | None = None
    umass_20: float | None = None
    captured: float | None = None
    smallest_weight: float | None = None
    seconds: float | None = None
    refusal: str = ""
    held_out: HeldOut | None = None
    refined: int | None = None
    coherences: Mapping[str, float] = field(default_factory=dict)
    apart: float | None = None

    @property
    def predicted(self) -> float | None:
        """Mean held-out log-likelihood."""
        return None if self.held_out is None else self.held_out.mean


def larger_numbers(most: int, limit: int) -> tuple[int, int] | None:
    """Return the first and last number to try after `most`; None if `most` has reached `limit`."""
    return (most, min(2 * most, limit)) if limit > most else None


def larger_basis(most: int, limit: int | None, core: int | None) -> str:
    """Say how the basis can allow more than `most` topics; "" if it does not limit topics.

    limit, core : as in `Selection`
    """
    if limit is None or core is None or most < limit:
        return ""
    if core <= most:
        return f"the store allows no more, because it has {of_number(core, 'core word')}"
    allowed = min(2 * most, core)
    return f"raise the limit of the store by `streaming-moments rebase --max-topics {allowed}`"


def needs_single(numbers: Sequence[int], alphas: Sequence[object]) -> bool:
    """Whether one topic must be scored, too, to find out how many topics are separable.

    Examples
    --------
    >>> needs_single([2, 5], [0.1]), needs_single([1, 5], [0.1]), needs_single([5], [0.1])
    (True, False, False)
    """
    return len(numbers) > 1 and len({*alphas}) == 1 and min(numbers) > 1


@dataclass(frozen=True)
class Selection:
    """Candidates, sorted by alpha0 and number of topics; at least one of them could be fitted.

    seconds : elapsed time of the whole sweep
    held : kind of held-out data, such as pairs of words
    number : what the numbers count, such as topics
    limit : most topics that basis and second moment of the store allow; None if unknown
    core : number of core words, up to which a rebase can raise `limit`; None if it cannot raise it
    single : held-out score of a model with one topic, from which gains are measured; None if this
        model is among the candidates
    """

    candidates: tuple[Candidate, ...]
    seconds: float
    held: str = "pairs"
    number: str = "topics"
    limit: int | None = None
    core: int | None = None
    single: HeldOut | None = None

    def __repr__(self) -> str:
        fitted = {one.n_topics for one in self.candidates if not one.refusal}
        refused = sorted({one.n_topics for one in self.candidates} - fitted)
        numbers = shown_numbers(fitted, self.number)
        left = f"; {', '.join(map(str, refused))} refused" if refused else ""
        return f"Selection({numbers}: {', '.join(self.marks) or 'none chosen'}{left})"

    def _repr_html_(self) -> str:
        return self.columns.html(repr(self), digits=6)

    @property
    def columns(self) -> Columns:
        """Return a row for each candidate: its number, alpha0, and the scores of its model."""
        found: dict[str, list[Any]] = {
            self.number: [one.n_topics for one in self.candidates],
            "alpha0": [one.alpha0 for one in self.candidates],
            "held_out": [one.predicted for one in self.candidates],
        }
        for name in _LISTED:
            found[name] = [getattr(one, name) for one in self.candidates]
        for name in sorted({key for one in self.candidates for key in one.coherences}):
            found[name] = [one.coherences.get(name) for one in self.candidates]
        found["refusal"] = [one.refusal or None for one in self.candidates]
        known = {name: values for name, values in found.items() if {*values} - {None}}
        return Columns({name: Column.of_values(values) for name, values in known.items()})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve of each alpha0, its noise, and the recommended numbers.

        The curve is the held-out log-likelihood, or the mean NPMI without held-out data.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        InvalidInput
            `ax` is not Axes of matplotlib.
        ModuleNotFoundError
            matplotlib is not installed; the message has the command that installs it.
        """
        measure, name = (LOG_LIKELIHOOD, "predicted") if self.likely else ("mean NPMI", "npmi")
        lines: dict[str, dict[int, float]] = {}
        for one in self.candidates:
            if (value := getattr(one, name)) is not None:
                lines.setdefault(f"alpha0 {one.alpha0:g}", {})[one.n_topics] = value
        return plot_numbers(lines, self.marks, self.number, measure, self.noise, ax)

    @property
    def marks(self) -> dict[str, int]:
        """Recommended numbers, by their labels in plots."""
        if self.search.curve:
            return self.search.marks
        label = "predict best" if self.likely else "most coherent"
        if self.taken is None:
            return {}
        edge = ", the largest number tried" * (self.taken.n_topics == self.edge)
        return {f"{self.taken.n_topics} {label}{edge}": self.taken.n_topics}

    @property
    def edge(self) -> int:
        """Largest number that could be fitted; 0 if fewer than two numbers could be fitted."""
        fitted = {one.n_topics for one in self.candidates if not one.refusal}
        return self._most if len(fitted) > 1 else 0

    @property
    def _most(self) -> int:
        """Largest number that could be fitted; 0 if no number could be fitted."""
        return max((one.n_topics for one in self.candidates if not one.refusal), default=0)

    @property
    def larger(self) -> tuple[int, int] | None:
        """First and last number to try above the largest fitted one; None if there are no more.

        Examples
        --------
        >>> one = Candidate(20, 0.1)
        >>> Selection((one,), 0.0).larger, Selection((one,), 0.0, limit=26).larger
        ((20, 40), (20, 26))
        """
        refused = [one.n_topics - 1 for one in self.candidates if one.n_topics > self._most]
        return larger_numbers(self._most, min([*refused, self.limit or 2 * self._most]))

    @property
    def more(self) -> str:
        """Advice on larger numbers than the fitted ones: which to try, or how to allow them.

        Empty if no larger number can be tried or allowed.

        Examples
        --------
        >>> one = Candidate(20, 0.1)
        >>> Selection((one,), 0.0, limit=26).more
        'try 20 to 26'
        >>> Selection((one,), 0.0, limit=20, core=900).more
        'raise the limit of the store by `streaming-moments rebase --max-topics 40`'
        """
        if self.larger is not None:
            return "try {} to {}".format(*self.larger)
        return larger_basis(self._most, self.limit, self.core)

    def to_table(self) -> Table:
        """Return an Arrow table with a row for each candidate.

        A score that no candidate has is left out.
        """
        return self.columns.to_table()

    def to_frame(self) -> DataFrame:
        """Return the content of `to_table` as a pandas frame.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed; the message has the command that installs it.
        """
        return self.columns.to_frame("candidate")

    @property
    def coherent(self) -> bool:
        """Whether coherence is known."""
        return any(candidate.npmi is not None for candidate in self.candidates)

    @property
    def best(self) -> Candidate | None:
        """Candidate with the highest mean NPMI; None without coherence."""
        scores = [(one.npmi, one) for one in self.candidates if one.npmi is not None]
        return max(scores, key=lambda scored: scored[0])[1] if scores else None

    @property
    def noise(self) -> float | None:
        """Noise of the held-out log-likelihood: smaller differences do not count.

        None if no candidate has such a score.
        """
        known = [one.held_out for one in self.candidates if one.held_out is not None]
        return noise(known) if known else None

    @property
    def likely(self) -> tuple[Candidate, ...]:
        """Candidates within the noise of the best held-out log-likelihood, fewest topics first."""
        known = [(one.held_out, one) for one in self.candidates if one.held_out is not None]
        within = [known[place] for place in likely([held_out for held_out, _ in known])]
        within.sort(key=lambda pair: (pair[1].n_topics, -pair[0].mean))
        return tuple(one for _, one in within)

    @property
    def search(self) -> NumberSearch:
        """Held-out scores of the numbers; empty if there are several values of alpha0."""
        if len({one.alpha0 for one in self.candidates}) > 1:
            return NumberSearch({}, of=self.number)
        known = {one.n_topics: one for one in self.candidates}
        curve = {k: one.held_out for k, one in known.items() if one.held_out is not None}
        apart = {k: one.apart for k, one in known.items() if one.apart is not None and k in curve}
        return NumberSearch(curve, apart, self.number, self.more, self.single)

    @property
    def separable(self) -> Candidate | None:
        """Candidate with as many topics as `NumberSearch` finds separable; None without scores."""
        number = self.search.separable
        return next((one for one in self.candidates if one.n_topics == number), None)

    @property
    def why_separable(self) -> str:
        """Describe in a line how many topics are separable, and how many predict best.

        Examples
        --------
        >>> curve = {1: -9.0, 2: -8.6, 3: -8.2, 5: -8.15}
        >>> candidates = [Candidate(k, 0.1, held_out=HeldOut(one, one)) for k, one in curve.items()]
        >>> print(Selection(tuple(candidates), 0.0).why_separable)
        3 topics are separable: one more gains less than a quarter of the mean gain in held-out \
likelihood; 5 predict best, the largest number tried (try 5 to 10)
        """
        if (number := self.search.separable) is None:
            return ""
        are = f"{self.number} are" if number != 1 else f"{one_of(self.number)} is"
        return f"{number} {are} separable: {self.search.reasons()}"

    def _beside(self, one: Candidate) -> str:
        # a fit may still change a single alpha0, so name alpha0 only if there are several
        several = len({one.alpha0 for one in self.candidates}) > 1
        return f", alpha0 {one.alpha0:g}" if several else ""

    @property
    def taken(self) -> Candidate | None:
        """Candidate with the best held-out score, or without halves the most coherent one."""
        return self.likely[0] if self.likely else self.best

    @property
    def why(self) -> str:
        """Describe the choice and its reason in a line; empty for a store without halves.

        Examples
        --------
        >>> one = Candidate(5, 0.1, held_out=HeldOut(-9.0, -8.0))
        >>> two = Candidate(8, 0.1, held_out=HeldOut(-8.5, -7.75))
        >>> print(Selection((one, two), 0.0).why)
        Chose 8 topics: best held-out log-likelihood of 2 candidates (-8.1250 per pair; no other \
is within the noise of 0.062). It is the largest number tried: try 8 to 16
        >>> print(Selection((one, Candidate(9, 0.1, refusal="too many")), 0.0).why)
        Chose 5 topics: the only one of 2 candidates that can be scored (held-out log-likelihood \
-8.5000 per pair)
        """
        if not self.likely:
            return ""
        first, *others = self.likely
        held_out = first.held_out.mean if first.held_out is not None else 0.0
        scored = sum(one.held_out is not None for one in self.candidates)
        number = self.number if first.n_topics != 1 else one_of(self.number)
        chose, per = f"Chose {first.n_topics} {number}{self._beside(first)}", one_of(self.held)
        if scored == 1:
            tried = len(self.candidates)
            only = f"the only one of {tried} candidates that can be scored"
            reason = only if tried > 1 else "the only candidate"
            return f"{chose}: {reason} (held-out log-likelihood {held_out:.4f} per {per})"
        reason, rest = (
            f"best held-out log-likelihood of {of_number(scored, 'candidate')}",
            "no other is",
        )
        if others:
            listed = ", ".join(str(number) for number in sorted({one.n_topics for one in others}))
            reason, rest = "the fewest of the best held-out log-likelihood", f"{listed} are"
        most = first.n_topics
        edge = ""
        if most == self.edge:
            edge = (
                f". It is the largest number tried: {self.more}"
                if self.more
                else ". More do not fit"
            )
        return (
            f"{chose}: {reason} ({held_out:.4f} per {per}; {rest} within the noise of "
            f"{self.noise:.2g}){edge}"
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """Part of a fitted model from which the scores of its candidate are computed.

    words : (m,) int64, increasing: core words that are among the top words of a topic, as far as
        coherences need them
    topics : (m, k) float64, the topics at these words

    The other fields are those of `Candidate`.
    """

    captured: float
    smallest_weight: float
    seconds: float
    words: NDArray[np.int64]
    topics: NDArray[np.float64]
    held_out: HeldOut | None
    refined: int

    __sizeof__ = held_bytes

    @classmethod
    def of(cls, model: TopicModel, core: int, seconds: float) -> Fitted:
        """Select the part of a model that scores need; `core` is the number of core words."""
        most = max(number for one in COHERENCES.values() for number in one.compared)
        words = np.unique(top_words(model.topics[:core], min(most, core)))
        weight = float(model.weights.min())
        return cls(
            captured=model.captured,
            smallest_weight=weight,
            seconds=seconds,
            words=words,
            topics=model.topics[words],
            held_out=model.held_out,
            refined=model.refined,
        )

    def candidate(self, n_topics: int, alpha0: float, pairs: WordPairs | None) -> Candidate:
        """Return the candidate, with coherences from the counts of its words in `pairs`."""
        means = {} if pairs is None else self._coherences(pairs)
        return Candidate(
            n_topics,
            alpha0,
            npmi=means.pop("npmi", None),
            umass=means.pop("umass", None),
            umass_20=means.pop("umass_20", None),
            captured=self.captured,
            smallest_weight=self.smallest_weight,
            seconds=self.seconds,
            held_out=self.held_out,
            refined=self.refined,
            coherences=means,
        )

    def _coherences(self, pairs: WordPairs) -> dict[str, float]:
        """Return the mean of each coherence over the topics, by its column."""
        means: dict[str, float] = {}
        for one in COHERENCES.values():
            for number, (key, _) in one.columns.items():
                least = min(number, self.words.size)
                scores = pairs.coherence(one, self.words, self.topics, least)
                means[key] = float(scores.mean())
        return means


@dataclass(frozen=True, eq=False)
class Solved:
    """Directions of the topics of a candidate, or why it has none, and the seconds used."""

    directions: Directions | None
    refusal: str
    seconds: float

    __sizeof__ = held_bytes


def leading_evidence(
    statistics: Statistics, whitening: Whitening, n_topics: int, method: str
) -> Evidence:
    """Return the evidence of a block for the first `n_topics` columns of a whitening."""
    return slice_evidence(statistics, whitening.leading(n_topics), method)


def solve_leading(evidence: Evidence, whitening: Whitening, n_topics: int, seed: int) -> Solved:
    """Compute the directions of topics from evidence for at least `n_topics` topics."""
    started = time.perf_counter()
    if evidence.n_topics > n_topics:
        evidence = evidence.leading(n_topics)
    try:
        directions = solve(evidence, whitening.leading(n_topics), seed)
    except NotIdentifiable as error:
        return Solved(None, str(error), time.perf_counter() - started)
    return Solved(directions, "", time.perf_counter() - started)


def leading_rows(
    statistics: Statistics, whitening: Whitening, solved: Sequence[Solved]
) -> list[tuple[TopicRows, float]]:
    """Return, for each candidate with directions, its topic rows of a block and their seconds."""
    found = []
    for directions, _ in _with_directions(solved):
        started = time.perf_counter()
        k = directions.vectors.shape[0]
        rows = topic_rows(statistics, whitening.leading(k), directions)
        found.append((rows, time.perf_counter() - started))
    return found


def finish_leading(
    parts: Sequence[list[tuple[TopicRows, float]]],
    whitening: Whitening,
    solved: Sequence[Solved],
    lengths: RowLengths[Lengths],
    basis: Basis,
    method: str,
) -> list[tuple[TopicModel, float] | NotIdentifiable]:
    """Make each model from its rows of all blocks; return it with its seconds, or its refusal."""
    models: list[tuple[TopicModel, float] | NotIdentifiable] = []
    found = _with_directions(solved)
    for (directions, seconds), own in zip(found, zip(*parts, strict=True), strict=True):
        leading = whitening.leading(directions.vectors.shape[0])
        rows, spent = [one for one, _ in own], sum(one for _, one in own)
        try:
            model = TopicModel.finished(leading, directions, rows, lengths, basis, method)
        except NotIdentifiable as error:
            models.append(error)
        else:
            models.append((model, seconds + spent))
    return models


def _with_directions(solved: Sequence[Solved]) -> list[tuple[Directions, float]]:
    return [(one.directions, one.seconds) for one in solved if one.directions is not None]


def refusal_of(solved: Solved) -> str:
    """Return why a candidate has no directions; empty if it has some."""
    return solved.refusal


def numbers_of(
    made: Sequence[tuple[TopicModel, float] | NotIdentifiable],
) -> list[float | NotIdentifiable]:
    """Return the seconds of each model, or the reason why it was refused."""
    return [one if isinstance(one, NotIdentifiable) else one[1] for one in made]


def model_at(made: Sequence[tuple[TopicModel, float]], place: int) -> TopicModel:
    """Return one of the models that were made together."""
    return made[place][0]
