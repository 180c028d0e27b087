"""History of the nightly runs, read from earlier reports for pages and metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from math import nan
from typing import Any

from streaming_moments.pipelines.nightly.report import (
    NightReport,
    UndecidedModel,
    all_warnings,
    report_as_json,
    undecided_model,
)
from streaming_moments.pipelines.reports.page import Gate, SampleDocument
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.files.folders import Folder

MOST_NIGHTS = 30


@dataclass(frozen=True)
class StoreState:
    """The store at the end of a nightly run; `time` is that of its latest commit, ISO 8601.

    A field has the value None if the package version that wrote the report did not record it.
    """

    version: int | None
    time: str | None
    documents: int | None
    tokens: int | None
    shards: int | None
    state_bytes: int | None


@dataclass(frozen=True)
class Night:
    """One run, as its report describes it.

    Reports are never rewritten, so each has only the fields of the version of the package that
    wrote it. Times are ISO 8601.

    last_published : when this run or an earlier one last published a model
    model : name of the model of this run
    published, published_before : names of the published model after and before this run
    weights : share of each topic in the model of this run, by the number of the topic
    origins : for each matched topic, by its number in this model, the number that it has in the
        model published before
    drift, state : None if they were not measured
    until : last day of the documents, if they have days
    names : name of each topic of the model of this run, by the number of the topic
    samples : a document about each topic, by the number of the topic
    page : name of the run's page, in the same folder; empty without one
    words_added : number of words added to the vocabulary
    seconds : seconds from the start of the run to its end; None if the run did not end
    gates : bounds for publishing, with the measured values
    reasons, error : as in the report
    warnings : warnings and left-out shards of the run, in words
    undecided : rejected model that waits for a decision
    """

    store: str
    started: str
    outcome: str
    last_published: str | None
    model: str | None
    published: str | None
    published_before: str | None
    weights: Mapping[int, float]
    origins: Mapping[int, int]
    drift: Drift | None
    state: StoreState | None
    until: str | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    samples: Mapping[int, SampleDocument] = field(default_factory=dict)
    page: str = ""
    words_added: int = 0
    seconds: float | None = None
    gates: tuple[Gate, ...] = ()
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ""
    undecided: UndecidedModel | None = None

    @property
    def needs_attention(self) -> bool:
        """Whether the run failed, its model was rejected, or it has warnings."""
        return self.outcome not in ("published", "nothing new") or bool(self.warnings)

    @property
    def why(self) -> str:
        """Why the run failed or its model was rejected, in one line; empty otherwise."""
        return self.error.partition("\n")[0] or "; ".join(self.reasons)


@dataclass(frozen=True)
class NightHistory:
    """Earlier runs, the latest last.

    `unread` names files that cannot be read as reports, and `pages` names the pages of the runs.

    `others` are runs of other stores whose reports are in the same folder, and `latest` is the name
    of the latest report of any store.
    """

    nights: tuple[Night, ...] = ()
    others: tuple[Night, ...] = ()
    unread: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    latest: str = ""

    @property
    def last_published(self) -> str | None:
        """Return when a run last published a model, ISO 8601."""
        told = (one.last_published for one in reversed(self.nights) if one.last_published)
        return next(told, None)


def night_of(report: NightReport) -> Night:
    """Return the run that a report describes.

    Examples
    --------
    >>> night_of(NightReport("store", "2026-05-01T03:15:00+00:00")).outcome
    'failed'
    """
    return _night(report_as_json(report))


def read_history(folder: Folder, store: str) -> NightHistory:
    """Read the last 30 runs from the reports in a folder.

    Runs of `store` become `nights` of the history, runs of other stores become `others`.
    """
    written = [name for name in folder.names("") if name.startswith("night-")]
    names = [name for name in written if name.endswith(".json")][-MOST_NIGHTS:]
    pages = tuple(name for name in written if name.endswith(".html"))
    nights, unread = [], []
    for name, content in zip(names, folder.find_all(names), strict=True):
        if content is None:  # the report was deleted after the names were listed
            continue
        try:
            page = name.removesuffix(".json") + ".html"
            nights.append(replace(_night(json.loads(content)), page=page if page in pages else ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            unread.append(name)
    mine = tuple(one for one in nights if one.store == store)
    others = tuple(one for one in nights if one.store != store)
    return NightHistory(mine, others, tuple(unread), pages, names[-1] if names else "")


def _night(content: Mapping[str, Any]) -> Night:
    # reports of earlier releases say "refused" instead of "rejected"
    outcome = {"refused": "rejected"}.get(content.get("outcome", ""), content.get("outcome", ""))
    drift, matching = _part(Drift, content.get("drift")), content.get("matching") or {}
    topics, days = content.get("topics", ()), (content.get("status") or {}).get("days")
    if drift is not None and drift.effective_documents is None:
        drift = replace(drift, effective_documents=nan)
    return Night(
        store=content["store"],
        started=content["started"],
        outcome=outcome,
        last_published=content.get("last_published"),
        model=content.get("model"),
        published=content.get("published"),
        published_before=content.get("published_before"),
        weights={one["topic"]: one.get("weight", 0.0) for one in topics},
        origins={pair["after"]: pair["before"] for pair in matching.get("kept", ())},
        drift=drift,
        state=_part(StoreState, content.get("status")),
        until=days[1] if days else None,
        names={
            one["topic"]: one.get("label") or " ".join(one.get("relevant", ())[:2])
            for one in topics
        },
        words_added=int(content.get("words_added", 0)),
        seconds=_seconds(content),
        gates=tuple(
            replace(gate, unknown=gate.unknown or "")
            for gate in (_part(Gate, one) for one in content.get("gates", ()))
            if None not in (gate.name, gate.bound, gate.holds)
        ),
        samples={one["topic"]: _sample(one["sample"]) for one in topics if one.get("sample")},
        reasons=tuple(content.get("reasons", ())),
        warnings=all_warnings(content.get("warnings", ()), content.get("bad", ())),
        error=content.get("error", ""),
        undecided=_undecided(content, outcome),
    )


def _undecided(content: Mapping[str, Any], outcome: str) -> UndecidedModel | None:
    """Return the undecided model of a report; reports of earlier releases name it as `model`."""
    found = content.get("undecided")
    if found is None and outcome == "rejected" and content.get("model"):
        tag, reasons = content.get("tag") or "published", tuple(content.get("reasons", ()))
        name, started = content["model"], content["started"]
        return undecided_model(content["store"], tag, name, reasons, started)
    one: UndecidedModel | None = _part(UndecidedModel, found)
    return None if one is None else replace(one, reasons=tuple(one.reasons or ()))


def _seconds(content: Mapping[str, Any]) -> float | None:
    if not content.get("finished"):
        return None
    ended, begun = (datetime.fromisoformat(content[name]) for name in ("finished", "started"))
    return (ended - begun).total_seconds()


def _part(kind: Any, content: Mapping[str, Any] | None) -> Any:
    """Convert a value of a report of any version: drop unknown keys, set missing ones to None."""
    if content is None:
        return None
    return kind(**{part.name: content.get(part.name) for part in fields(kind)})


def _sample(content: Mapping[str, Any]) -> SampleDocument:
    known = {part.name for part in fields(SampleDocument)} & content.keys()
    return SampleDocument(**{name: content[name] for name in known})
