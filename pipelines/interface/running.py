"""Run jobs that are called from Python, with a cluster, progress lines and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from distributed import Client

from streaming_moments.arguments import require_fitting
from streaming_moments.pipelines.cluster.cluster import connect, connect_by
from streaming_moments.pipelines.cluster.progress_lines import ProgressLines
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.interface.remedies import of_stores
from streaming_moments.printing.callers import warn_outside
from streaming_moments.printing.remedies import Sayable, in_words
from streaming_moments.progress import Report, unreported

PACKAGE = "pipelines"  # name of the logger
EVERY = 10.0  # seconds between two lines of a long step


@contextmanager
def running(
    client: Client | None,
    memory: int | None,
    storage_options: Mapping[str, Any] | None,
    report: Report = unreported,
) -> Iterator[Run]:
    """Make a run on the client, or on threads of this process; arguments as in `Store`."""
    require_fitting(running, memory=memory)
    cluster = connect(memory=memory) if client is None else connect_by(client, memory)
    with cluster as found:
        progress = ProgressLines(report, every=EVERY, ends=True)
        yield Run(
            found,
            progress,
            storage_options=storage_options,
            tell=lambda line: report(in_words(of_stores, line)),
        )


def warn_caller(line: Sayable | str) -> None:
    """Issue a warning that points to the caller's line outside this package."""
    warn_outside(in_words(of_stores, line))
