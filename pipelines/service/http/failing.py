"""Failing: what is answered where a call cannot be done, as JSON or, to browsers, as a page."""

from __future__ import annotations

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Scope

from streaming_moments.pipelines.reports.html_report import rendered
from streaming_moments.pipelines.service.http.pages import html, links_of
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.service import Service

_PAGE, _DATA = "text/html", ("application/json", "application/problem+json")


def failed(service: Service, problem: Problem, scope: Scope) -> Response:
    """The answer to a call that cannot be done: a page where a browser asks, else JSON."""
    content = problem.content(scope["request_id"])
    headers = problem.all_headers()
    if not prefers_page(scope):
        return Response(to_json(content), problem.status, headers)
    text = rendered(
        "failed.html",
        links=links_of(service.view),
        at=scope["path"],
        title=content["title"],
        problem=content,
        retry_after=problem.retry_after,
    )
    answer = html(text)
    answer.status_code = problem.status
    for name, value in headers.items():
        if name != "Content-Type":
            answer.headers[name] = value
    return answer


def prefers_page(scope: Scope) -> bool:
    """Whether the sender accepts HTML, and JSON not more than it.

    Examples
    --------
    >>> def asked(value):
    ...     return prefers_page({"headers": [(b"accept", value)]})
    >>> asked(b"text/html,application/xml;q=0.9,*/*;q=0.8"), asked(b"*/*")
    (True, False)
    >>> asked(b"application/json, text/html;q=0.5"), asked(b"text/html;q=0")
    (False, False)
    """
    given = b",".join(value for name, value in scope["headers"] if name == b"accept")
    weights: dict[str, float] = {}
    for one in given.decode("latin-1").split(","):
        kind, *parameters = (part.strip().lower() for part in one.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        digits = weight.replace(".", "", 1)
        weights[kind] = float(weight) if digits.isascii() and digits.isdigit() else 0.0
    page = weights.get(_PAGE, 0.0)
    return page > 0 and page >= max(weights.get(kind, 0.0) for kind in _DATA)
