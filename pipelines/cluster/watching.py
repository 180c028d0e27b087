"""Dask's own views of a run: its dashboard, and a report."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.extras import needs

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.cluster import Cluster


def dashboard_link(cluster: Cluster) -> str:
    """Return the URL of the dashboard of a cluster's scheduler.

    Raises InvalidInput if there is no dashboard, or if the package that draws it is missing.
    """
    _require_bokeh("--dashboard")
    link: str = cluster.client.dashboard_link
    if not link:
        raise InvalidInput("the scheduler has no dashboard; start it with `dask scheduler`")
    return link


def require_report(path: str | None) -> None:
    """Refuse to start a run if its report cannot be written, or if a package is missing."""
    if path is None:
        return
    _require_bokeh("--performance-report")
    folder = Path(path).absolute().parent
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{folder} is not a writable folder; create it, or give another one")


@contextmanager
def reported(path: str | None) -> Iterator[None]:
    """Write Dask's report of the tasks of the block to an HTML file; None writes nothing.

    The scheduler draws the report, so bokeh must be installed there as well.
    """
    if path is None:
        yield
        return
    from distributed import performance_report

    with performance_report(filename=path):
        yield


def _require_bokeh(option: str) -> None:
    if importlib.util.find_spec("bokeh") is None:
        raise InvalidInput(needs(option, "bokeh", "dashboard"))
