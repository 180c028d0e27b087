"""Progress of long steps: a bar on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streaming_moments.pipelines.cluster.progress_lines import ProgressLines
from streaming_moments.progress import Report


class StepProgress(Protocol):
    """Told how far each step has come."""

    def advance(self, step: str, done: int, total: int) -> None:
        """`done` of `total` units of `step` are finished; the step ends when they are equal."""


@dataclass(frozen=True)
class Silent:
    """No progress shown."""

    def advance(self, step: str, done: int, total: int) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Bars:
    """A bar for each step."""

    progress: Progress
    tasks: dict[str, object] = field(default_factory=dict)

    def advance(self, step: str, done: int, total: int) -> None:
        """Move the step's bar."""
        if step not in self.tasks:
            self.tasks[step] = self.progress.add_task(step, total=total)
        self.progress.update(self.tasks[step], completed=done, total=total)  # type: ignore[arg-type]


@dataclass
class StepLines:
    """A line as each step first ends, and one now and then of steps that take longer."""

    report: Report
    every: float = 10.0  # seconds
    ended: set[str] = field(default_factory=set)
    last: float = field(default_factory=monotonic)

    def advance(self, step: str, done: int, total: int) -> None:
        """Report a step that ended, or a step that began long ago."""
        now = monotonic()
        new = done == total and step not in self.ended
        if new or now - self.last >= self.every:
            self.report(f"{step}: {done:,} of {total:,}")
            self.last = now
        if done == total:
            self.ended.add(step)


@contextmanager
def step_progress(tell: Callable[[str], None], quiet: bool = False) -> Iterator[StepProgress]:
    """Bars on standard error when it is a terminal, else lines by `tell`; nothing if `quiet`."""
    if quiet or not sys.stderr.isatty():
        yield Silent() if quiet else ProgressLines(tell)
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        yield Bars(progress)
