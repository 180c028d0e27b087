"""Output of the command line: plain values, which become tables or one JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from streaming_moments.models.base import Model
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.relevance import relevance, top_words
from streaming_moments.pipelines.quantities import local_time
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.terminal import shown
from streaming_moments.printing.plural import of_number
from streaming_moments.quality.coherences.base import coherence_of
from streaming_moments.quality.coherences.registry import COHERENCES
from streaming_moments.quality.diversity import topic_diversity
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.half_life import half_life_text
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.candidates import Candidate, Selection
    from streaming_moments.pipelines.reports.status import Status
    from streaming_moments.storage.log.commits import Commit
    from streaming_moments.storage.operations.shares_over_time import PeriodShares

RELEVANCE_WEIGHT = 0.7
DIVERSITY_WORDS = 25
_TOGETHER = 5  # a message names at most this many pairs of correlated topics
_LEAST_CORRELATION = 0.01  # a message names only pairs of topics with at least this correlation


@dataclass(frozen=True)
class TopicLine:
    """One topic for people.

    weight : share of the corpus
    words : most relevant first
    umass, npmi : coherence; None if it was not computed
    probabilities, bars : probabilities of `words`, and their standard errors; empty bars if unknown
    coherences : other computed coherences by key
    """

    topic: int
    weight: float
    words: tuple[str, ...]
    umass: float | None = None
    npmi: float | None = None
    probabilities: tuple[float, ...] = ()
    bars: tuple[float, ...] = ()
    label: str | None = None
    coherences: Mapping[str, float] = field(default_factory=dict)

    @property
    def marked(self) -> tuple[str, ...]:
        """Return the words, with a question mark if a word may not belong to the topic.

        Such a word has a probability below two of its standard errors.

        Examples
        --------
        >>> TopicLine(0, 1.0, ("sea", "law"), None, None, (0.5, 0.1), (0.01, 0.06)).marked
        ('sea', 'law?')
        """
        if not self.bars:
            return self.words
        known = zip(self.words, self.probabilities, self.bars, strict=True)
        return tuple(f"{word}?" if p < 2 * bar else word for word, p, bar in known)


@dataclass(frozen=True)
class LogLine:
    """One commit."""

    version: int
    time: str
    operation: str
    documents: int
    shards: int
    message: str
    skipped: tuple[tuple[str, str], ...]


def topic_lines(
    model: TopicModel,
    vocabulary: Vocabulary,
    number: int,
    weight: float = RELEVANCE_WEIGHT,
    labels: Mapping[int, str] = MappingProxyType({}),
) -> list[TopicLine]:
    """Return topics with their words by relevance; a `weight` (lambda) of 1 ranks by probability.

    Examples
    --------
    >>> model = TopicModel.from_topics(np.array([[0.9], [0.1]]), np.array([1.0]))
    >>> topic_lines(model, Vocabulary(("law", "sea"), core=2), number=1)[0].words
    ('law',)
    """
    scores = relevance(model.topics, model.word_probabilities, weight)
    lines = []
    for topic, words in enumerate(top_words(scores, number)):
        used = [word for word in words if np.isfinite(scores[word, topic])]
        bars = () if model.word_bars is None else tuple(model.word_bars[used, topic].tolist())
        lines.append(
            TopicLine(
                topic,
                float(model.weights[topic]),
                tuple(vocabulary.terms[word] for word in used),
                _known(model.umass[topic]),
                _known(model.npmi[topic]),
                tuple(model.topics[used, topic].tolist()),
                bars,
                labels.get(topic),
                {
                    key: float(values[topic])
                    for key, values in model.coherences.items()
                    if math.isfinite(values[topic])
                },
            )
        )
    return lines


def records_of(model: Model) -> str:
    """Describe the records to which a model was fitted: their number and days.

    Examples
    --------
    >>> from dataclasses import replace
    >>> model = TopicModel.from_topics(np.eye(2), np.array([0.5, 0.5]))
    >>> records_of(replace(model, since="2026-11-01", half_life=7.0))
    '0 documents since 2026-11-01, half as much after every 7 days (in floating point)'
    """
    words = of_number(model.documents, model.record)
    words += f" since {model.since}" if model.since else ""
    words += f" until {model.until}" if model.until else ""
    return words + half_life_text(model.half_life)


def described_as_json(model: Model) -> dict[str, object]:
    """Return a model's description, with its number of documents, its days and its half-life."""
    names = ("documents", "since", "until", "half_life")
    said = model.described()
    columns = {name.replace(" ", "_"): column.tolist() for name, column in said.columns.items()}
    facts: dict[str, object] = json_value({**said.facts, **columns})
    return {**{name: getattr(model, name) for name in names}, "fitted_as": model.name, **facts}


def log_lines(store: MomentStore, first: int = 0) -> list[LogLine]:
    """Return the lines of all commits from version `first` on, the latest first."""
    return [log_line(commit) for commit in store.log(first)]


def log_line(commit: Commit) -> LogLine:
    """Return the line that describes a commit in a list of versions."""
    return LogLine(
        commit.version,
        commit.time,
        commit.operation,
        commit.documents,
        commit.shards,
        commit.message,
        commit.skipped,
    )


def model_scores(model: TopicModel) -> dict[str, float | None]:
    """Return the mean coherences of the topics, None if not computed, and their diversity.

    Examples
    --------
    >>> model_scores(TopicModel.from_topics(np.eye(2), np.array([0.5, 0.5])))
    {'npmi': None, 'umass': None, 'diversity': 0.5}
    """
    number = min(DIVERSITY_WORDS, model.n_words)
    known = {key: coherence_of(model, key) for key in COHERENCES}
    means = {key: _known(one.mean()) for key, one in known.items() if one is not None}
    return {**means, "diversity": topic_diversity(model.topics, number)}


def scores_line(model: TopicModel) -> str:
    """Format the scores of a model for people."""
    scores = model_scores(model)
    means = [(one, scores.get(key)) for key, one in COHERENCES.items()]
    told = [
        f"mean {one.name} {mean:.{one.mean_digits}f}, " for one, mean in means if mean is not None
    ]
    return f"{''.join(told)}diversity of the top words {scores['diversity']:.2f}"


def together_line(model: TopicModel) -> str:
    """Format the pairs of topics that are most correlated; empty without such pairs.

    Examples
    --------
    >>> from dataclasses import replace
    >>> model = TopicModel.from_topics(np.eye(3), np.full(3, 1 / 3))
    >>> together = np.array([[0.2, 0.1, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.4]])
    >>> together_line(replace(model, refined=10, pair_weights=together))
    'often in the same documents: 0 and 1 (correlation 0.09)'
    """
    if not model.refined:
        return ""
    found = model.correlations
    pairs = [
        (float(found[one, other]), one, other)
        for one, other in zip(*np.triu_indices(model.n_topics, 1), strict=True)
        if found[one, other] >= _LEAST_CORRELATION
    ]
    pairs.sort(key=lambda pair: (-pair[0], *pair[1:]))
    said = ", ".join(
        f"{one} and {other} ({'' if place else 'correlation '}{value:.2f})"
        for place, (value, one, other) in enumerate(pairs[:_TOGETHER])
    )
    return f"often in the same documents: {said}" if said else ""


def periods_as_json(periods: Sequence[PeriodShares]) -> list[dict[str, object]]:
    """Return days, tokens, and the shares of topics with their standard errors, by period."""
    return [
        {
            "first": one.days.first.isoformat(),
            "last": one.days.last.isoformat(),
            "tokens": one.tokens,
            "shares": list(one.shares),
            "bars": list(one.bars),
        }
        for one in periods
    ]


def print_selection(console: Console, selection: Selection, detailed: bool = False) -> None:
    """Print a table of candidates; its last column marks some of them.

    The marks are "chosen" for the best held-out score, "noise" for scores within its noise,
    "separable", and "best" for the highest mean NPMI. With `detailed`, the table also has further
    coherences, the captured spectrum and the seconds.
    """
    table = Table(show_edge=False, pad_edge=False)
    coherent = selection.coherent
    known_scores = [
        (key, name, one.mean_digits)
        for one in COHERENCES.values()
        for key, name in [*one.columns.values()][: None if detailed else 1]
        if coherent
    ]
    scores = [name for _, name, _ in known_scores]
    scores += ["held out"] if selection.likely else []
    # show the number of refinement rounds only if candidates differ in it
    rounds = {one.refined for one in selection.candidates if not one.refusal}
    scores = ["rounds"] * (len(rounds) > 1) + scores
    # these columns exist only for topics, because other candidates have only held-out scores
    topical = selection.number == "topics"
    known = ["smallest topic"] * topical + ["captured"] * (topical and detailed)
    known += ["seconds"] * detailed
    alphas = ["alpha0"] * any(one.alpha0 for one in selection.candidates)
    for name in (selection.number, *alphas, *scores, *known):
        table.add_column(name, justify="right")
    table.add_column("", overflow="fold")
    best, likely, apart = selection.best, selection.likely, selection.separable
    for one in selection.candidates:
        numbers = [shown_number(coherence_of(one, key), digits) for key, _, digits in known_scores]
        if likely:
            numbers.append("" if one.held_out is None else f"{one.held_out.mean:.4f}")
        marks = ["chosen" if one is likely[0] else "noise"] if one in likely else []
        marks += ["separable"] if one is apart else []
        marks += ["best"] if one is best else []
        smallest = "" if one.smallest_weight is None else f"{one.smallest_weight:.1%}"
        table.add_row(
            str(one.n_topics),
            *[f"{one.alpha0:g}" for _ in alphas],
            *["" if one.refined is None else str(one.refined)] * (len(rounds) > 1),
            *numbers,
            *[smallest] * topical,
            *[shown_number(one.captured, 2)] * (topical and detailed),
            *[shown_number(one.seconds, 2)] * detailed,
            one.refusal or ", ".join(marks),
            style="bold" if one is best else "dim" if one.refusal else None,
        )
    console.print(table)


def print_log(console: Console, lines: Sequence[LogLine]) -> None:
    """Print a table of commits."""
    table = Table(show_edge=False, pad_edge=False)
    for name in ("version", "time", "operation", "documents", "shards"):
        table.add_column(name, justify="left" if name in ("time", "operation") else "right")
    table.add_column("message", overflow="fold")
    for line in lines:
        # escape line breaks in names, so that a part of a name does not look like a line of its own
        message = shown(line.message)
        for url, reason in line.skipped:
            message += f"\n{shown(f'left out {url}: {reason}')}"
        table.add_row(
            str(line.version),
            local_time(line.time),
            line.operation,
            f"{line.documents:,}",
            f"{line.shards:,}",
            message,
        )
    console.print(table)


def as_json(value: Status | TopicLine | LogLine | Candidate) -> dict[str, object]:
    """Return the fields by name for JSON; NaN and infinity become null."""
    fields: dict[str, object] = json_value(asdict(value))
    return fields


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def shown_number(value: float | None, digits: int) -> str:
    """Format a number with this many digits; empty for None."""
    return "" if value is None else f"{value:.{digits}f}"
