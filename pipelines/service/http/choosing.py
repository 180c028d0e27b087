"""The page that shows the last comparison of models with different numbers of topics."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from streaming_moments.models.numbers.number_search import one_of
from streaming_moments.pipelines.jobs.candidates import Candidate
from streaming_moments.pipelines.reports.html_report import content_of
from streaming_moments.pipelines.reports.page import ReportPage
from streaming_moments.pipelines.service.http.forms import form_token, own_form
from streaming_moments.pipelines.service.http.pages import (
    CHOICE,
    EACH,
    links_of,
    night_reports,
    page,
)
from streaming_moments.pipelines.service.ingest_worker.selecting import (
    Compared,
    ask_selection,
    found_selection,
    selection_is_asked,
    why_not_compared,
)

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.service import Service
    from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class _Seen:
    """Comparison of models that the page shows, and whether another one is possible.

    compared : last comparison of models of the store with different numbers of topics
    asked : whether another comparison is requested
    refusal : why the store cannot compare models; empty if it can
    documents : number of documents in the version of the store to which these models were fitted
    """

    compared: Compared | None
    asked: bool
    refusal: str
    documents: int | None


async def choice_of_k(service: Service, request: Request) -> Response:
    """Show the last comparison of numbers of topics that a nightly job made or a user requested."""
    view = service.view

    def looked() -> _Seen:
        inbox = service.current.inbox
        found = [found_selection(inbox), _of_nights(service, view.store)]
        known = [one for one in found if one is not None]
        latest = max(known, key=lambda one: one.version, default=None)
        documents = None if latest is None else _documents_at(view.store, latest.version)
        asked, refusal = selection_is_asked(inbox), why_not_compared(view.store)
        return _Seen(latest, asked, refusal, documents)

    seen = await run_in_threadpool(looked)
    selection = None if seen.compared is None else seen.compared.selection
    lines: tuple[Candidate, ...] = () if selection is None else selection.candidates
    taken = None if selection is None else selection.taken
    title = next(text for text, url in links_of(view, "") if url == CHOICE)
    noise = None if selection is None else selection.noise
    shown = ReportPage(
        title,
        view.store.url,
        view.store.commit.time,
        "kept",
        tried=lines,
        chosen=None if taken is None else (taken.n_topics, taken.alpha0),
        what="topic" if selection is None else one_of(selection.number),
        each=EACH,
    )
    told = {
        "page": shown,
        "content": {**content_of(shown), "noise": noise},
        "noise": noise,
        "lines": lines,
        "store": shlex.quote(service.config.store),
        "many": "topics" if selection is None else selection.number,
        "taken": taken,
        "compared": seen.compared,
        "documents": seen.documents,
        "latest": view.store.commit.documents,
        "asked": seen.asked,
        "refusal": seen.refusal,
        "token": form_token(service, request, f"/{CHOICE}"),
    }
    return page(service, request, "choice.html", title, **told)


async def selection_asked(service: Service, request: Request) -> Response:
    """Ask the accumulator to compare numbers of topics.

    The request replaces an earlier one that is still pending.
    """
    await own_form(service, request)
    version = service.view.store.version
    await run_in_threadpool(ask_selection, service.current.inbox, version)
    return RedirectResponse(CHOICE, 303)


def _documents_at(store: MomentStore, version: int) -> int | None:
    """Return the number of documents in a version of the store; None if the version has expired."""
    return store.at(version).commit.documents if store.commit.keeps(version) else None


def _of_nights(service: Service, store: MomentStore) -> Compared | None:
    """Return the last comparison of numbers of topics that a nightly job made."""
    # import here, because a server without a nightly job need not load this module
    from streaming_moments.pipelines.nightly.comparisons import latest_comparison

    reports = night_reports(service)
    if reports is None:
        return None
    found = latest_comparison(*reports)
    if found is None:
        return None
    version, selection = found
    if selection.number == "topics":
        basis = store.basis
        selection = replace(selection, limit=basis.columns, core=basis.core)
    return replace(Compared(version, selection), by_night=True)
