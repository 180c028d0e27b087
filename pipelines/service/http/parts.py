"""Pages of each topic, state, cluster or factor, and of their shares over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.errors import InvalidInput, StreamingMomentsError
from streaming_moments.models.states import Clusters, states_of
from streaming_moments.pipelines.reports.headline import change_over
from streaming_moments.pipelines.reports.html_report import content_of
from streaming_moments.pipelines.reports.model_pages.registry import reported, shown_of
from streaming_moments.pipelines.reports.page import ReportPage, ShareOverTime, TopicReport
from streaming_moments.pipelines.reports.states import StateLine, no_bars, state_lines, visible
from streaming_moments.pipelines.reports.still_counted import still_counted
from streaming_moments.pipelines.reports.store_page import found_of
from streaming_moments.pipelines.reports.topic_reports import topic_names
from streaming_moments.pipelines.service.http.forms import form_token
from streaming_moments.pipelines.service.http.pages import EACH, page, report_of, root_of
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.reading import origin_of
from streaming_moments.pipelines.service.http.request_params import choice, named_number
from streaming_moments.quality.coherences.base import coherence_of
from streaming_moments.quality.coherences.registry import followed
from streaming_moments.quality.topic_map import topic_distances
from streaming_moments.storage.dates import PERIODS, Period
from streaming_moments.storage.merging.origin_shares import only_of
from streaming_moments.storage.operations.staleness import forgotten_since

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.published import Published
    from streaming_moments.pipelines.service.service import Service
    from streaming_moments.pipelines.service.state_view import View

_LEFT_OUT = "Documents that were forgotten since the model was fitted are not shown."
_MOST_PERIODS, _WORDS = 400, 30
_DISTANCES = "Distance: Jensen-Shannon distance of the words, 0 to 1."
_BETWEEN = "Distance: between the means, in the unit of the rows."


@dataclass(frozen=True)
class Near:
    """Another topic or cluster, and how far it is from the one that the page shows.

    share : share of the other topic or cluster in the corpus
    distance : distance between the two
    correlation : correlation of the shares that the two have in documents; None if unknown
    """

    number: int
    name: str
    share: float
    distance: float
    correlation: float | None


async def part(service: Service, request: Request) -> Response:
    """Show a topic, state, cluster or factor."""
    number, view = named_number(request, "topic"), service.view
    published = _published(view)

    def found() -> tuple[ReportPage, _Known]:
        return report_of(service, view, published), _known(service, view, published)

    report, known = await run_in_threadpool(found)
    report = replace(report, each=root_of(request.scope) + EACH)
    parts = known.parts
    of_all = len(report.topics) or len(next(iter(report.states.values()), ()))
    if number >= of_all:
        raise Problem(404, f"model {published.name} has no {report.what} {number}", "topic")
    mine = next((one for one in parts if one.topic == number), None)
    names = {
        one.topic: name for one, name in zip(parts, topic_names(parts, report.what), strict=True)
    }
    shown = report.topics[number] if report.topics else mine
    content = {**content_of(report), "only": number}
    told = {
        "page": report,
        "number": number,
        "parts": of_all,
        "part": mine,
        "facts": _facts(report, shown, number) | _missing(view, published),
        "words": known.words.get(number, {}),
        "documents": _documents(mine),
        "near": _near(known, names, report, number),
        "measured": known.measured,
        "note": known.note,
        "content": content,
        "follows": bool(known.measured),
        "token": form_token(service, request, f"/{EACH}{number}/label"),
    }
    title = names.get(number, f"{report.what} {number}")
    return page(service, request, "part.html", title, **told)


async def over_time(service: Service, request: Request) -> Response:
    """Show the shares of topics over time, which are computed without reading documents."""
    view = service.view
    published = _published(view)
    by: Any = choice(request, "by", PERIODS) if "by" in request.query_params else None
    periods = shown_of(published.model).periods
    origin = origin_of(service, request)

    def found() -> tuple[ReportPage, ShareOverTime, str]:
        report = report_of(service, view, published)
        if periods is None:
            return report, report.shares, _kept_models(report, published)
        if by is None and origin is None:
            return report, report.periods, "" if report.periods.dates else _NO_DAYS
        try:
            over = _periods(service, view, published, by, origin)
            return report, over, "" if over.dates else _NO_DAYS
        except InvalidInput as error:
            return report, ShareOverTime(), str(error)

    report, over, said = await run_in_threadpool(found)
    content = content_of(replace(report, periods=over))
    told = {
        "page": report,
        "over": over,
        "headline": change_over(over, content["names"]),
        "said": said,
        "by": by,
        "origin": origin,
        "origins": [one.origin for one in report.origins],
        "periods": PERIODS if periods is not None else (),
        "content": content,
    }
    return page(service, request, "time.html", "Shares over time", **told)


_NO_DAYS = (
    "The store has no shares over time: its documents have no dates, or it counted documents of "
    "several months together. Documents that are sent to this service have the day of their date. "
    "A shard from elsewhere needs a day in its name, as 2026-11-26.jsonl."
)


def _kept_models(report: ReportPage, published: Published) -> str:
    if report.shares.dates:
        return ""
    return (
        f"{published.name} is a model of {published.model.name}. Its {report.what}s have no shares "
        "by day; topics do."
    )


def _published(view: View) -> Published:
    if view.published is None:
        raise Problem(404, "the store has no model; fit one by `streaming-moments refit`")
    return view.published


@dataclass(frozen=True)
class _Known:
    """Parts of a model with their sample documents or rows, and the distances between parts.

    note : why sample documents or rows are missing; empty if none are missing
    measured : unit of the distances; empty if parts cannot be matched between models
    words : for each state, the most probable words of each view with their probabilities
    """

    parts: Sequence[TopicReport]
    note: str
    distances: Sequence[Sequence[float]]
    measured: str
    words: Mapping[int, Mapping[str, Sequence[tuple[str, float]]]]


def _known(service: Service, view: View, published: Published) -> _Known:
    store, name, model = view.store, published.name, published.model
    pages, reference, folder = service.pages, store.models[name], service.config.documents
    forgotten = pages.get_or_create(
        ("forgotten", store.version, name), lambda: forgotten_since(store, name)
    )
    # Sample documents stay valid until a shard is forgotten. Until then, cache them for all
    # versions of the store that have this model.
    when = reference.id if folder is None and not forgotten else store.version
    found, note = pages.get_or_create(
        ("documents", when, forgotten), lambda: _found(service, view, published)
    )

    def made() -> _Known:
        parts = reported(store, name, model, found)
        words = {one.state: _words_of(one) for one in state_lines(model, store, _WORDS)}
        return _Known(parts, note, *_apart(model), words)

    kept: _Known = pages.get_or_create(("parts", store.version, name), made)
    return kept


def _found(service: Service, view: View, published: Published) -> tuple[Mapping[int, Any], str]:
    """Return sample documents or rows for each part of the model, and why any are missing.

    The keys are the numbers of the parts.
    """
    config = service.config
    storage_options = config.storage_options or None
    try:
        found = found_of(
            view.store,
            published.name,
            published.model,
            config.sample_documents,
            config.documents,
            storage_options,
        )
        # Drop samples of forgotten documents. Only samples from a folder of documents need this
        # check.
        if config.documents is None:
            return found, ""
        kept, gone = still_counted(view.store, published.name, found, storage_options)
        return kept, _LEFT_OUT if gone else ""
    except StreamingMomentsError as error:
        return {}, str(error)


def _words_of(line: StateLine) -> dict[str, list[tuple[str, float]]]:
    return {
        view: [
            (visible(word), share)
            for word, share in zip(words, line.probabilities[view], strict=True)
        ]
        for view, words in line.words.items()
    }


def _apart(model: Any) -> tuple[list[list[float]], str]:
    """Return the distances between the parts of a model, and the unit of the distances.

    Both are empty for kinds of models whose parts cannot be matched between models.
    """
    states = states_of(model)
    if states is None:
        return [], ""
    if isinstance(states, Clusters):
        rows = [np.linalg.norm(states.means - mean, axis=1).tolist() for mean in states.means]
        return rows, _BETWEEN
    rows = topic_distances(states.columns).tolist()
    return rows, _DISTANCES


def _documents(part: TopicReport | None) -> tuple[Any, ...]:
    if part is None or part.sample is None:
        return ()
    return (part.sample, *part.further)


def _facts(report: ReportPage, part: TopicReport | None, number: int) -> dict[str, str]:
    """Return what is known about a part, such as its share; the keys are names that people read."""
    if part is None or not report.topics:
        return {
            name: f"{values[number]:.1%}" if name == "weight" else _short(values[number])
            for name, values in report.states.items()
        }
    facts = {"share": f"{part.weight:.1%}"}
    for one in followed():
        value = coherence_of(part, one.key)
        if value is not None:
            facts[f"coherence, {one.name}"] = f"{value:.{one.digits}f}"
    if part.bar is not None:
        facts["error bar, L1" if part.words else "error bar"] = _short(part.bar)
    facts |= {name: _short(value) for name, value in part.told.items()}
    if number in report.notes:
        facts["since the model before"] = report.notes[number]
    return facts


def _missing(view: View, published: Published) -> dict[str, str]:
    """Return why a model lacks error bars; empty if it has them, or if its kind never has any."""
    said = no_bars(published.model, view.store.halves)
    return {"error bar": said.removeprefix("no error bars: ")} if said else {}


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _near(known: _Known, names: Mapping[int, str], report: ReportPage, number: int) -> list[Near]:
    """Return the other parts of the model, the nearest first."""
    if not known.distances:
        return []
    together = report.correlations[number] if report.correlations else None
    others = [
        Near(
            one.topic,
            names[one.topic],
            one.weight,
            known.distances[number][one.topic],
            None if together is None else together[one.topic],
        )
        for one in known.parts
        if one.topic != number
    ]
    return sorted(others, key=lambda one: (one.distance, one.number))


def _periods(
    service: Service, view: View, published: Published, by: Period | None, origin: str | None
) -> ShareOverTime:
    """Return the shares of topics by day, week or month.

    Raises InvalidInput if there would be more periods than a page shows, or if `by` is unknown.

    Only documents of `origin` are counted; all documents, if no origin is given.
    """
    store, periods = view.store, shown_of(published.model).periods
    assert periods is not None
    own = store if origin is None else only_of(store, origin)
    days = [part.dates for part in own.commit.segments if part.dates is not None]
    number = len({one.period(by) for one in days}) if by else 0
    if number > _MOST_PERIODS:
        raise InvalidInput(
            f"the documents are from {number:,} different {by}s, and a page shows at most "
            f"{_MOST_PERIODS}; ask for longer periods, or get all with GET /v1/shares"
        )
    found: ShareOverTime = service.pages.get_or_create(
        ("periods", store.version, published.name, by, origin),
        lambda: periods(store, published.name, published.model, by, origin),
    )
    return found
