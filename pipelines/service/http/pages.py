"""Pages: what people see of a store in a browser; they load nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.reports.html_report import html_report, rendered
from streaming_moments.pipelines.reports.store_page import store_page
from streaming_moments.pipelines.reports.tables import LogLine, log_lines, topic_lines
from streaming_moments.pipelines.service.http.asking import LARGEST, number
from streaming_moments.pipelines.service.http.bodies import FORM, read_body
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.reading import facts_of
from streaming_moments.storage.operations.history import difference
from streaming_moments.storage.operations.lineages import vocabulary_of

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.current import View
    from streaming_moments.pipelines.service.service import Service

LINKS = (
    ("Topics", "/"),
    ("Versions", "/versions"),
    ("Health", "/health"),
    ("Try it", "/try"),
    ("Calls", "/docs"),
)
_LONGEST = 100_000  # characters of a text that is tried
_SHOWN = 50  # versions
_WORDS = 8
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True)
class Spoken:
    """A topic of a text that was tried.

    Parameters
    ----------
    topic : int
        Its number.
    name : str
        Its label, or two of its words.
    share : float
        Of the text.
    words : tuple of str
        Those of the text that speak most for it.
    """

    topic: int
    name: str
    share: float
    words: tuple[str, ...]


async def topics(service: Service, request: Request) -> Response:
    """The topics of the model that answers, and all that is known of them."""
    view = service.view
    published = view.published
    if published is None:
        return page("nothing.html", "/", "No model yet")

    def shown() -> str:
        report = store_page(view.store, published.name, documents=False)
        return html_report(replace(report, links=LINKS))

    key = "/", view.store.version, published.name
    return html(await run_in_threadpool(service.pages.kept, key, shown))


async def versions(service: Service, request: Request) -> Response:
    """The commits, and what differs between two of them."""
    store = service.view.store
    before = number(request, "before", max(1, store.version), LARGEST)
    after = number(request, "after", max(1, store.version), LARGEST)
    for name, one in (("before", before), ("after", after)):
        if name in request.query_params and not store.commit.keeps(one):
            raise Problem(404, f"the store keeps no version {one}", name)

    def found() -> tuple[Sequence[LogLine], Any]:
        lines = log_lines(store, max(0, store.version - _SHOWN + 1))
        apart = difference(store, before, after) if before < after else None
        return lines, apart

    lines, apart = await run_in_threadpool(found)
    return page(
        "versions.html", "/versions", "Versions", lines=lines, apart=apart, chosen=(before, after)
    )


async def health(service: Service, request: Request) -> Response:
    """The store in numbers, what waits, and what is wrong."""
    view = service.view
    facts = await run_in_threadpool(facts_of, view.store)
    shown = {
        name.replace("_", " "): value
        for name, value in facts.items()
        if isinstance(value, str | int | float) and value != ""
    }
    return page("health.html", "/health", "Health", view=view, facts=shown)


async def asked(service: Service, request: Request) -> Response:
    """Where a text may be pasted."""
    return page("try.html", "/try", "Try it", text="", found=None, spoken=())


async def tried(service: Service, request: Request) -> Response:
    """The topics of a text that was pasted, and the words that spoke for them."""
    view, limits = service.view, service.config.limits
    if view.published is None:
        raise Problem(404, "the store has no model yet; fit one by `streaming-moments refit`")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise Problem(415, f"the content type is {kind[:60]!r}; send the form", "Content-Type")
    told = 12 * _LONGEST, limits.seconds.total_seconds(), service.budget
    content = await read_body(request.stream(), request.headers, *told)
    try:
        form = parse_qs(content.decode("latin-1"), keep_blank_values=True)
    finally:
        service.budget.give(len(content))
    if "text" not in form:
        raise Problem(422, "the form has no text; give one", "text")
    text = form["text"][0][:_LONGEST]
    found, spoken = await run_in_threadpool(_spoken, view, text)
    return page("try.html", "/try", "Try it", text=text, found=found, spoken=spoken)


def _spoken(view: View, text: str) -> tuple[Any, tuple[Spoken, ...]]:
    published = view.published
    assert published is not None
    (found,) = published.infer([text])
    model = published.model
    assert isinstance(model, TopicModel)
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


def page(template: str, at: str, title: str, **values: object) -> Response:
    """A page of one of the templates."""
    return html(rendered(template, links=LINKS, at=at, title=title, **values))


def html(text: str) -> Response:
    """A page, of which the browser runs its own scripts alone: those of their very bytes."""
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in _SCRIPT.findall(text)
    ]
    scripts = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src data:; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    headers: Mapping[str, str] = {"Content-Security-Policy": policy}
    return Response(text, headers=headers, media_type="text/html")
