"""Problems: which errors are answered how, and what each status says and asks for."""

import errno

import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.service.http.problems import (
    CONTENT_TYPE,
    STATUSES,
    Problem,
    problem_of,
)
from streaming_moments.storage.inbox.group_commit import InboxClosed
from streaming_moments.storage.inbox.idempotency import KeyReused
from streaming_moments.storage.inbox.records import RecordRefused

# of these the body may not have been read
CLOSED = {401, 403, 408, 413, 415, 421, 429, 503}
OPEN = {400, 404, 405, 409, 422, 500, 507}


def test_a_problem_has_a_title_and_closes_connections_of_bodies_that_were_not_read():
    assert set(STATUSES) == CLOSED | OPEN
    for status in STATUSES:
        assert Problem(status, "so").content("7") == {
            "type": "about:blank",
            "title": STATUSES[status].title,
            "status": status,
            "detail": "so",
            "request_id": "7",
        }
        closed = {"Connection": "close"} if status in CLOSED else {}
        assert Problem(status, "so").all_headers() == {"Content-Type": CONTENT_TYPE, **closed}


def test_all_that_is_known_of_a_problem_is_told():
    full = Problem(422, "so", "text", 0, retry_after=0, headers={"Allow": "GET"})
    told = full.content("7")
    assert (told["field"], told["document"]) == ("text", 0)
    assert full.all_headers() == {
        "Content-Type": CONTENT_TYPE,
        "Allow": "GET",
        "Retry-After": "0",
    }


def test_two_problems_are_two_however_alike():
    assert len({Problem(404, "so"), Problem(404, "so")}) == 2


def test_what_is_told_is_printable_short_and_without_secrets():
    told = Problem(400, "a\x1b[31m" + "b" * 2000).content("7")["detail"]
    assert told == ("a\\x1b[31m" + "b" * 2000)[:1000]
    assert "hidden" not in Problem(400, "at s3://me:hidden@host/a").content("7")["detail"]


@pytest.mark.parametrize(
    ("error", "status", "field", "place", "again", "told"),
    [
        (Problem(404, "gone", "id"), 404, "id", None, None, "gone"),
        (RecordRefused(3, "text", "it is missing"), 422, "text", 3, None, "it is missing"),
        (KeyReused("of another"), 422, "Idempotency-Key", None, None, "of another"),
        (InboxClosed("it ends"), 503, "", None, 1, "it ends"),
        (InvalidInput("no such"), 422, "", None, None, "no such"),
        (OSError(errno.ENOSPC, "full"), 507, "", None, 30, "no space left"),
        (StoreError("away"), 503, "", None, 1, "away"),
        (KeyError("planted-secret"), 500, "", None, None, "its log has the reason"),
    ],
)
def test_an_error_is_answered_by_its_kind(error, status, field, place, again, told):
    found = problem_of(error)
    assert (found.status, found.field, found.place, found.retry_after) == (
        status,
        field,
        place,
        again,
    )
    assert told in found.detail
    assert "planted-secret" not in found.detail
