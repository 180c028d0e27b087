"""What an experiment gives, and the clock that all of them use."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.table import Table

PACKAGES = ("streaming-moments", "numpy", "scipy", "numba", "matplotlib", "lda", "tensorly")


@dataclass(frozen=True)
class Lines:
    """A table as plain cells; the first column is text, the others numbers or words."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def rich(self) -> Table:
        table = Table(title=self.title, caption=self.caption, title_justify="left", show_edge=False)
        for place, name in enumerate(self.columns):
            table.add_column(name, justify="right" if place and name != "words" else "left")
        for row in self.rows:
            table.add_row(*row)
        return table


@dataclass(frozen=True)
class Outcome:
    """An experiment that has been run.

    Parameters
    ----------
    name : str
        Of the experiment, and of its picture and entry in the JSON file.
    parameters : mapping
        All that was chosen, seeds among it.
    records : tuple of mapping
        One a measurement, flat.
    tables : tuple of Lines
        To print.
    draw : callable
        Draws the picture on an empty figure.
    size : (float, float)
        Of the picture, in inches.
    """

    name: str
    parameters: Mapping[str, Any]
    records: tuple[Mapping[str, Any], ...]
    tables: tuple[Lines, ...]
    draw: Callable[[Figure], None]
    size: tuple[float, float]

    def write_picture(self, folder: Path) -> None:
        figure = Figure(figsize=self.size, layout="constrained")
        self.draw(figure)
        figure.savefig(folder / f"{self.name}.png", dpi=130)


@dataclass
class Clock:
    """CPU seconds of this process: others on the machine lengthen them little.

    BLAS has one thread in all experiments, and nothing else here has more, so on a quiet machine
    these are the seconds one waits.
    """

    seconds: float = field(default=0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds = time.process_time() - start


def machine() -> dict[str, Any]:
    """What the experiments ran on."""
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": platform.platform(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
