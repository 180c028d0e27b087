"""Problems: what is answered where a call cannot be done, as RFC 9457 says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from streaming_moments.errors import InvalidInput, StreamingMomentsError, printable
from streaming_moments.storage.files.created import lacks_space
from streaming_moments.storage.files.urls import without_secrets
from streaming_moments.storage.inbox.group_commit import InboxClosed
from streaming_moments.storage.inbox.idempotency import KeyReused
from streaming_moments.storage.inbox.records import RecordRefused

CONTENT_TYPE = "application/problem+json"
_LONGEST = 1000  # characters of what is told
_AGAIN_SOON, _AGAIN_LATER = 1, 30  # seconds


@dataclass(frozen=True)
class Status:
    """A status of HTTP other than success.

    title : what it means in general; what is wrong with one call, and what to do, is its `detail`,
        of each 429 in `admission`
    by : the calls that may answer it, beside those that name it in `routes`: "all", those that
        need "tokens", or those that take "bodies"
    unread : whether the body may not have been read; what comes of it still is not waited for
    again : whether it may say after how many seconds to try again
    """

    title: str
    by: Literal["", "all", "tokens", "bodies"] = ""
    unread: bool = False
    again: bool = False


STATUSES: Mapping[int, Status] = {
    400: Status("The request cannot be read", by="bodies"),
    401: Status("A token is missing or unknown", by="tokens", unread=True),
    403: Status("The token is not for this", by="tokens", unread=True),
    404: Status("Not found"),
    405: Status("The address does not take this method"),
    408: Status("The body came too slowly", by="bodies", unread=True),
    409: Status("The store does not allow this"),
    413: Status("The body is too large", by="bodies", unread=True),
    415: Status("The content type is not accepted", by="bodies", unread=True),
    421: Status("This host is not answered for", unread=True),
    422: Status("The content is refused", by="bodies"),
    429: Status("Too much waits to be counted", unread=True, again=True),
    500: Status("A fault of the service", by="all"),
    503: Status("The service cannot do this now", by="all", unread=True, again=True),
    507: Status("The storage is full", again=True),
}


@dataclass(eq=False)  # not frozen: who passes it on sets where it came from
class Problem(Exception):
    """What is answered in place of an answer.

    Parameters
    ----------
    status : int
        Of HTTP.
    detail : str
        What is wrong with this call, and what to do.
    field : str
        Name of the field, parameter or header that is meant.
    place : int, optional
        Of the document in the body, from 0 on.
    retry_after : int, optional
        Seconds.
    headers : mapping, optional
        Further headers.
    """

    status: int
    detail: str
    field: str = ""
    place: int | None = None
    retry_after: int | None = None
    headers: Mapping[str, str] | None = None

    def content(self, request_id: str) -> dict[str, Any]:
        """As JSON."""
        told = printable(without_secrets(self.detail))[:_LONGEST]
        content: dict[str, Any] = {"type": "about:blank", "title": STATUSES[self.status].title}
        content |= {"status": self.status, "detail": told, "request_id": request_id}
        if self.field:
            content["field"] = self.field
        if self.place is not None:
            content["document"] = self.place
        return content

    def all_headers(self) -> dict[str, str]:
        """Headers beside those of every answer."""
        told = {"Content-Type": CONTENT_TYPE, **(self.headers or {})}
        told |= {"Connection": "close"} if STATUSES[self.status].unread else {}
        return told if self.retry_after is None else {**told, "Retry-After": str(self.retry_after)}


def problem_of(error: Exception) -> Problem:
    """What is answered where an error ended a call; of a fault nothing inside is told.

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
            "the storage has no space left; nothing is acknowledged, send it again later",
            retry_after=_AGAIN_LATER,
        )
    if isinstance(error, StreamingMomentsError):
        return Problem(503, str(error), retry_after=_AGAIN_SOON)
    return Problem(500, "the service has failed at this; its log says why, by the request id")
