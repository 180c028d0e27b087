"""Pages for people who look at a store in a browser; they load nothing from other servers."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.jobs.drift.measures import DRIFT_MEASURES, night_cells
from streaming_moments.pipelines.reports.html_report import html_report, rendered
from streaming_moments.pipelines.reports.model_pages.registry import shown_of
from streaming_moments.pipelines.reports.outside_words import MANY
from streaming_moments.pipelines.reports.page import ReportPage
from streaming_moments.pipelines.reports.status import stale_line
from streaming_moments.pipelines.reports.store_page import ledger_rows, store_page
from streaming_moments.pipelines.reports.tables import LogLine, topic_lines
from streaming_moments.pipelines.service.config import night_of
from streaming_moments.pipelines.service.http.admission import refusal
from streaming_moments.pipelines.service.http.forms import read_form
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.reading import facts_of
from streaming_moments.pipelines.service.http.request_params import LARGEST, number, principal
from streaming_moments.pipelines.service.http.version_rows import grouped, in_words
from streaming_moments.pipelines.service.recent_counts import MINUTES
from streaming_moments.pipelines.service.tokens import Role
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.ledger import outside_of
from streaming_moments.storage.operations.history import difference
from streaming_moments.storage.operations.lineages import vocabulary_of
from streaming_moments.storage.operations.staleness import staleness

if TYPE_CHECKING:
    from streaming_moments.pipelines.nightly.history import Night
    from streaming_moments.pipelines.service.published import Published
    from streaming_moments.pipelines.service.service import Service
    from streaming_moments.pipelines.service.state_view import View
    from streaming_moments.storage.store.store import MomentStore

EACH, CHOICE = "topics/", "choice"  # URLs of pages, relative to the first page
_LINKS = (
    ("Versions", "versions"),
    ("Health", "health"),
    ("Try it", "try"),
    ("API", "docs"),
)
_LONGEST = 100_000  # a text on the page `Try it` is cut to this many characters
# A relative link starts with at most this many "../". No page is so deep in folders; the limit
# bounds the size of an error page for a long path.
_DEEPEST = 20
_SHOWN = 50  # a page lists at most this many versions, and at most this many shards
_RUNS = 10  # a page lists at most this many runs of the nightly job
_GOOD = ("published", "nothing new")
_WORDS = 8
# The effective number of documents is small if a few documents have most of the weight. They
# outweigh all others if there are more than this many documents for each effective one.
_DOMINATED = 50
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True)
class Outside:
    """Which share of tokens is outside the vocabulary of the model that answers.

    new : share in the documents that were counted since the fit of the model
    before : share in the documents to which the model was fitted
    """

    new: float
    before: float

    @property
    def has_risen(self) -> bool:
        """Whether the model misses much of new documents, because it lacks many of their tokens.

        `new` alone does not show this, because a vocabulary may lack common words on purpose.
        """
        return self.new - self.before > MANY


@dataclass(frozen=True)
class Spoken:
    """A topic that the model finds in the text on the page `Try it`.

    name : label of the topic, or two of its words
    share : share of the text that belongs to the topic
    words : words of the text that are most evidence for the topic
    """

    topic: int
    name: str
    share: float
    words: tuple[str, ...]


async def topics(service: Service, request: Request) -> Response:
    """Show the topics of the model that answers calls."""
    view = service.view
    published = view.published
    if published is None:
        return page(service, request, "nothing.html", "No model yet")
    report = await run_in_threadpool(report_of, service, view, published)
    shown = replace(report, links=links_of(view, root_of(request.scope)))
    return html(await run_in_threadpool(html_report, shown))


async def versions(service: Service, request: Request) -> Response:
    """Show the commits of the store, and the difference between two of its versions."""
    store = service.view.store
    after = number(request, "after", max(1, store.version), LARGEST)
    earlier = (min(last, after - 1) for first, last in store.commit.kept if first < after)
    before = number(request, "before", max(earlier, default=0) or after, LARGEST)
    asked = not {"before", "after"}.isdisjoint(request.query_params)
    for name, one in (("before", before), ("after", after)):
        if name in request.query_params and not store.commit.keeps(one):
            raise Problem(404, f"the store has no version {one}", name)

    def found() -> tuple[list[list[LogLine]], Any, Mapping[str, Sequence[str]]]:
        groups = grouped([*store.log(max(0, store.version - _SHOWN + 1))])
        apart = difference(store, before, after) if asked and before < after else None
        models = _models_apart(store, before, after) if apart else {}
        return groups, apart, models

    groups, apart, models = await run_in_threadpool(found)
    lines = [line for group in groups for line in group]
    kept = {line.version for line in lines if store.commit.keeps(line.version)}
    told = {"lines": lines, "apart": apart, "models": models, "chosen": (before, after)}
    told |= {
        "groups": groups,
        "in_words": in_words,
        "latest": store.version,
        "kept": kept,
        "asked": asked,
    }
    return page(service, request, "versions.html", "Versions", **told)


def _models_apart(store: MomentStore, before: int, after: int) -> dict[str, Sequence[str]]:
    """Return the models that are new, and those that were deleted, between two versions.

    The keys are the headings under which the page shows them.
    """
    earlier, later = (store.at(version).commit.models for version in (before, after))
    return {
        "New models": [name for name in later if name not in earlier],
        "Deleted models": [name for name in earlier if name not in later],
    }


async def health(service: Service, request: Request) -> Response:
    """Show numbers about the store, its pending documents and its problems."""
    view = service.view

    def found() -> dict[str, Any]:
        store, reports = view.store, night_reports(service)
        runs = () if reports is None else _runs(*reports)
        return {
            "facts": facts_of(store),
            "runs": [one for one in runs if one.drift is not None][: -_RUNS - 1 : -1],
            "reports": "" if reports is None else reports[0].url,
            "failed": runs[-1] if runs and runs[-1].outcome not in _GOOD else None,
            "since": _outside_since(service, view),
            "ledger": list(ledger_rows(store, _SHOWN)),
        }

    told = await run_in_threadpool(found)
    told["advice"] = told["facts"].get("advice", ())
    told["warning"] = told["facts"].get("warning", "")
    told["dominated"] = told["warning"] and _are_dominated(told["facts"])
    told["refused"] = refusal(service)
    told["facts"] = {
        name.replace("_", " "): value
        for name, value in told["facts"].items()
        if isinstance(value, str | int | float) and value != ""
    }
    told["rates"] = [service.gauges.rates.last(minutes) for minutes in (1, MINUTES)]
    told["columns"] = [one.column for one in DRIFT_MEASURES if one.column]
    told["night_cells"] = night_cells
    told["silence"] = None if service.silence is None else service.silence()
    return page(service, request, "health.html", "Health", view=view, **told)


def _are_dominated(facts: Mapping[str, Any]) -> bool:
    """Whether a few documents outweigh all others; `facts` describe a store of documents."""
    return bool(facts["effective_documents"] < facts["documents"] / _DOMINATED)


def night_reports(service: Service) -> tuple[Folder, str] | None:
    """Return the folder of the nightly reports, and the name of the store in them.

    None if the service has no nightly job.
    """
    try:
        night = night_of(service.config)
    except InvalidInput:
        return None  # the configuration of the nightly job may be on another machine
    if night is None:
        return None
    return Folder.at(night.output, night.storage_options or None), night.store


def _runs(folder: Folder, store: str) -> Sequence[Night]:
    # import here, because a server without a nightly job need not load this module
    from streaming_moments.pipelines.nightly.history import read_history

    return read_history(folder, store).nights


def _outside_since(service: Service, view: View) -> Outside | None:
    """Return which share of tokens the vocabulary of the model lacks, in old and in new documents.

    None if nothing was counted since the model was fitted.
    """
    store, published = view.store, view.published
    if published is None:
        return None

    def made() -> Outside | None:
        reference = store.models[published.name]
        fitted = store.at(reference.version).ledger()
        before = {one.url for one in fitted}
        new = outside_of([one for one in store.ledger() if one.url not in before])
        return None if new is None else Outside(new, outside_of(list(fitted)) or 0.0)

    try:
        found: Outside | None = service.pages.get_or_create(
            ("outside", store.version, published.name), made
        )
    except StoreError:
        return None  # the version to which the model was fitted has expired
    return found


async def asked(service: Service, request: Request) -> Response:
    """Show the page `Try it`, where a user can paste a text if the model has topics of texts."""
    published = service.view.published
    takes = published is not None and published.index is not None
    told = {"text": "", "found": None, "spoken": (), "takes": takes}
    return page(service, request, "try.html", "Try it", **told)


async def tried(service: Service, request: Request) -> Response:
    """Show the topics of a pasted text, and the words of the text that are evidence for each."""
    view = service.view
    if view.published is None:
        raise Problem(404, "the store has no model; fit one by `streaming-moments refit`")
    form = await read_form(service, request, 12 * _LONGEST)
    if "text" not in form:
        raise Problem(422, "the form has no text; give one", "text")
    text = form["text"][:_LONGEST]
    found, spoken = await run_in_threadpool(_spoken, view, text)
    told = {"text": text, "found": found, "spoken": spoken, "takes": True}
    return page(service, request, "try.html", "Try it", **told)


def _spoken(view: View, text: str) -> tuple[Any, tuple[Spoken, ...]]:
    published = view.published
    assert published is not None
    (found,) = published.infer([text])
    model = published.model
    labels = view.store.commit.models[published.name].labels
    lines = topic_lines(model, vocabulary_of(view.store, model), 2, labels=labels)
    words = published.words_for(text, found.proportions, _WORDS)
    order = sorted(range(len(lines)), key=lambda topic: -found.proportions[topic])
    spoken = tuple(
        Spoken(
            topic,
            lines[topic].label or " ".join(lines[topic].words) or f"topic {topic}",
            found.proportions[topic],
            words[topic],
        )
        for topic in order
        if found.proportions[topic] >= 0.01
    )
    return found, spoken


def report_of(service: Service, view: View, published: Published) -> ReportPage:
    """Return the report of a model without sample documents.

    The report is cached for each version of the store.
    """

    def made() -> ReportPage:
        report = store_page(view.store, published.name, documents=False)
        # leave out shards and advice: they are for operators, and the page `Health` shows them
        stale = stale_line(staleness(view.store, published.name))
        reasons = (f"{stale.removesuffix('; refit')}. {_refit_of(service)}",) if stale else ()
        return replace(report, each=EACH, reasons=reasons, advice=(), ledger=())

    found: ReportPage = service.pages.get_or_create(
        ("report", view.store.version, published.name), made
    )
    return found


def _refit_of(service: Service) -> str:
    """Say in a sentence when the next model is fitted, and which command fits one now."""
    night = service.config.accumulate.night
    if night is None:
        return f"`streaming-moments refit {shlex.quote(service.config.store)}` fits a new model"
    command = f"streaming-moments nightly {shlex.quote(night)}"
    return f"The next night fits a new model; `{command}` runs it now"


def root_of(scope: Mapping[str, Any]) -> str:
    """Return the relative URL from the page of a request to the first page.

    All links of pages are relative, so a proxy may show the service below any path.

    Examples
    --------
    >>> [root_of({"path": path}) for path in ("/", "/health", "/versions/2/rollback")]
    ['./', './', '../../']
    """
    # use the raw path, in which %2F is not decoded
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    depth = path.partition(b"?")[0].count(b"/") - 1
    return "../" * min(depth, _DEEPEST) or "./"


def links_of(view: View, root: str) -> tuple[tuple[str, str], ...]:
    """Return the links to the pages; their texts name the parts of the model, such as topics."""
    model = None if view.published is None else view.published.model
    what = "topic" if model is None else shown_of(model).what
    return (
        (f"{what.capitalize()}s", root),
        *(
            (text, root + path)
            for text, path in (("Time", "time"), (f"Number of {what}s", CHOICE), *_LINKS)
        ),
    )


async def docs(service: Service, request: Request) -> Response:
    """Show the documentation of the calls of the HTTP API."""
    document, calls = request.app.state.described.of(service.current.intake)
    told = frame_of(service, request.scope)
    return html(rendered("calls.html", title="API", document=document, calls=calls, **told))


def page(
    service: Service, request: Request, template: str, title: str, **values: object
) -> Response:
    """Answer with the page that a template makes of `values`."""
    admin = principal(request).role >= Role.ADMIN
    told = frame_of(service, request.scope)
    return html(rendered(template, title=title, admin=admin, **told, **values))


def frame_of(service: Service, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the links that a page shows, its own URL, and the URL of the first page.

    All URLs are relative.
    """
    root = root_of(scope)
    at = root + scope["path"].removeprefix("/")
    return {"links": links_of(service.view, root), "at": at, "root": root}


def html(text: str) -> Response:
    """Answer with a page; the browser runs only the scripts that the page itself contains.

    A header lists the hashes of these scripts.
    """
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in _SCRIPT.findall(text)
    ]
    scripts = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src data:; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    # with this Referrer-Policy a browser sends the origin of a page only to this server; the check
    # of forms needs the origin
    headers = {"Content-Security-Policy": policy, "Referrer-Policy": "same-origin"}
    return Response(text, headers=headers, media_type="text/html")
