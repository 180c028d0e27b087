"""The page of a nightly run, made from its report, its model and the earlier runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from streaming_moments.models.base import Model
from streaming_moments.pipelines.nightly.history import Night, NightHistory, night_of
from streaming_moments.pipelines.nightly.plain_words import in_words
from streaming_moments.pipelines.nightly.report import INDEX, NightReport
from streaming_moments.pipelines.reports.kinds.registry import counted_facts
from streaming_moments.pipelines.reports.model_pages.following import notes_of
from streaming_moments.pipelines.reports.model_pages.page_specs import PageRequest, PreviousModel
from streaming_moments.pipelines.reports.model_pages.registry import reported, shown_of
from streaming_moments.pipelines.reports.page import (
    LedgerRow,
    ReportPage,
    RunPoint,
    ShareOverTime,
    StepReport,
    TopicChange,
    TopicReport,
)
from streaming_moments.pipelines.reports.status import Status
from streaming_moments.pipelines.reports.store_page import ledger_rows, with_model
from streaming_moments.pipelines.reports.topic_reports import topic_names
from streaming_moments.quality.weight_bars import grown_bars
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

_SHARES = (
    "Weights of the {0}s in the published model of each night. A {0} that did not exist yet has "
    "weight 0."
)
_REJECTED = " The hollow dot is the model of this night, which was rejected and is not published."


def night_page(report: NightReport, store: MomentStore | None, history: NightHistory) -> ReportPage:
    """Return the page of a nightly run, with the model of the run, or else the published one.

    `store` is at the version of the report, or None if there is no store or the run ended early.

    Examples
    --------
    >>> report = NightReport("store", "2026-05-01T03:15:00+00:00", error="no such bucket")
    >>> page = night_page(report, None, NightHistory())
    >>> page.outcome, page.error, len(page.runs)
    ('failed', 'no such bucket', 1)
    """
    tonight, status = night_of(report), _status(report)
    name = report.model or report.published
    model: Any = None if store is None or name is None else store.load_any_model(name)
    shown = None if model is None else shown_of(model)
    what = "topic" if shown is None else shown.what
    page = ReportPage(
        title=f"{'Model' if what == 'state' else f'{what.capitalize()}s'} of the night",
        store=report.store,
        time=report.started,
        outcome=report.outcome,
        facts=_facts(report, name, model),
        reasons=_reasons(report, history),
        error=report.error,
        warnings=report.all_warnings,
        advice=() if status is None else tuple(status.get("advice", ())),
        notes={} if report.matching is None else notes_of(report.matching),
        shares=_shares(tonight, history, model.n_topics, what)
        if shown is not None and shown.follows
        else ShareOverTime(),
        tried=report.candidates if shown is None or shown.compared else (),
        runs=tuple(_run(night) for night in (*history.nights, tonight)),
        gates=report.gates,
        ledger=(
            *(LedgerRow(url, 0, 0, None, reason) for url, reason in report.bad),
            *(() if store is None else ledger_rows(store)),
        ),
        shards=0 if status is None else status["shards"],
        steps=tuple(StepReport(in_words(one.step), one.seconds) for one in report.steps),
        version=report.version,
        diff=_diff(report, history),
        links=tuple(_links(report, history)),
        at=report.file_name(".html"),
    )
    if store is None or name is None or model is None:
        return page
    topics = report.topics or _shown_before(store, name, model, history)
    followed = _followed(report, store, history)
    page = with_model(
        page, PageRequest(store, model_called(store.commit, name), model, topics, followed)
    )
    if report.undecided is not None:
        # do not advise a refit: the rejected model that waits for a decision already includes the
        # documents that the published model lacks
        page = replace(page, reasons=tuple(one.removesuffix("; refit") for one in page.reasons))
    if report.matching is None or page.changes:
        return page
    bars = _change_bars(store, model, _before(report, history))
    return _with_changes(page, topics, report, history, bars)


def _followed(
    report: NightReport, store: MomentStore, history: NightHistory
) -> PreviousModel | None:
    """Return the model that was published before this nightly run, if it is still stored."""
    before = report.published_before
    if report.matching is None or before is None or before not in store.models:
        return None
    since, labels = _since(report, history), store.models[before].labels
    return PreviousModel(store.load_any_model(before), report.matching, since, labels)


def _before(report: NightReport, history: NightHistory) -> Night | None:
    """Return the earlier run that fitted the model published before this nightly run."""
    return next(
        (one for one in reversed(history.nights) if one.model == report.published_before), None
    )


def _since(report: NightReport, history: NightHistory) -> str:
    night = _before(report, history)
    return "" if night is None else night.until or night.started[:10]


def _diff(report: NightReport, history: NightHistory) -> str:
    night = _before(report, history)
    if night is None or night.state is None or night.state.version is None:
        return ""
    versions = map(str, (night.state.version, report.version))
    return shlex.join(["streaming-moments", "diff", report.store, *versions])


def _facts(
    report: NightReport, name: str | None, model: Model | None
) -> dict[str, str | int | float]:
    facts: dict[str, str | int | float] = {}
    status = _status(report)
    if status is not None:
        facts |= counted_facts(status)
        if "effective_documents" in status:
            facts["documents, effective"] = round(status["effective_documents"])
        facts["shards counted now"] = report.counted
        if status["days"] is not None:
            facts["days"] = " to ".join(status["days"])
    if name is not None and model is not None:
        facts |= shown_of(model).facts(name, model)
    if report.published is not None:
        facts["published"] = report.published
    return facts


def _status(report: NightReport) -> Mapping[str, Any] | None:
    """Return the facts of the store at the end of the run as a dictionary."""
    return asdict(report.status) if isinstance(report.status, Status) else report.status


def _reasons(report: NightReport, history: NightHistory) -> tuple[str, ...]:
    # leave out the gates that reject the model of this run, because the page's table of gates shows
    # them
    return (
        *report.decision,
        *(f"new words and basis: {reason}" for reason in report.rebase_reasons),
        *((report.growth,) if report.growth else ()),
        *(
            (f"{name} is not a report and not in the charts; delete it, or restore it from a copy")
            for name in history.unread
        ),
    )


def _shown_before(
    store: MomentStore, name: str, model: Model, history: NightHistory
) -> tuple[TopicReport, ...]:
    """Return the topics of a model of an earlier nightly run.

    A topic has its sample document from the report of that run, if its shard is still counted.
    """
    night = next((one for one in reversed(history.nights) if one.model == name), None)
    ledger = store.ledger()
    samples = {} if night is None else night.samples
    kept = {number: (one,) for number, one in samples.items() if ledger.find(one.shard) is not None}
    return reported(store, model_called(store.commit, name), model, kept)


def _links(report: NightReport, history: NightHistory) -> Iterator[tuple[str, str]]:
    before = [night.page for night in history.nights if night.page]
    if before:
        yield "Night before", before[-1]
    yield "This night", report.file_name(".html")
    yield "All nights", INDEX
    yield "Data (JSON)", report.file_name(".json")


def _change_bars(store: MomentStore, model: Model, before: Night | None) -> Sequence[float | None]:
    """Return the standard error of each topic's change of weight since an earlier nightly run.

    Returns an empty tuple if the errors are unknown. They are known only for refined topics of all
    documents of the store. For a window, it is unknown how many documents the two models share.
    """
    documents = None if before is None or before.state is None else before.state.documents
    barred = shown_of(model).weight_bars
    if barred is None or not documents or model.since or model.until:
        return ()
    bars = barred(model, store.length_histogram())
    return () if bars is None else grown_bars(bars, model.documents, documents).tolist()


def _with_changes(
    page: ReportPage,
    topics: Sequence[TopicReport],
    report: NightReport,
    history: NightHistory,
    bars: Sequence[float | None],
) -> ReportPage:
    """Return the page with the changes of topics since the model published before this run."""
    matching = report.matching
    assert matching is not None
    night = _before(report, history)
    weights, called = (night.weights, night.names) if night is not None else ({}, {})
    kept = {pair.after: pair for pair in matching.kept}
    changes = []
    for topic, name in zip(topics, topic_names(topics), strict=True):
        pair = kept.get(topic.topic)
        before = None if pair is None else weights.get(pair.before)
        if pair is not None and before is None:
            continue  # the earlier weight is unknown, because the report of that run was deleted
        distance = None if pair is None else pair.distance
        note = page.notes.get(topic.topic, "")
        bar = None if pair is None or not bars else bars[topic.topic]
        change = TopicChange(topic.topic, name, before, topic.weight, distance, note, bar=bar)
        changes.append(change)
    for lone in matching.gone:
        gone = called.get(lone.topic, f"topic {lone.topic}")
        changes.append(TopicChange(None, gone, weights.get(lone.topic), None, None, "gone"))
    return replace(page, changes=tuple(changes), since=_since(report, history))


def _shares(tonight: Night, history: NightHistory, topics: int, what: str) -> ShareOverTime:
    """Return the weights of the topics of a model, in this and earlier published models.

    In an earlier model, a topic may have had another number. So topics are followed from each model
    to the one published before it.
    """
    models = {night.model: night for night in history.nights if night.model is not None}
    night = tonight if tonight.model is not None else models.get(tonight.published or "")
    rejected = tonight.outcome == "rejected"  # all earlier models in the chart were published
    numbers = {topic: topic for topic in range(topics)}
    rows: list[tuple[str, tuple[float, ...]]] = []
    while night is not None and numbers:
        weights = {topic: night.weights.get(number, 0.0) for topic, number in numbers.items()}
        row = tuple(weights.get(topic, 0.0) for topic in range(topics))
        rows.append((night.until or night.started[:10], row))
        origins = night.origins
        numbers = {topic: origins[number] for topic, number in numbers.items() if number in origins}
        # visit each run only once: if the store was created again, a model's name may occur twice
        night = models.pop(night.published_before or "", None)
    rows.reverse()
    dates, shares = tuple(date for date, _ in rows), tuple(row for _, row in rows)
    note = _SHARES.format(what) + (_REJECTED if rejected else "")
    return ShareOverTime(dates, shares, note, rejected=rejected)


def _run(night: Night) -> RunPoint:
    documents = None if night.state is None else night.state.documents
    return RunPoint(
        night.started,
        until=night.until,
        drift=night.drift,
        documents=documents,
        outcome=night.outcome,
    )
