"""History of the nights: what a page and metrics need of the reports of earlier runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from math import nan
from typing import Any

from streaming_moments.pipelines.nightly.report import NightReport, report_as_json
from streaming_moments.pipelines.reports.page import Gate, SampleDocument
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.files.folders import Folder

MOST_NIGHTS = 30


@dataclass(frozen=True)
class StoreState:
    """The store at the end of a night; `time` is that of its latest commit, ISO 8601.

    None is what the version of the package that wrote the report did not tell.
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

    A report is never rewritten, so fields of later versions stay in it. Times are ISO 8601.

    last_published : when a run last published a model, this one or an earlier
    model, published, published_before : names of the night's model, and of those published after
        and before it
    weights : share of each topic of its model, by number
    origins : number before of each topic that was kept, by number
    drift, state : if they were measured
    until : last day of the documents, where they have days
    names : name of each topic of its model, by number
    samples : a document that is mostly of a topic, by its number
    page : name of its page beside the report, empty without one
    words_added : to the vocabulary
    seconds : from start to end; None of a run that did not end
    gates : conditions of publishing, with what was found
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


@dataclass(frozen=True)
class NightHistory:
    """Earlier runs, the latest last, names of files that are no reports, and those of pages.

    `latest` is the name of the latest report, of whatever store.
    """

    nights: tuple[Night, ...] = ()
    unread: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    latest: str = ""

    @property
    def last_published(self) -> str | None:
        """When a run last published a model, ISO 8601."""
        told = (one.last_published for one in reversed(self.nights) if one.last_published)
        return next(told, None)


def night_of(report: NightReport) -> Night:
    """The run of a report.

    Examples
    --------
    >>> night_of(NightReport("store", "2026-05-01T03:15:00+00:00")).outcome
    'failed'
    """
    return _night(report_as_json(report))


def read_history(folder: Folder, store: str) -> NightHistory:
    """Read the last 30 runs of a store whose reports are in a folder.

    `store` is a URL; runs of other stores are left out.
    """
    written = [name for name in folder.names("") if name.startswith("night-")]
    names = [name for name in written if name.endswith(".json")][-MOST_NIGHTS:]
    pages = tuple(name for name in written if name.endswith(".html"))
    nights, unread = [], []
    for name, content in zip(names, folder.find_all(names), strict=True):
        if content is None:  # deleted since it was listed
            continue
        try:
            page = name.removesuffix(".json") + ".html"
            nights.append(replace(_night(json.loads(content)), page=page if page in pages else ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            unread.append(name)
    mine = tuple(one for one in nights if one.store == store)
    return NightHistory(mine, tuple(unread), pages, names[-1] if names else "")


def _night(content: Mapping[str, Any]) -> Night:
    drift, matching = _part(Drift, content.get("drift")), content.get("matching") or {}
    topics, days = content.get("topics", ()), (content.get("status") or {}).get("days")
    if drift is not None and drift.effective_documents is None:
        drift = replace(drift, effective_documents=nan)
    return Night(
        store=content["store"],
        started=content["started"],
        outcome=content.get("outcome", ""),
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
            gate
            for gate in (_part(Gate, one) for one in content.get("gates", ()))
            if None not in (gate.name, gate.holds)
        ),
        samples={one["topic"]: _sample(one["sample"]) for one in topics if one.get("sample")},
    )


def _seconds(content: Mapping[str, Any]) -> float | None:
    if not content.get("finished"):
        return None
    ended, begun = (datetime.fromisoformat(content[name]) for name in ("finished", "started"))
    return (ended - begun).total_seconds()


def _part(kind: Any, content: Mapping[str, Any] | None) -> Any:
    """A value of a report: its keys of other versions are left out, those it lacks are None."""
    if content is None:
        return None
    return kind(**{part.name: content.get(part.name) for part in fields(kind)})


def _sample(content: Mapping[str, Any]) -> SampleDocument:
    known = {part.name for part in fields(SampleDocument)} & content.keys()
    return SampleDocument(**{name: content[name] for name in known})
