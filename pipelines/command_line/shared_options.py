"""Options that several commands share, and where a command runs."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.console import Console
from rich.text import Text

from streaming_moments.pipelines.cluster.lazy_cluster import late_cluster
from streaming_moments.pipelines.cluster.memory import LIMITS
from streaming_moments.pipelines.cluster.progress import step_progress
from streaming_moments.pipelines.cluster.run import COMMIT_EVERY, Run
from streaming_moments.pipelines.cluster.watching import dashboard_link, reported, require_report
from streaming_moments.pipelines.cluster.worker_loss import WORKER_TIMEOUT
from streaming_moments.pipelines.command_help import (
    OUTPUT,
    READING,
    RUNNING,
    in_section,
)
from streaming_moments.pipelines.option_types import (
    NUMBER,
    Bytes,
    Duration,
    HalfLife,
    Parsed,
    Whole,
)
from streaming_moments.pipelines.quantities import alpha0_of
from streaming_moments.pipelines.terminal import (
    DETAILED,
    QUIET,
    asked_for,
    confirm,
    shown,
    tell,
    unheard,
)
from streaming_moments.storage.files.noted_options import NotedOptions
from streaming_moments.storage.files.urls import require_no_secret, require_no_user
from streaming_moments.storage.formats import ReadLimits

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.cluster import Cluster
    from streaming_moments.storage.store.store import MomentStore

_MOST_NUMBERS = 1000
_WINDOW = "Days and weights"


def _topic_numbers(value: str) -> tuple[int, ...]:
    """Parse a text such as 2-32, 2-32:5 or 5,10,20 into increasing, distinct numbers of topics."""
    numbers: set[int] = set()
    for part in value.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip())
        first, last, step = (int(text or 0) for text in match.groups()) if match else (0, 0, 0)
        if not match or not first or (match[2] and last < first) or (match[3] and not step):
            raise click.BadParameter(
                f"{part.strip()!r} is not a list of numbers of topics; write for example "
                "2-32, 2-32:5 or 5,10,20"
            )
        numbers |= set(range(first, (last or first) + 1, step or 1)[: _MOST_NUMBERS + 1])
    if len(numbers) > _MOST_NUMBERS:
        raise click.BadParameter(
            f"{value!r} lists more than {_MOST_NUMBERS} numbers; use steps, such as 2-2000:10"
        )
    return tuple(sorted(numbers))


def _alphas(value: str) -> tuple[float | Literal["auto"], ...]:
    """Parse a text such as auto, 0.1 or 0,0.1,1 into values of alpha0, in the same order."""
    return tuple(map(alpha0_of, value.split(",")))


def _day(value: str) -> date:
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a day; write for example 2026-11-21") from error


def _json_object(value: str) -> NotedOptions:
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        # the message does not repeat the value, because it may hold a secret
        raise click.BadParameter("not a JSON object; write for example '{\"anon\": true}'")
    return NotedOptions(parsed)


TopicNumbers = functools.partial(Parsed[tuple[int, ...]], "numbers", _topic_numbers)
Alphas = functools.partial(Parsed[tuple[float | Literal["auto"], ...]], "alphas", _alphas)
_DAY = Parsed("day", _day)
SHARD_URL = Parsed("url", require_no_user)
# URL of a store or output. Unlike the URL of a shard, it may not hold a signature or key.
STORE_URL = Parsed("url", require_no_secret)


@dataclass(frozen=True)
class Session:
    """Where a command runs, and how it can be watched; fields as in `connect`.

    worker_timeout : the command fails if it has no worker for this long
    dashboard : whether to print the link of Dask's dashboard
    performance_report : HTML file for Dask's own report of the run
    """

    scheduler: str | None = None
    workers: int = 0
    memory: int | None = None
    worker_timeout: timedelta = timedelta(seconds=WORKER_TIMEOUT)
    dashboard: bool = False
    performance_report: str | None = None


store_argument = click.argument("store", type=STORE_URL)
shards_argument = click.argument("shards", nargs=-1, required=True, type=SHARD_URL)
storage_option = in_section(
    OUTPUT,
    "--storage-options",
    type=Parsed("json", _json_object),
    help="fsspec options for cloud URLs as JSON; never stored.",
)
json_option = in_section(
    OUTPUT, "--json", "json_output", is_flag=True, help="Print one JSON object."
)
words_option = click.option(
    "--words",
    type=Whole(1),
    default=10,
    show_default=True,
    help="Number of words to show per topic.",
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for where to run; the command gets them as `session`."""

    @in_section(
        RUNNING,
        "--scheduler",
        metavar="ADDRESS",
        type=SHARD_URL,
        help="Address of a Dask scheduler, such as tcp://host:8786.",
    )
    @in_section(
        RUNNING,
        "--workers",
        type=NUMBER,
        default=0,
        help="Number of local worker processes to start, instead of running on threads.",
    )
    @in_section(
        RUNNING,
        "--memory",
        type=Bytes(),
        help="Memory budget of a worker, such as 4GB [60% of its memory].",
    )
    @in_section(
        RUNNING,
        "--worker-timeout",
        type=Duration(),
        default=timedelta(seconds=WORKER_TIMEOUT),
        help="Stop after this time without a worker [5m].",
    )
    @in_section(RUNNING, "--dashboard", is_flag=True, help="Print the link of Dask's dashboard.")
    @in_section(
        RUNNING,
        "--performance-report",
        metavar="FILE",
        help="Write Dask's performance report of the run, as HTML.",
    )
    @functools.wraps(command)
    def placed(
        scheduler: str | None,
        workers: int,
        memory: int | None,
        worker_timeout: timedelta,
        dashboard: bool,
        performance_report: str | None,
        **given: Any,
    ) -> Any:
        session = Session(scheduler, workers, memory, worker_timeout, dashboard, performance_report)
        return command(session=session, **given)

    return placed


def window_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the days whose documents are used; the command gets them as `window`."""

    @in_section(_WINDOW, "--since", type=_DAY, help="Use documents from this day on, YYYY-MM-DD.")
    @in_section(
        _WINDOW,
        "--until",
        type=_DAY,
        help="Use documents up to and including this day, YYYY-MM-DD.",
    )
    @in_section(
        _WINDOW,
        "--half-life",
        type=HalfLife(),
        metavar="DAYS",
        help="Days after which a document has half its weight. Weighted sums are floats, not whole "
        "numbers.",
    )
    @functools.wraps(command)
    def windowed(
        since: date | None, until: date | None, half_life: float | None, **given: Any
    ) -> Any:
        from streaming_moments.storage.operations.windows import Window

        return command(window=Window(since, until, half_life), **given)

    return windowed


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for reading shards; the command gets them as `limits`."""

    @in_section(
        READING,
        "--max-document-bytes",
        type=Bytes(),
        default=LIMITS.document_bytes,
        help="Largest document, line or list of ids that is read [8MiB].",
    )
    @in_section(
        READING,
        "--max-row-group-bytes",
        type=Bytes(),
        help="Decode Parquet row groups up to this size at once, and larger ones page by page. No "
        "page may be larger than this [chosen from --memory].",
    )
    @functools.wraps(command)
    def limited(max_document_bytes: int, max_row_group_bytes: int | None, **given: Any) -> Any:
        limits = ReadLimits(max_document_bytes, row_group_bytes=max_row_group_bytes)
        return command(limits=limits, **given)

    return limited


@contextmanager
def running(
    session: Session,
    storage_options: Mapping[str, object] | None = None,
    limits: ReadLimits = LIMITS,
    commit_every: timedelta = timedelta(seconds=COMMIT_EVERY),
    quiet: bool = False,
) -> Iterator[Run]:
    """Yield the run of a job: a cluster, and the progress that it shows unless `quiet`."""
    quiet = quiet or asked_for(QUIET)
    # ask for the flags here, because other threads of the command have no click context
    heard, details = unheard if quiet else tell, tell if asked_for(DETAILED) else unheard
    require_report(session.performance_report)
    with _placed(session, heard, details) as cluster:
        if session.dashboard:
            tell(f"dashboard: {dashboard_link(cluster)}")
        with reported(session.performance_report), step_progress(heard, quiet) as progress:
            seconds = commit_every.total_seconds()
            yield Run(cluster, progress, limits, storage_options, seconds, heard, details)


@dataclass(frozen=True)
class JobSetup:
    """Options of a job that reads shards: where it runs, its limits, and the form of its output."""

    session: Session
    limits: ReadLimits
    storage_options: dict[str, Any] | None
    json_output: bool

    def running(self, **more: Any) -> AbstractContextManager[Run]:
        """Yield the run of the job; `more` are other arguments of `running`."""
        return running(self.session, self.storage_options, self.limits, **more)


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a job that reads shards; the command gets them as `job`."""

    @functools.wraps(command)
    def set_up(
        session: Session,
        limits: ReadLimits,
        storage_options: dict[str, Any] | None,
        json_output: bool,
        **given: Any,
    ) -> Any:
        return command(job=JobSetup(session, limits, storage_options, json_output), **given)

    return limit_options(cluster_options(storage_option(json_option(set_up))))


def _placed(
    session: Session, heard: Callable[[str], None], details: Callable[[str], None]
) -> AbstractContextManager[Cluster]:
    """Yield the cluster of a session.

    It starts at its first use, unless a dashboard or report watches it or a scheduler is given.
    """

    @contextmanager
    def start() -> Iterator[Cluster]:
        from streaming_moments.pipelines.cluster.cluster import connect
        from streaming_moments.pipelines.cluster.compiling import telling_of_kernels

        timeout = session.worker_timeout.total_seconds()
        pages = session.dashboard
        with (
            telling_of_kernels(heard),
            connect(
                scheduler=session.scheduler,
                workers=session.workers,
                memory=session.memory,
                worker_timeout=timeout,
                on_wait=heard,
                dashboard=pages,
                detail=details,
            ) as cluster,
        ):
            yield cluster

    watched = session.dashboard or session.performance_report is not None
    return start() if watched or session.scheduler else late_cluster(start)


def console() -> Console:
    """Return the console that prints tables; it prints their text literally, without markup."""
    # without a terminal use a larger width, so that piped output is not cut at 80 columns
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else 160
    return _PlainConsole(width=width, markup=False, emoji=False)


class _PlainConsole(Console):
    """Console whose `render_str`, which renders every cell and line, escapes control characters."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str("\n".join(map(shown, text.split("\n"))), **how)


def print_json(value: Mapping[str, Any]) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def print_version(store: MomentStore, what: str, json_output: bool) -> None:
    """Print what a command changed in a store, and the new version of the store."""
    if not json_output:
        confirm(f"version {store.version}: {what}")
        return
    commit = store.commit
    print_json(
        {
            "store": store.url,
            "version": commit.version,
            "operation": commit.operation,
            "documents": commit.documents,
            "shards": commit.shards,
            "segments": len(commit.segments),
            "tags": dict(commit.tags),
        }
    )
