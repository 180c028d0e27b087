"""One way on one data set, in a fresh process; all ways are scored alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lines import Lines, cell
from measure import Clock
from methods import run_name
from runs import Runs

HIDDEN_CAPTION = (
    "Medians of the runs, and in brackets the worst and the best; likeliest: of the run that says "
    "itself that it is. O, T, views, memberships: mean L1 distance of matched columns (of nodes), "
    "0 to 2. Excess: nats above the truth on data held out. Embeddings: clusters beside labels; "
    "passes over the rows, of several starts those of the best; peak of the process, rows among "
    "it. All are told the number of states; ours alpha0 as well. In the clock: from arrays in "
    "memory, in each way's own format, to a fitted model; outside: imports, and compiled kernels, "
    "which are kept."
)


class Source(Protocol):
    """A data set; frozen, so that it can be pickled."""

    @property
    def name(self) -> str:
        """For the names of measurements; begins with what it is a set of."""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """What `score` finds."""

    def load(self) -> Any:
        """Draw or read it."""

    def score(self, result: Any, data: Any) -> Mapping[str, float]:
        """Figures of what a way found, on data that it did not see, or against the truth."""


class Way(Protocol):
    """From the data to what the source can score."""

    @property
    def name(self) -> str:
        """Name for the tables."""

    @property
    def seed(self) -> int | None:
        """Of a way whose runs differ."""

    def prepare(self, data: Any) -> Any:
        """Its own input format, imports and compiled kernels; outside the clock."""

    def fit(self, prepared: Any) -> Any:
        """The work; inside the clock."""

    def result(self, fitted: Any, prepared: Any) -> tuple[Any, float]:
        """What is scored, and what the way itself says of how likely it is; outside the clock."""


@dataclass(frozen=True)
class Figure:
    """A column of a table: its name among the figures, its title, and its digits."""

    name: str
    title: str
    digits: int


@dataclass(frozen=True)
class Beside:
    """A measurement."""

    source: Source
    way: Way

    @property
    def name(self) -> str:
        return run_name(self.source.name, self.way)

    def run(self, clock: Clock) -> Mapping[str, float]:
        data = self.source.load()
        prepared = self.way.prepare(data)
        with clock.running("fit"):
            fitted = self.way.fit(prepared)
        held = {"peak": clock.peak_bytes / 1e6}
        result, likelihood = self.way.result(fitted, prepared)
        return {"likelihood": likelihood, **held, **self.source.score(result, data)}


def beside_table(source: Source, runs: Sequence[Runs]) -> Lines:
    """The ways on one source; of several runs also the one that says that it is likeliest."""
    columns = ["way", "runs", "s, one", "CPU s", *(one.title for one in source.figures)]
    rows = []
    for one in runs:
        kept = one.likeliest.figures if one.likeliest is not None else {}
        told = len(one.done) > 1
        likeliest = (cell(kept.get(f.name), f.digits) if told else "" for f in source.figures)
        figures = (one.shown(f.name, f.digits) for f in source.figures)
        seconds = cell(one.seconds, 2) if one.done else one.shown_seconds()
        rows.append(
            (one.setting, str(len(one.done)), seconds, one.shown_cpu(), *figures, *likeliest)
        )
    columns += [f"likeliest: {one.title}" for one in source.figures]
    return Lines(source.name, tuple(columns), tuple(rows))
