"""Admission: which callers may call, how many at once, and the answers to calls beyond limits."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from streaming_moments.pipelines.quantities import size_text
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.limits import Share
from streaming_moments.pipelines.service.service import Service
from streaming_moments.pipelines.service.state_view import OWNER, TOKENS
from streaming_moments.pipelines.service.tokens import ANYBODY, Principal, Role

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1", ""})
# Wait for a handler this many seconds longer than the handler itself may take, so that it can
# report its own timeout first.
_GRACE = 1.0
_SOON, _AGAIN, _LATER = 1, 5, 30  # seconds after which a client should try again


@dataclass
class Door:
    """Admits calls of the right role, up to the largest number of calls in progress.

    within : number of calls in progress, except those whose body is still arriving
    shares : bodies that are arriving, by caller
    """

    service: Service
    within: int = 0
    shares: dict[str, Share] = field(default_factory=dict)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count a call while it is in progress."""
        self.within += 1
        try:
            yield
        finally:
            self.within -= 1

    @contextmanager
    def receiving(self, request: Request) -> Iterator[Share]:
        """Receive a body; until it has arrived, the call does not count as in progress.

        A caller is identified by its token, or without tokens by its network address. Each caller
        may send as many bodies at a time as calls may be in progress. Its bodies must leave memory
        for the largest body of another caller. Raises a Problem 503 above these limits.
        """
        limits, caller = self.service.config.limits, request.state.principal.name
        if self.service.view.tokens is None and request.client is not None:
            caller = request.client.host
        most = self.service.budget.nbytes - limits.body
        share = self.shares.setdefault(caller, Share(self.service.budget, most))
        if share.bodies >= limits.requests:
            raise bodies_crowded()
        share.bodies, self.within = share.bodies + 1, self.within - 1
        try:
            yield share
        finally:
            share.bodies, self.within = share.bodies - 1, self.within + 1
            if not share.bodies:
                del self.shares[caller]

    def admit(self, request: Request, role: Role, of_people: bool) -> None:
        """Check that a caller has a role, and record the caller.

        With `of_people`, which is for pages, the token may also be the password that a browser
        sends.
        """
        self.require_room()
        request.state.credential = ""
        request.state.principal = self._admitted(request, role, of_people)
        request.state.door = self
        request.scope["principal"] = request.state.principal.name

    async def in_time(self, work: Coroutine[Any, Any, Response], method: str) -> Response:
        """Return the answer of a call, or a timeout if the storage hangs.

        Threads cannot be stopped. So after a timeout, the call counts as in progress until its
        thread ends, which bounds the number of hanging threads.
        """
        seconds = self.service.config.limits.seconds.total_seconds()
        # add time for the body: a client may take as long to send it as the service to answer
        bodies = 2 if method == "POST" else 1
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait([task], timeout=bodies * seconds + _GRACE)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return task.result()
        self.within += 1
        task.add_done_callback(self._ended)
        raise Problem(
            503,
            f"there was no answer within {seconds:g} seconds, because the storage may be slow "
            "or down. Try again later; send documents under the same Idempotency-Key",
            retry_after=_LATER,
        )

    def _ended(self, task: asyncio.Task[Response]) -> None:
        self.within -= 1
        if not task.cancelled():
            task.exception()  # read the error, because asyncio warns of errors that nothing reads

    def require_room(self) -> None:
        """Raise a Problem 503 while the largest number of calls is in progress."""
        if self.within > self.service.config.limits.requests:
            raise Problem(
                503,
                "the service has too many requests at once; try again in a moment",
                retry_after=_SOON,
            )

    def _admitted(self, request: Request, role: Role, of_people: bool) -> Principal:
        view = self.service.view
        tokens = view.tokens
        if TOKENS in view.problems:
            # refuse all tokens, because some of those in memory may have been removed from the file
            raise Problem(503, "the token file cannot be read; see the log", retry_after=_AGAIN)
        if tokens is None:
            host = request.headers.get("host", "").lower()
            if re.sub(r":\d+$", "", host) not in _LOOPBACK:
                raise Problem(421, "without tokens, only requests to localhost are answered")
            return ANYBODY
        asks = f'{"Basic" if of_people else "Bearer"} realm="streaming-moments"'
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if of_people and scheme.lower() == "basic":
            scheme, token = "bearer", password_in(token)
        if scheme.lower() != "bearer" or not token:
            how = (
                "reload the page, and type a token of the service as the password; the user name "
                "may be anything"
                if of_people
                else "send a token in the header `Authorization: Bearer sm_...`"
            )
            raise Problem(401, how, "Authorization", headers={"WWW-Authenticate": asks})
        found = tokens.principal_of(token.strip())
        if found is None:
            raise Problem(
                401,
                "the token is unknown to this service; `streaming-moments token add` makes another",
                "Authorization",
                headers={"WWW-Authenticate": asks},
            )
        if found.role < role:
            asked, has = role.name.lower(), found.role.name.lower()
            raise Problem(
                403,
                f"this call needs a token of role {asked}; the token {found.name} has role {has}",
            )
        request.state.credential = token.strip()
        return found


def require_own_inbox(service: Service) -> None:
    """Raise a Problem 503 if the inbox belongs to another store, so that no call changes it."""
    if OWNER in service.view.problems:
        raise Problem(503, "the inbox belongs to another store; see the log")


def require_room(service: Service) -> None:
    """Refuse new documents while too many are pending, or while some have been pending too long.

    Raises a Problem 429 that says when to try again, or 503 if the inbox belongs to another store.
    """
    require_own_inbox(service)
    refused = refusal(service)
    if refused is not None:
        raise Problem(429, f"{refused}; send the documents again later", retry_after=_AGAIN)


def refusal(service: Service) -> str | None:
    """Return why the service accepts no more documents; None if it accepts some.

    The reason is the size or the age of the pending documents.
    """
    limits, backlog = service.config.limits, service.view.backlog
    waits = backlog.nbytes + service.commits.held_bytes
    if waits >= limits.inbox:
        most = size_text(limits.inbox)
        return f"{waits:,} bytes of documents are pending, and at most {most} may be"
    if backlog.age >= limits.inbox_age:
        age = backlog.age.total_seconds()
        return (
            f"documents have been pending for {age:.0f} seconds, so apparently no process counts "
            "them"
        )
    return None


async def written_in_time(written: asyncio.Future[str], seconds: float) -> None:
    """Wait until documents are written; raise a Problem 503 after `seconds`.

    If writing fails before that, raises its error.
    """
    await asyncio.wait([written], timeout=seconds)
    if written.done():
        written.result()
        return
    # let a callback read the error, because asyncio warns of errors that nothing reads
    written.add_done_callback(asyncio.Future.exception)
    raise Problem(
        503,
        f"the storage did not answer in {seconds:g} seconds and may still store these documents. "
        "Send them again under the same Idempotency-Key; without it they may be counted twice",
        retry_after=_AGAIN,
    )


def bodies_crowded() -> Problem:
    """Return the error for a body for which there is no memory left.

    Other bodies already use the whole memory budget for bodies, or the caller's share of it.
    """
    detail = "too many bodies are being sent at once; send again in a moment"
    return Problem(503, detail, retry_after=_SOON)


def password_in(credentials: str) -> str:
    """Return the password in the credentials that a browser sends; empty without a password.

    Examples
    --------
    >>> password_in("bWU6c21fc2VjcmV0"), password_in("?")
    ('sm_secret', '')
    """
    try:
        return base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""
