"""Progress of long steps: a bar on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streaming_moments.pipelines.cluster.progress_lines import ProgressLines


class StepProgress(Protocol):
    """Receiver of the progress of each step."""

    def advance(self, step: str, done: int, total: int) -> None:
        """Report `done` of `total` units of `step`; the step ends when both are equal."""


@dataclass(frozen=True)
class Silent:
    """Shows no progress."""

    def advance(self, step: str, done: int, total: int) -> None:
        """Print nothing."""


@dataclass(frozen=True)
class PartProgress:
    """Reports steps under the number of a part of the documents, because each part has a total."""

    progress: StepProgress
    part: int

    def advance(self, step: str, done: int, total: int) -> None:
        """Report the step of this part."""
        self.progress.advance(f"{step} of part {self.part}", done, total)


@dataclass(frozen=True)
class Bars:
    """Shows a bar for each step."""

    progress: Progress
    tasks: dict[str, object] = field(default_factory=dict)

    def advance(self, step: str, done: int, total: int) -> None:
        """Update the bar of the step."""
        if step not in self.tasks:
            self.tasks[step] = self.progress.add_task(step, total=total)
        self.progress.update(self.tasks[step], completed=done, total=total)  # type: ignore[arg-type]


@contextmanager
def step_progress(tell: Callable[[str], None], quiet: bool = False) -> Iterator[StepProgress]:
    """Yield bars if standard error is a terminal, otherwise lines; nothing if `quiet`.

    `tell` prints a line.
    """
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
