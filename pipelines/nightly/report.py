"""Report of a nightly run as plain values: one JSON file for each run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.reports.page import Gate, StepReport, TopicReport
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.reports.status import Status
from streaming_moments.pipelines.reports.tables import RELEVANCE_WEIGHT
from streaming_moments.quality.drift import Drift
from streaming_moments.quality.matching import TopicMatching
from streaming_moments.storage.files.folders import Folder

if TYPE_CHECKING:
    from streaming_moments.models.halves import HeldOut
    from streaming_moments.pipelines.jobs.candidates import Candidate

LATEST = "latest"
INDEX = "index.html"
NO_STORE_YET = "no store yet: the first nightly run that finds shards creates it"
_SHOWN = 5  # list at most this many left-out shards
_IN_NAMES = "%Y%m%dT%H%M%S%fZ"


@dataclass(frozen=True)
class UndecidedModel:
    """A rejected model that no one has published, and that no later model replaces.

    reasons : the violated gates
    rejected : start of the nightly run that fitted and rejected the model, ISO 8601
    command : command that publishes the model nevertheless
    """

    model: str
    reasons: tuple[str, ...]
    rejected: str
    command: str


def undecided_model(
    store: str, tag: str, model: str, reasons: tuple[str, ...], rejected: str
) -> UndecidedModel:
    """Return a rejected model with the command that publishes it."""
    command = shlex.join(["streaming-moments", "tag", store, tag, model])
    return UndecidedModel(model, reasons, rejected, command)


@dataclass(frozen=True)
class NightReport:
    """Everything that a nightly run did and found.

    Parameters
    ----------
    store : str
        URL of the store.
    started, finished : str
        Start and end of the run, ISO 8601, UTC.
    filed : str
        Time in the names of the run's files, ISO 8601: the start, or a microsecond after the
        latest report if the clock was set back. So the names sort by run.
    outcome : {"published", "rejected", "nothing new", "failed"}
        How the run ended.
    exit_code : int
        Exit code of the command.
    version : int or None
        Version of the store at the end; None without a store.
    steps : tuple of StepReport
        Steps in their order.
    counted, documents : int
        Numbers of shards and documents that this run counted.
    bad : tuple of (str, str)
        Left-out shards, each with the reason.
    drift : Drift, optional
        Drift, measured before a rebase.
    rebase_reasons : tuple of str
        Why the run rebased; empty if it did not.
    words_added : int
        Number of words added to the vocabulary.
    growth : str
        Why words were added, or why not although many tokens are outside the vocabulary. Empty if
        few tokens are outside.
    candidates : tuple of Candidate
        Models that were tried.
    single : HeldOut, optional
        Held-out score of a model of one topic, with which the scores of candidates are compared,
        if that model is not a candidate.
    gates : tuple of Gate
        Bounds for publishing.
    reasons : tuple of str
        Why the model was rejected; empty if it was not.
    undecided : UndecidedModel, optional
        Rejected model that a user may still publish: of this run, or of an earlier one if no
        run has fitted a model since.
    warnings : tuple of str
        What may be wrong with the configuration, such as a pattern that matches nothing.
    model : str, optional
        Name of the model of this run.
    published, published_before : str, optional
        Names of the published model after and before the run.
    tag : str
        Tag of the published model; empty in reports of earlier releases.
    last_published : str, optional
        When this run or an earlier one last published a model, ISO 8601.
    topics : tuple of TopicReport
        Topics of the model of this run.
    matching : TopicMatching, optional
        Topics of the model of this run, matched with those of the model published before.
    spectrum, exact_spectrum : tuple of float
        Eigenvalues of the second moment: as the basis preserves them, and exact ones.
    status : Status or mapping, optional
        Status of the store at the end; for kinds other than documents, the facts of the store.
    error : str
        Error that stopped the run.
    """

    store: str
    started: str
    finished: str = ""
    filed: str = ""
    outcome: str = "failed"
    exit_code: int = ExitCode.INPUT
    version: int | None = None
    steps: tuple[StepReport, ...] = ()
    counted: int = 0
    documents: int = 0
    bad: tuple[tuple[str, str], ...] = ()
    drift: Drift | None = None
    rebase_reasons: tuple[str, ...] = ()
    words_added: int = 0
    growth: str = ""
    candidates: tuple[Candidate, ...] = ()
    single: HeldOut | None = None
    gates: tuple[Gate, ...] = ()
    reasons: tuple[str, ...] = ()
    undecided: UndecidedModel | None = None
    warnings: tuple[str, ...] = ()
    model: str | None = None
    published: str | None = None
    published_before: str | None = None
    tag: str = ""
    last_published: str | None = None
    topics: tuple[TopicReport, ...] = ()
    matching: TopicMatching | None = None
    spectrum: tuple[float, ...] = ()
    exact_spectrum: tuple[float, ...] = ()
    status: Status | Mapping[str, Any] | None = field(default=None)
    error: str = ""

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Warnings, and left-out shards with the reason."""
        return all_warnings(self.warnings, self.bad)

    def file_name(self, suffix: str) -> str:
        """Name of a file of this report, with a suffix such as ".json"."""
        return file_name(self.filed or self.started, suffix)

    @property
    def decision(self) -> tuple[str, ...]:
        """Say why a rejected model needs a decision, and what to do; empty without such a model.

        Examples
        --------
        >>> why = ("documents: 12, the gate allows at least 100",)
        >>> names = "store", "published", "night-v5"
        >>> old = undecided_model(*names, why, "2026-05-01T03:15:00+00:00")
        >>> report = NightReport("store", "2026-05-02T03:15:00+00:00", undecided=old)
        >>> for line in report.decision:
        ...     print(line)
        model night-v5, rejected on 2026-05-01, waits for a decision: documents: 12, the gate \
allows at least 100
        no model is published yet; to publish night-v5 anyway, run \
`streaming-moments tag store published night-v5`; otherwise the next night with new shards fits \
another model
        """
        if self.undecided is None:
            return ()
        one = self.undecided
        stays = f"the published model stays: {self.published}"
        now = stays if self.published else "no model is published yet"
        todo = (
            f"{now}; to publish {one.model} anyway, run `{one.command}`; otherwise the next night "
            "with new shards fits another model"
        )
        if one.model == self.model:
            return (todo,)
        why = f": {'; '.join(one.reasons)}" if one.reasons else ""
        since = one.rejected[:10]
        return f"model {one.model}, rejected on {since}, waits for a decision{why}", todo


def all_warnings(warnings: Sequence[str], bad: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return warnings and the first left-out shards in words.

    Examples
    --------
    >>> all_warnings(["b/*.txt: matches nothing"], [("a.txt", "is empty")])
    ('b/*.txt: matches nothing', 'left out a.txt: is empty')
    """
    left_out = [f"left out {url}: {reason}" for url, reason in bad[:_SHOWN]]
    more = [f"{len(bad) - _SHOWN:,} more shards were left out"] if len(bad) > _SHOWN else []
    return (*warnings, *left_out, *more)


def report_as_json(report: NightReport) -> dict[str, Any]:
    """Return the report for JSON; NaN and infinity become null."""
    content: dict[str, Any] = json_value(asdict(report))
    return {**content, "relevance_weight": RELEVANCE_WEIGHT}


def write_report(folder: Folder, report: NightReport, latest: bool = True) -> str:
    """Write a report and return its URL; if `latest`, also write it as the latest report."""
    content = json.dumps(report_as_json(report), ensure_ascii=False, allow_nan=False).encode()
    return write_beside(folder, report, ".json", content, latest)


def write_beside(
    folder: Folder, report: NightReport, suffix: str, content: bytes, latest: bool = True
) -> str:
    """Write a file of a nightly run under the name of its report, and return the file's URL.

    If `latest`, also write it under the name of the latest report.

    Examples
    --------
    >>> report = NightReport("store", "2026-05-01T03:15:00+00:00")
    >>> write_beside(Folder.at("memory://reports"), report, ".txt", b"no topics")
    'memory://reports/night-20260501T031500000000Z.txt'
    """
    name = report.file_name(suffix)
    folder.write(name, content)
    if latest:
        folder.write(f"{LATEST}{suffix}", content)
    return f"{folder.url}/{name}"


def file_name(filed: str, suffix: str) -> str:
    """Return the name of a file of the nightly run with this time; names sort by time.

    Examples
    --------
    >>> file_name("2026-05-01T03:15:00+00:00", ".html")
    'night-20260501T031500000000Z.html'
    """
    return f"night-{datetime.fromisoformat(filed):{_IN_NAMES}}{suffix}"


def time_in(name: str) -> datetime | None:
    """Return the time in the name of a nightly run's file; None for other names.

    Examples
    --------
    >>> time_in("night-20260501T031500000000Z.html"), time_in("night-of-may.html")
    (datetime.datetime(2026, 5, 1, 3, 15, tzinfo=datetime.timezone.utc), None)
    """
    try:
        stem = name.removeprefix("night-").rpartition(".")[0]
        return datetime.strptime(stem, _IN_NAMES).replace(tzinfo=UTC)
    except ValueError:
        return None


def filed_after(started: str, latest: str) -> str:
    """Return the time for the names of a nightly run's files: the start of the run.

    If the start is not after the time of the report `latest`, return a microsecond after that time.

    Examples
    --------
    >>> filed_after("2026-05-01T03:15:00+00:00", "night-20270501T031500000000Z.json")
    '2027-05-01T03:15:00.000001+00:00'
    >>> filed_after("2026-05-01T03:15:00+00:00", "night-20260430T031500000000Z.json")
    '2026-05-01T03:15:00+00:00'
    """
    before = time_in(latest)
    if before is None:  # there is no report yet, or `latest` is not the name of a report
        return started
    if before < datetime.fromisoformat(started):
        return started
    return (before + timedelta(microseconds=1)).isoformat(timespec="microseconds")
