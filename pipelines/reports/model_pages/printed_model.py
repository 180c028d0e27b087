"""Output of `topics`: a model and its parts as tables, sentences and JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from streaming_moments.models.base import Description, Model
from streaming_moments.pipelines.reports.states import (
    StateLine,
    no_bars,
    parameters_as_json,
    shown_words,
    state_lines,
    states_as_json,
)
from streaming_moments.pipelines.reports.status import since_text
from streaming_moments.pipelines.reports.tables import (
    RELEVANCE_WEIGHT,
    TopicLine,
    as_json,
    described_as_json,
    model_scores,
    scores_line,
    shown_number,
    together_line,
    topic_lines,
)
from streaming_moments.pipelines.terminal import detail, say
from streaming_moments.quality.coherences.base import coherence_of
from streaming_moments.quality.coherences.registry import COHERENCES
from streaming_moments.storage.operations.growth import AddedWords
from streaming_moments.storage.operations.lineages import vocabulary_of
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.storage.merging.origin_shares import OriginShares
    from streaming_moments.storage.operations.shares_over_time import PeriodShares


@dataclass(frozen=True, eq=False)
class ModelView(ABC):
    """A model and its description, ready to show.

    `halves` is whether its store has halves of the records, which error bars need.
    """

    model: Any
    described: Description
    halves: bool

    @property
    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """Return the parts as JSON, with key `topics`, or `states` if they are not topics."""

    @property
    @abstractmethod
    def scores(self) -> dict[str, Any]:
        """Return the numbers of the whole model that are computed only for display, as JSON."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Return the name of each part: its label, or its first words."""

    @abstractmethod
    def print(self, console: Console, starred: Container[str] = ()) -> None:
        """Print a table of the parts, or the picture that the model draws.

        Words in `starred` get an asterisk.
        """

    @property
    def as_json(self) -> dict[str, Any]:
        """Return the description of the fit, of the model, and of its parts as JSON."""
        return {**described_as_json(self.model), **self.parts}

    @property
    def sentences(self) -> list[str]:
        """Sentences about the whole model: its scores, and which parts are correlated."""
        return []

    @property
    def lacks(self) -> list[str]:
        """Return the sentence about missing error bars, if they are missing."""
        return [*filter(None, (no_bars(self.model, self.halves),))]


@dataclass(frozen=True, eq=False)
class TopicsView(ModelView):
    """Topics, each with its words by relevance."""

    lines: tuple[TopicLine, ...]
    weight: float

    @property
    def parts(self) -> dict[str, Any]:
        """The topics as JSON."""
        return {"topics": [as_json(line) for line in self.lines]}

    @property
    def scores(self) -> dict[str, Any]:
        """Coherence and diversity."""
        return dict(model_scores(self.model))

    @property
    def names(self) -> list[str]:
        """Return labels, or the first two words."""
        return [line.label or " ".join(line.words[:2]) for line in self.lines]

    def print(self, console: Console, starred: Container[str] = ()) -> None:
        """Print a table of topics."""
        print_topics(console, self.lines, "", self.weight, starred, self.described.columns)

    @property
    def sentences(self) -> list[str]:
        """Scores, and correlated topics."""
        return [*filter(None, (scores_line(self.model), together_line(self.model)))]


@dataclass(frozen=True, eq=False)
class StatesView(ModelView):
    """States, clusters or factors, each with its most probable words in every view, if any."""

    what: str
    lines: tuple[StateLine, ...]

    @property
    def parts(self) -> dict[str, Any]:
        """Return an empty list of topics, and the states as JSON."""
        return {"topics": [], "states": states_as_json(self.lines)}

    @property
    def scores(self) -> dict[str, Any]:
        """Return the parameters of a model of rows of numbers; empty for other models."""
        return parameters_as_json(self.model)

    @property
    def names(self) -> list[str]:
        """Return the label of each part, or its noun and number, such as "state 2"."""
        return [line.label or f"{self.what} {line.state}" for line in self.lines]

    def print(self, console: Console, starred: Container[str] = ()) -> None:
        """Print the picture of the model, or else a table of its states."""
        if self.described.picture:
            say(*self.described.picture.splitlines())
            return
        print_states(console, self.lines, self.model, self.what)


def topics_view(
    store: MomentStore, model: Any, words: int, weight: float, labels: Mapping[int, str]
) -> ModelView:
    """Make the view of a model with topics; arguments as in `model_view`."""
    lines = topic_lines(model, vocabulary_of(store, model), words, weight, labels)
    return TopicsView(model, model.described(), store.halves, tuple(lines), weight)


def states_view(
    what: str,
    store: MomentStore,
    model: Any,
    words: int,
    weight: float,
    labels: Mapping[int, str],
) -> ModelView:
    """Make the view of a model whose parts are called `what`; arguments as in `model_view`."""
    lines = state_lines(model, store, words, labels)
    return StatesView(model, model.described(), store.halves, what, tuple(lines))


def print_model(
    console: Console,
    view: ModelView,
    title: str,
    warnings: Sequence[str],
    later: Mapping[str, AddedWords] = MappingProxyType({}),
    over_time: Sequence[PeriodShares] | None = None,
) -> None:
    """Print a table of the parts of a model, its description, and warnings.

    Words that were added `later` than the others get an asterisk. `over_time` has shares of the
    topics over time, if the user requested them.
    """
    # print the title above the table, because a title of a table would be only as wide as the table
    say(title)
    view.print(console, later)
    for part in sorted(set(later.values()), key=lambda part: part.version):
        since = [word for word, own in later.items() if own == part]
        say(f"* counted since {since_text(part)}: {', '.join(sorted(since))}")
    if over_time is not None:
        from streaming_moments.pipelines.reports.period_changes import change_said

        print_periods(console, over_time)
        say(change_said(over_time, view.names))
    told = [*view.sentences, *warnings]
    say(*[""] * bool(told), *told)
    detail(view.described.sentence)


def print_topics(
    console: Console,
    lines: Sequence[TopicLine],
    title: str = "",
    weight: float = RELEVANCE_WEIGHT,
    starred: Container[str] = (),
    columns: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> None:
    """Print a table of topics; `starred` words get an asterisk, `columns` are further columns."""
    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("topic" if lines else "state", justify="right")
    numbers = [[f"{number:.3g}" for number in row] for row in zip(*columns.values(), strict=True)]
    if not lines:
        for name in columns:
            table.add_column(name, justify="right")
        for state, row in enumerate(numbers):
            table.add_row(str(state), *row)
        console.print(table)
        return
    labelled = any(line.label is not None for line in lines)
    if labelled:
        table.add_column("label", overflow="fold")
    table.add_column("weight", justify="right")
    known = [
        (key, one)
        for key, one in COHERENCES.items()
        if any(coherence_of(line, key) is not None for line in lines)
    ]
    for _, one in known:
        table.add_column(one.name, justify="right")
    for name in columns:
        table.add_column(name, justify="right")
    table.add_column(f"words by relevance (lambda {weight:g})", overflow="fold")
    for line in lines:
        scores = [shown_number(coherence_of(line, key), one.digits) for key, one in known]
        words = (
            f"{marked}*" if word in starred else marked
            for word, marked in zip(line.words, line.marked, strict=True)
        )
        own = numbers[line.topic] if columns else []
        called = [line.label or ""] * labelled
        shown = [*called, f"{line.weight:.1%}", *scores, *own]
        table.add_row(str(line.topic), *shown, " ".join(words))
    console.print(table)


def print_states(
    console: Console,
    lines: Sequence[StateLine],
    model: Model,
    what: str = "state",
) -> None:
    """Print a table of the parts called `what`: numbers of each part, and its words, if any."""
    columns = model.described().columns
    numbers = [[f"{number:.3g}" for number in row] for row in zip(*columns.values(), strict=True)]
    table = Table(show_edge=False, pad_edge=False)
    labelled = any(line.label for line in lines)
    table.add_column(what, justify="right")
    if labelled:
        table.add_column("label", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right")
    for name in lines[0].words if lines else ():
        table.add_column(name, overflow="fold")
    for state, row in enumerate(numbers):
        words = [shown_words(lines[state], name) for name in lines[state].words] if lines else []
        called = [lines[state].label or ""] if labelled else []
        table.add_row(str(state), *called, *row, *words)
    console.print(table)


def print_periods(console: Console, periods: Sequence[PeriodShares]) -> None:
    """Print a table of the shares of topics over time and their standard errors, in percent."""
    days = [(str(one.days.first), str(one.days.last)) for one in periods]
    _print_shares(console, ("from", "to"), days, periods)


def print_origin_shares(console: Console, origins: Sequence[OriginShares]) -> None:
    """Print a table of the shares of topics by origin, in the format of `print_periods`."""
    _print_shares(console, ("origin",), [(one.origin or "(own)",) for one in origins], origins)


def _print_shares(
    console: Console,
    heads: tuple[str, ...],
    begins: Sequence[tuple[str, ...]],
    rows: Sequence[PeriodShares | OriginShares],
) -> None:
    table = Table(title="share of the tokens, %", title_justify="left", show_edge=False)
    for name in (*heads, "tokens", *map(str, range(len(rows[0].shares) if rows else 0))):
        table.add_column(name, justify="right")
    for begin, one in zip(begins, rows, strict=True):
        pairs = zip(one.shares, one.bars, strict=True)
        shares = (f"{100 * share:.1f} ± {100 * bar:.1f}" for share, bar in pairs)
        table.add_row(*begin, f"{one.tokens:,}", *shares)
    console.print(table)
