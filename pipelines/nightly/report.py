"""What a nightly run did, as plain values: one JSON file a night."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.reports.page import Gate, StepReport, TopicReport
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.reports.status import Status
from streaming_moments.pipelines.reports.tables import RELEVANCE_WEIGHT, topic_lines
from streaming_moments.quality.drift import Drift
from streaming_moments.quality.matching import TopicMatching
from streaming_moments.quality.relevance import top_words
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.files.folders import Folder

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.candidates import Candidate

LATEST = "latest"
_WORDS = 30


@dataclass(frozen=True)
class NightReport:
    """All that a night did and found.

    Parameters
    ----------
    store : str
        URL.
    started, finished : str
        ISO 8601, UTC.
    outcome : {"published", "refused", "nothing new", "failed"}
        How it ended.
    exit_code : int
        Of the command.
    version : int or None
        Of the store at the end; None if there is none.
    steps : tuple of StepReport
        In order.
    counted, documents : int
        Shards and documents counted now.
    bad : tuple of (str, str)
        Shards left out, each with the reason.
    drift : Drift, optional
        Before the rebase, if there was one.
    rebase_reasons : tuple of str
        Why words and basis were made anew; empty if they were not.
    candidates : tuple of Candidate
        Models that were tried.
    gates : tuple of Gate
        Conditions of publishing.
    reasons : tuple of str
        Why the model was refused; empty if it was not.
    model, published, published_before : str, optional
        Names of the night's model, and of those published after and before it.
    last_published : str, optional
        When a run last published a model, this one or an earlier, ISO 8601.
    topics : tuple of TopicReport
        Of the night's model.
    matching : TopicMatching, optional
        Its topics beside those published before.
    spectrum, exact_spectrum : tuple of float
        Eigenvalues through the basis, and exact.
    status : Status, optional
        Of the store at the end.
    error : str
        What stopped it.
    """

    store: str
    started: str
    finished: str = ""
    outcome: str = "failed"
    exit_code: int = ExitCode.INPUT
    version: int | None = None
    steps: tuple[StepReport, ...] = ()
    counted: int = 0
    documents: int = 0
    bad: tuple[tuple[str, str], ...] = ()
    drift: Drift | None = None
    rebase_reasons: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    gates: tuple[Gate, ...] = ()
    reasons: tuple[str, ...] = ()
    model: str | None = None
    published: str | None = None
    published_before: str | None = None
    last_published: str | None = None
    topics: tuple[TopicReport, ...] = ()
    matching: TopicMatching | None = None
    spectrum: tuple[float, ...] = ()
    exact_spectrum: tuple[float, ...] = ()
    status: Status | None = field(default=None)
    error: str = ""


def topics_of(
    model: TopicModel, vocabulary: Vocabulary, labels: Mapping[int, str] = MappingProxyType({})
) -> tuple[TopicReport, ...]:
    """The topics of a model as a report holds them.

    Examples
    --------
    >>> import numpy as np
    >>> model = TopicModel.from_topics(np.array([[0.9], [0.1]]), np.array([1.0]))
    >>> topics_of(model, Vocabulary(("law", "sea"), core=2))[0].words
    (('law', 0.9, 0.9), ('sea', 0.1, 0.1))
    """
    lines = topic_lines(model, vocabulary, 10, labels=labels)
    found = []
    for line, words in zip(lines, top_words(model.topics, _WORDS), strict=True):
        rows = [
            (
                vocabulary.terms[word],
                float(model.topics[word, line.topic]),
                float(model.word_probabilities[word]),
            )
            for word in words.tolist()
        ]
        bar, bars = None, ()
        if model.topic_bars is not None and model.word_bars is not None:
            bar = float(model.topic_bars[line.topic])
            bars = tuple(model.word_bars[words, line.topic].tolist())
        known = (line.topic, line.weight, line.npmi, line.words)
        found.append(TopicReport(*known, tuple(rows), bar, bars, line.label))
    return tuple(found)


def report_as_json(report: NightReport) -> dict[str, Any]:
    """The report as JSON holds it; what is no number is null."""
    content: dict[str, Any] = json_value(asdict(report))
    return {**content, "relevance_weight": RELEVANCE_WEIGHT}


def write_report(folder: Folder, report: NightReport, latest: bool = True) -> str:
    """Write a report, and as the latest one as well unless it is not; gives its URL.

    Raises
    ------
    StoreError
        The folder cannot be written.
    """
    content = json.dumps(report_as_json(report), ensure_ascii=False, allow_nan=False).encode()
    return write_beside(folder, report, ".json", content, latest)


def write_beside(
    folder: Folder, report: NightReport, suffix: str, content: bytes, latest: bool = True
) -> str:
    """Write a file of a night under the name of its report, and as the latest; gives its URL.

    Raises
    ------
    StoreError
        The folder cannot be written.

    Examples
    --------
    >>> report = NightReport("store", "2026-05-01T03:15:00+00:00")
    >>> write_beside(Folder.at("memory://reports"), report, ".txt", b"no topics")
    'memory://reports/night-20260501T031500000000Z.txt'
    """
    name = f"night-{datetime.fromisoformat(report.started):%Y%m%dT%H%M%S%f}Z{suffix}"
    folder.write(name, content)
    if latest:
        folder.write(f"{LATEST}{suffix}", content)
    return f"{folder.url}/{name}"
