"""Problems: the answers to calls that fail, in the format of RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from streaming_moments.errors import InvalidInput, StreamingMomentsError, printable
from streaming_moments.storage.counting.tokenisers.base import TokeniserMissing
from streaming_moments.storage.files.backends import lacks_space
from streaming_moments.storage.files.urls import without_secrets
from streaming_moments.storage.inbox.group_commit import InboxClosed
from streaming_moments.storage.inbox.idempotency import KeyReused
from streaming_moments.storage.inbox.records import RecordRefused

CONTENT_TYPE = "application/problem+json"
_LONGEST = 1000  # a message is cut to this many characters
_AGAIN_SOON, _AGAIN_LATER = 1, 30  # seconds after which a client should try again


@dataclass(frozen=True)
class Status:
    """An HTTP status of calls that fail.

    title : general meaning of the status
    by : which calls may return this status: "all", "tokens" (calls that need a token) or "bodies"
        (calls with a body); any other call that returns it names it in `routes`
    unread : whether the server may answer before it has read the body; the connection then closes
    again : whether the answer may tell the client after how many seconds to try again
    """

    title: str
    by: Literal["", "all", "tokens", "bodies"] = ""
    unread: bool = False
    again: bool = False


STATUSES: Mapping[int, Status] = {
    400: Status("The request cannot be read", by="bodies"),
    401: Status("A token is missing or unknown", by="tokens", unread=True),
    403: Status("This is not allowed", by="tokens", unread=True),
    404: Status("Not found"),
    405: Status("The address does not accept this method"),
    408: Status("The body arrived too slowly", by="bodies", unread=True),
    409: Status("The store does not allow this"),
    413: Status("The body is too large", by="bodies", unread=True),
    415: Status("The content type is not accepted", by="bodies", unread=True),
    421: Status("The service does not answer for this host", unread=True),
    422: Status("The content is refused", by="bodies"),
    429: Status("Too many documents are pending", unread=True, again=True),
    500: Status("A fault of the service", by="all"),
    503: Status("The service cannot do this now", by="all", unread=True, again=True),
    507: Status("The storage is full", again=True),
}


@dataclass(eq=False)  # not frozen, because `raise` sets the traceback of the exception
class Problem(Exception):
    """Error answer of a call.

    status : status code of HTTP
    detail : what is wrong with this call, and the remedy
    field : name of the affected field, parameter or header
    place : position of the invalid document in the body, from 0
    retry_after : seconds after which the client should try again
    headers : further headers
    """

    status: int
    detail: str
    field: str = ""
    place: int | None = None
    retry_after: int | None = None
    headers: Mapping[str, str] | None = None

    def content(self, request_id: str) -> dict[str, Any]:
        """Return the problem as JSON."""
        told = printable(without_secrets(self.detail))[:_LONGEST]
        content: dict[str, Any] = {"type": "about:blank", "title": STATUSES[self.status].title}
        content |= {"status": self.status, "detail": told, "request_id": request_id}
        if self.field:
            content["field"] = self.field
        if self.place is not None:
            content["document"] = self.place
        return content

    def all_headers(self) -> dict[str, str]:
        """Return the headers of this answer, besides those that every answer has."""
        told = {"Content-Type": CONTENT_TYPE, **(self.headers or {})}
        told |= {"Connection": "close"} if STATUSES[self.status].unread else {}
        return told if self.retry_after is None else {**told, "Retry-After": str(self.retry_after)}


def problem_of(error: Exception) -> Problem:
    """Return the HTTP answer to an error; if the error is a bug, it reveals nothing internal.

    Examples
    --------
    >>> problem_of(RecordRefused(3, "text", "it is missing")).content("1")["document"]
    3
    >>> problem_of(ZeroDivisionError("secret")).status
    500
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, RecordRefused):
        return Problem(422, str(error), error.field, error.place)
    if isinstance(error, KeyReused):
        return Problem(422, str(error), "Idempotency-Key")
    if isinstance(error, InboxClosed):
        return Problem(503, str(error), retry_after=_AGAIN_SOON)
    if isinstance(error, InvalidInput):
        return Problem(422, str(error))
    if lacks_space(error):
        return Problem(
            507,
            "the storage has no space left, and nothing was stored; send the request again later",
            retry_after=_AGAIN_LATER,
        )
    # the message of this error names the machine, so do not show it
    if isinstance(error, TokeniserMissing):
        return Problem(
            503,
            "the service lacks the tokeniser of the store, or has another version of it; its log "
            "has the reason under the request id",
            retry_after=_AGAIN_LATER,
        )
    if isinstance(error, StreamingMomentsError):
        return Problem(503, str(error), retry_after=_AGAIN_SOON)
    return Problem(500, "the service failed; its log has the reason under the request id")
