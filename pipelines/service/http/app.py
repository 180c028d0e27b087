"""The ASGI application that answers the calls, and its answers to calls that fail."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from streaming_moments.pipelines.reports.html_report import rendered
from streaming_moments.pipelines.service.http.admission import Door
from streaming_moments.pipelines.service.http.connections.lingering import (
    App,
    Lingering,
    Message,
    Receive,
    Scope,
    Send,
)
from streaming_moments.pipelines.service.http.openapi import calls_of, openapi_document
from streaming_moments.pipelines.service.http.pages import frame_of, html
from streaming_moments.pipelines.service.http.problems import Problem, problem_of
from streaming_moments.pipelines.service.http.request_params import require_known
from streaming_moments.pipelines.service.http.routes import CALLS, METRICS, Call
from streaming_moments.pipelines.service.record_schema import Intake
from streaming_moments.pipelines.service.service import Service
from streaming_moments.pipelines.service.service_log import ServiceLog
from streaming_moments.printing.nearest import guess
from streaming_moments.storage.counting.tokenisers.base import TokeniserMissing

if TYPE_CHECKING:
    import structlog

_LONGEST_PATH = 100  # repeat at most this many characters of an unknown path in an answer
PAGE, _DATA = "text/html", ("application/json", "application/problem+json")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; "
        b"form-action 'none'",
    ),
)


def create_app(service: Service, log: structlog.stdlib.BoundLogger) -> App:
    """Make the application of a service. When the application ends, it closes the service.

    `log` records each call and each internal error, but no text of a document and no token.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.current.start()
        yield
        service.close()

    lines = ServiceLog(log)
    answers = _Answers(Door(service), lines)
    routes = [
        Route(path, answers.endpoint(calls), methods=list(calls))
        for path, calls in by_path().items()
    ]
    lost = {404: answers.lost, 405: answers.lost}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=lost)
    app.router.redirect_slashes = False
    app.state.described = _Described(service.config.tokens is not None)
    app.state.described.of(service.current.intake)
    told: App = _Logged(app, service, lines)
    origins = service.config.listen.origins
    if origins:
        told = CORSMiddleware(
            told,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Content-Encoding", "Idempotency-Key"],
            expose_headers=["Location", "Retry-After", "X-Request-ID"],
        )
    limits = service.config.limits
    return Lingering(told, limits.body, limits.seconds.total_seconds())


_Listed: TypeAlias = list[tuple[str, str, Mapping[str, Any]]]


@dataclass
class _Described:
    """The service's calls as OpenAPI and as a list; made again if the form of documents changes."""

    tokens: bool
    _made: tuple[Intake, dict[str, Any], _Listed] | None = None

    def of(self, intake: Intake) -> tuple[dict[str, Any], _Listed]:
        """Return the OpenAPI document, and the calls that the page `/docs` lists.

        `intake` describes the documents that the store counts.
        """
        if self._made is None or self._made[0] is not intake:
            package = version("streaming-moments")
            texts = intake.takes_texts
            document = openapi_document(intake.shape, self.tokens, package, texts=texts)
            self._made = intake, document, list(calls_of(document))
        return self._made[1:]


def by_path() -> dict[str, dict[str, Call]]:
    """Return the calls by path and method."""
    found: dict[str, dict[str, Call]] = {}
    for call in CALLS:
        found.setdefault(call.path, {})[call.method] = call
    return found


@dataclass(frozen=True)
class _Answers:
    """Handlers of the calls, and of calls to unknown paths."""

    door: Door
    log: ServiceLog

    def endpoint(self, calls: Mapping[str, Call]) -> Callable[[Request], Awaitable[Response]]:
        """Return the handler of a path; `calls` are its calls by method."""

        async def answer(request: Request) -> Response:
            call = calls["GET" if request.method == "HEAD" else request.method]
            request.scope["call"] = f"{call.method} {call.path}"
            with self.door.entered():
                try:
                    if call.role is not None:
                        # If a browser follows a link to the metrics, it sends the password as it
                        # does for a page. So admit a password for the metrics, too, if a browser
                        # asks.
                        linked = call.path == METRICS and prefers_page(request.scope)
                        of_people = linked or call.gives == PAGE
                        self.door.admit(request, call.role, of_people)
                    if call.of_programs:
                        require_known(request, call.query, call.repeated)
                    work = call.handler(self.door.service, request)
                    return await self.door.in_time(work, call.method)
                except ClientDisconnect:
                    return self._failed(Problem(400, "the client disconnected"), request.scope)
                except Exception as error:
                    problem = problem_of(error)
                    if problem.status == 500 or isinstance(error, TokeniserMissing):
                        self.log.fault(error, request.scope)
                    return self._failed(problem, request.scope)

        return answer

    async def lost(self, request: Request, error: Exception) -> Response:
        """Return the answer to a call with an unknown path or method."""
        assert isinstance(error, HTTPException)
        path, headers = request.scope["path"][:_LONGEST_PATH], error.headers or {}
        if error.status_code == 405:
            detail = f"{path!r} allows only {' and '.join(sorted(headers['Allow'].split(', ')))}"
        else:
            told = guess(path, (call.path for call in CALLS), "/docs lists all calls")
            detail = f"there is no path {path!r}; {told}"
        return self._failed(Problem(error.status_code, detail, headers=headers), request.scope)

    def _failed(self, problem: Problem, scope: Scope) -> Response:
        return failed(self.door.service, problem, scope)


@dataclass
class _Logged:
    """Middleware that gives each request an id, adds headers to each answer, and logs each call."""

    app: App
    service: Service
    log: ServiceLog

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        name = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope["request_id"] = name
        begun, status = time.perf_counter(), 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {key.lower() for key, _ in message["headers"]}
                added = [one for one in _HEADERS if one[0] not in own]
                message["headers"] = [*message["headers"], *added, (b"x-request-id", name.encode())]
            await send(message)

        try:
            # refuse a request that gives its length in two ways, because a proxy may have used the
            # other one
            if {b"content-length", b"transfer-encoding"} <= {key for key, _ in scope["headers"]}:
                await failed(self.service, _TWO_LENGTHS, scope)(scope, receive, sent)
            else:
                await self.app(scope, receive, sent)
        finally:
            seconds = time.perf_counter() - begun
            has_token = any(key == b"authorization" for key, _ in scope["headers"])
            asked = status == 401 and not has_token and prefers_page(scope)
            self.service.gauges.answered(scope.get("call", "none"), status, seconds, asked)
            self.log.call(scope, status, seconds)


_TWO_LENGTHS = Problem(
    400,
    "the request has both Content-Length and Transfer-Encoding; send one of the two",
    "Content-Length",
    headers={"Connection": "close"},
)


def failed(service: Service, problem: Problem, scope: Scope) -> Response:
    """Return the answer to a failed call: a page for browsers, otherwise JSON."""
    content = problem.content(scope["request_id"])
    headers = problem.all_headers()
    if not prefers_page(scope):
        return Response(to_json(content), problem.status, headers)
    text = rendered(
        "failed.html",
        **frame_of(service, scope),
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
    """Whether the client accepts HTML, and prefers it to JSON.

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
    page = weights.get(PAGE, 0.0)
    return page > 0 and page >= max(weights.get(kind, 0.0) for kind in _DATA)
