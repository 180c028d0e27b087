"""The application: ASGI, of the calls, for a server to run."""

from __future__ import annotations

import asyncio
import base64
import re
import time
import traceback
import uuid
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    MutableMapping,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from streaming_moments.pipelines.service.current import TOKENS
from streaming_moments.pipelines.service.http.calls import CALLS, Call
from streaming_moments.pipelines.service.http.failing import failed
from streaming_moments.pipelines.service.http.openapi import calls_of, openapi_document
from streaming_moments.pipelines.service.http.problems import Problem, problem_of
from streaming_moments.pipelines.service.intake import Intake
from streaming_moments.pipelines.service.service import Service
from streaming_moments.pipelines.service.tokens import ANYBODY, Principal

if TYPE_CHECKING:
    import structlog

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PAGE = "text/html"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1", ""})
_GRACE = 1.0  # seconds, in which a handler says itself what came too late
_LATER = 30  # seconds
_FRAMES = 12  # of a fault that are told
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
    """Make the application of a service, which it closes at its end.

    `log` gets each call and fault, but no text of a document and no token.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.current.start()
        yield
        service.close()

    door = _Door(service, log)
    routes = [
        Route(path, door.endpoint(calls), methods=list(calls)) for path, calls in by_path().items()
    ]
    lost = {404: door.lost, 405: door.lost}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=lost)
    app.router.redirect_slashes = False
    app.state.described = _Described(service.config.tokens is not None)
    app.state.described.of(service.current.intake)
    told: App = _Logged(app, service, log)
    origins = service.config.listen.origins
    if origins:
        told = CORSMiddleware(
            told,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Content-Encoding", "Idempotency-Key"],
            expose_headers=["Location", "Retry-After", "X-Request-ID"],
        )
    return told


_Listed: TypeAlias = list[tuple[str, str, Mapping[str, Any]]]


@dataclass
class _Described:
    """The calls as OpenAPI and as a list, made again when the store takes other documents."""

    tokens: bool
    _made: tuple[Intake, dict[str, Any], _Listed] | None = None

    def of(self, intake: Intake) -> tuple[dict[str, Any], _Listed]:
        """The OpenAPI document and the calls of its page, for the documents of a store."""
        if self._made is None or self._made[0] is not intake:
            package = version("streaming-moments")
            texts = intake.takes_texts
            document = openapi_document(intake.shape, self.tokens, package, texts=texts)
            self._made = intake, document, list(calls_of(document))
        return self._made[1:]


def by_path() -> dict[str, dict[str, Call]]:
    """The calls by their address and method."""
    found: dict[str, dict[str, Call]] = {}
    for call in CALLS:
        found.setdefault(call.path, {})[call.method] = call
    return found


@dataclass
class _Door:
    """Lets in who may come, and as many as there is room for."""

    service: Service
    log: structlog.stdlib.BoundLogger
    _within: int = field(default=0)

    def endpoint(self, calls: Mapping[str, Call]) -> Callable[[Request], Awaitable[Response]]:
        """What answers the calls of an address, by their method."""

        async def answer(request: Request) -> Response:
            call = calls["GET" if request.method == "HEAD" else request.method]
            request.scope["call"] = f"{call.method} {call.path}"
            self._within += 1
            try:
                if call.role is not None:
                    self._require_room()
                    request.state.credential = ""
                    request.state.principal = self._admitted(request, call)
                    request.scope["principal"] = request.state.principal.name
                return await self._in_time(call.handler(self.service, request), call)
            except ClientDisconnect:
                return self._failed(Problem(400, "the client went away"), request.scope)
            except Exception as error:
                problem = problem_of(error)
                if problem.status == 500:
                    self._tell_fault(error, request.scope)
                return self._failed(problem, request.scope)
            finally:
                self._within -= 1

        return answer

    async def _in_time(self, work: Coroutine[Any, Any, Response], call: Call) -> Response:
        """The answer of a call, which a storage that hangs does not keep from being answered.

        What a thread has begun cannot be stopped: until it ends it counts among the calls that
        are worked on, so that these stay as few as ever.
        """
        seconds = self.service.config.limits.seconds.total_seconds()
        bodies = 2 if call.method == "POST" else 1  # one is waited for as long as for the answer
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait([task], timeout=bodies * seconds + _GRACE)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return task.result()
        self._within += 1
        task.add_done_callback(self._ended)
        raise Problem(
            503,
            f"there was no answer within {seconds:g} seconds; the storage may be slow or down, "
            "try it again later, documents under the same Idempotency-Key",
            retry_after=_LATER,
        )

    def _ended(self, task: asyncio.Task[Response]) -> None:
        self._within -= 1
        if not task.cancelled():
            task.exception()  # nobody else asks for it

    async def lost(self, request: Request, error: Exception) -> Response:
        """What answers an address that is not there, or a method that it does not take."""
        assert isinstance(error, HTTPException)
        what = {404: "there is no such address", 405: "the address does not take this method"}
        problem = Problem(
            error.status_code, f"{what[error.status_code]}; see /docs", headers=error.headers
        )
        return self._failed(problem, request.scope)

    def _failed(self, problem: Problem, scope: Scope) -> Response:
        return failed(self.service, problem, scope)

    def _tell_fault(self, error: Exception, scope: Scope) -> None:
        # where it was; of what it says some may be of a document
        at = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
        self.log.error(
            "fault",
            request_id=scope["request_id"],
            call=scope["call"],
            error=type(error).__name__,
            at=at[-_FRAMES:],
        )

    def _require_room(self) -> None:
        if self._within > self.service.config.limits.requests:
            raise Problem(503, "too many calls at once; try again in a moment", retry_after=1)

    def _admitted(self, request: Request, call: Call) -> Principal:
        view = self.service.view
        tokens = view.tokens
        if TOKENS in view.problems:
            # nobody is let in by tokens that may have been removed since
            raise Problem(503, "the file of tokens cannot be read; see the log", retry_after=5)
        if tokens is None:
            host = request.headers.get("host", "").lower()
            if re.sub(r":\d+$", "", host) not in _LOOPBACK:
                raise Problem(421, "without tokens only this machine is answered, as localhost")
            return ANYBODY
        of_people = call.gives == PAGE
        asks = f'{"Basic" if of_people else "Bearer"} realm="streaming-moments"'
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if of_people and scheme.lower() == "basic":
            scheme, token = "bearer", password_in(token)
        if scheme.lower() != "bearer" or not token:
            how = "as the password" if of_people else "Authorization: Bearer sm_..."
            told = {"WWW-Authenticate": asks}
            raise Problem(401, f"send a token: {how}", "Authorization", headers=told)
        found = tokens.principal_of(token.strip())
        if found is None:
            told = {
                "WWW-Authenticate": f'{"Basic" if of_people else "Bearer"} realm="none of these"'
            }
            raise Problem(401, "the token is none of this service", "Authorization", headers=told)
        if call.role is not None and found.role < call.role:
            asked, has = call.role.name.lower(), found.role.name.lower()
            raise Problem(403, f"this needs a token of role {asked}; {found.name} is a {has}")
        request.state.credential = token.strip()
        return found


@dataclass
class _Logged:
    """Names each request, adds the headers of all answers, and writes a line of each."""

    app: App
    service: Service
    log: structlog.stdlib.BoundLogger

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
            # of two lengths proxies before this server may have believed the other one
            if {b"content-length", b"transfer-encoding"} <= {key for key, _ in scope["headers"]}:
                await failed(self.service, _TWO_LENGTHS, scope)(scope, receive, sent)
            else:
                await self.app(scope, receive, sent)
        finally:
            seconds = time.perf_counter() - begun
            call = scope.get("call", "none")
            self.service.gauges.answered(call, status, seconds)
            self.log.info(
                "call",
                call=call,
                status=status,
                seconds=round(seconds, 4),
                request_id=name,
                principal=scope.get("principal", ""),
            )


_TWO_LENGTHS = Problem(
    400,
    "the request has both Content-Length and Transfer-Encoding; send one of the two",
    "Content-Length",
    headers={"Connection": "close"},
)


def password_in(credentials: str) -> str:
    """The password of what a browser sends; empty where it is none.

    Examples
    --------
    >>> password_in("bWU6c21fc2VjcmV0"), password_in("?")
    ('sm_secret', '')
    """
    try:
        return base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""
