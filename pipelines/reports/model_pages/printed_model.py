"""What `topics` prints of a model: its parts, their shares over time, what to beware of."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from streaming_moments.models.base import Model
from streaming_moments.pipelines.reports.states import StateLine, shown_words
from streaming_moments.pipelines.reports.status import since_text
from streaming_moments.pipelines.reports.tables import RELEVANCE_WEIGHT, TopicLine, shown_number
from streaming_moments.pipelines.terminal import say
from streaming_moments.quality.coherences.base import coherence_of
from streaming_moments.quality.coherences.registry import COHERENCES
from streaming_moments.storage.operations.growth import AddedWords

if TYPE_CHECKING:
    from streaming_moments.pipelines.reports.model_pages.model_view import ModelView
    from streaming_moments.storage.operations.shares_over_time import PeriodShares


def print_model(
    console: Console,
    view: ModelView,
    title: str,
    warnings: Sequence[str],
    later: Mapping[str, AddedWords] = MappingProxyType({}),
    over_time: Sequence[PeriodShares] | None = None,
) -> None:
    """Print a table of the parts of a model, what it says of itself, and warnings.

    Words that came `later` than the others are marked by an asterisk; `over_time` are the shares of
    topics, where they were asked for.
    """
    view.print(console, title, later)
    for part in sorted(set(later.values()), key=lambda part: part.version):
        since = [word for word, own in later.items() if own == part]
        say(f"* counted since {since_text(part)}: {', '.join(sorted(since))}")
    if over_time is not None:
        from streaming_moments.pipelines.reports.period_changes import change_said

        print_periods(console, over_time)
        say(change_said(over_time, view.names))
    say("", *view.sentences, *warnings)


def print_topics(
    console: Console,
    lines: Sequence[TopicLine],
    title: str = "",
    weight: float = RELEVANCE_WEIGHT,
    starred: Container[str] = (),
    columns: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> None:
    """A table of topics, some words with an asterisk, and of what else a model says of each."""
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
    title: str = "",
    what: str = "state",
) -> None:
    """A table of states, or of `what` they are: numbers of each, and their words, if any."""
    columns = model.described().columns
    numbers = [[f"{number:.3g}" for number in row] for row in zip(*columns.values(), strict=True)]
    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False)
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
    """A table of the shares of topics over time, each with its standard error, in percent."""
    table = Table(title="share of the tokens, %", title_justify="left", show_edge=False)
    for name in (
        "from",
        "to",
        "tokens",
        *map(str, range(len(periods[0].shares) if periods else 0)),
    ):
        table.add_column(name, justify="right")
    for one in periods:
        pairs = zip(one.shares, one.bars, strict=True)
        shares = (f"{100 * share:.1f} ± {100 * bar:.1f}" for share, bar in pairs)
        table.add_row(str(one.days.first), str(one.days.last), f"{one.tokens:,}", *shares)
    console.print(table)
