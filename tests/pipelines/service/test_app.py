"""The application, called in this process: what each answer has, and what fails."""

import asyncio
from dataclasses import replace

import structlog
from service_answers import problem
from starlette.requests import Request
from starlette.responses import Response
from structlog.testing import LogCapture

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.service.http import reading
from streaming_moments.pipelines.service.http.admission import Door
from streaming_moments.pipelines.service.http.app import _Answers, _Logged, by_path
from streaming_moments.pipelines.service.http.routes import CALLS
from streaming_moments.pipelines.service.service_log import ServiceLog
from streaming_moments.pipelines.service.tokens import Role

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def test_every_answer_has_the_headers_of_all_and_the_name_of_its_request(caller):
    for path in ("/healthz", "/none", "/v1/topics?words=0"):
        answer = caller("GET", path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert len(answer.headers["x-request-id"]) == 32
    page = caller("GET", "/docs")
    assert page.headers["Referrer-Policy".lower()] == "same-origin", "its own, and once"
    for given, kept in (("a" * 64, True), ("a.-_9", True), ("a" * 65, False), ("a b", False)):
        told = caller("GET", "/healthz", x_request_id=given).headers["x-request-id"]
        assert (told == given) is kept


def test_a_line_of_the_log_says_what_was_asked_and_by_whom(call_at, tokens):
    path, made = tokens
    with call_at("night", tokens=str(path)) as caller:
        caller("GET", "/v1/models", authorization=f"Bearer {made[Role.READER]}", x_request_id="a")
        caller("HEAD", "/healthz", x_request_id="b")
        caller("GET", "/none", x_request_id="c")
        before = caller.service.gauges.rates.last(60)["refused"]
        caller("GET", "/versions", accept="text/html", x_request_id="d")
        assert caller.service.gauges.rates.last(60)["refused"] == before, "it asks for the token"
        caller("GET", "/versions", accept="text/html", authorization="Basic x", x_request_id="e")
        assert caller.service.gauges.rates.last(60)["refused"] == before + 1
        found = [
            (one["call"], one["status"], one["request_id"], one["principal"])
            for one in caller.lines
            if one["event"] == "call"
        ]
        assert found == [
            ("GET /v1/models", 200, "a", "reader"),
            ("GET /healthz", 200, "b", ""),
            ("none", 404, "c", ""),
            ("GET /versions", 401, "d", ""),
            ("GET /versions", 401, "e", ""),
        ]
        assert all(0 <= one["seconds"] < 60 for one in caller.lines)
        assert dict(caller.service.gauges.rates.last(60)) == {"calls": 5, "refused": 2}


def test_a_call_counts_while_it_is_worked_on(caller):
    door, seen = Door(caller.service), []
    answers = _Answers(door, None)

    async def noting(service, request):
        seen.append(door.within)
        return Response()

    call = replace(by_path()["/v1/models"]["GET"], handler=noting)
    scope = {"type": "http", "method": "HEAD", "request_id": "a", "query_string": b""}
    request = Request({**scope, "headers": [(b"host", b"localhost")]})
    asyncio.run(answers.endpoint({"GET": call})(request))
    assert (seen, door.within, request.scope["call"]) == ([1], 0, "GET /v1/models")
    door.within = caller.service.config.limits.requests
    crowded = asyncio.run(answers.endpoint({"GET": call})(request))
    assert (crowded.status_code, len(seen)) == (503, 1)
    assert door.within == caller.service.config.limits.requests


def test_a_client_that_goes_away_is_told_so_and_no_fault(caller):
    answer = caller("POST", "/v1/transform", [b"{", None], content_type="application/json")
    assert problem(answer, 400)["detail"] == "the client disconnected"
    assert [one["event"] for one in caller.lines] == ["call"]


def test_two_lengths_are_refused_and_the_connection_closed(caller):
    answer = caller("GET", "/healthz", content_length="1", transfer_encoding="chunked")
    assert problem(answer, 400)["field"] == "Content-Length"
    assert answer.headers["connection"] == "close"
    assert caller("GET", "/healthz", content_length="0").status == 200


def test_two_lengths_alone_are_refused_and_what_is_not_answered_has_no_status(caller):

    async def nothing(scope, receive, send):
        """Answers nothing."""

    sent = []

    async def send(message):
        sent.append(message)

    capture = LogCapture()
    log = structlog.wrap_logger(structlog.PrintLogger(), processors=[capture])
    logged = _Logged(nothing, caller.service, ServiceLog(log))
    both = [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")]
    for headers in ([], both):
        asyncio.run(logged({"type": "http", "path": "/", "headers": headers}, None, send))
    assert [one["status"] for one in capture.entries] == [0, 400]
    assert sent[0]["status"] == 400
    scope = {"request_id": "a", "client": ("192.0.2.7", 9)}
    for status in (200, 401):
        logged.log.call(scope, status, 0.1)
    assert [one.get("client") for one in capture.entries[2:]] == [None, "192.0.2.7"]


def test_an_address_that_is_not_there_says_where_they_are_listed(caller):
    told = problem(caller("GET", "/v1/none"), 404)
    assert told["detail"] == "there is no path '/v1/none'; /docs lists all calls"
    answer = caller("PUT", "/v1/documents")
    assert problem(answer, 405)["detail"] == "'/v1/documents' allows only DELETE and POST"
    assert set(answer.headers["allow"].split(", ")) == {"POST", "DELETE"}
    near = problem(caller("GET", "/v1/models/"), 404)
    assert near["detail"] == "there is no path '/v1/models/'; did you mean '/v1/models'?"
    long = problem(caller("GET", "/" + "a" * 30_000), 404)
    assert long["detail"] == f"there is no path '/{'a' * 99}'; /docs lists all calls"


def test_a_fault_is_logged_with_its_last_frames_and_an_error_of_ours_is_not(caller, monkeypatch):
    def deep(left):
        if left:
            return deep(left - 1)
        raise ZeroDivisionError("planted-secret")

    monkeypatch.setattr(reading, "facts_of", lambda store: deep(20))
    told = problem(caller("GET", "/v1/status", x_request_id="mine"), 500)
    assert told["request_id"] == "mine"
    (line,) = [one for one in caller.lines if one["event"] == "fault"]
    assert (line["request_id"], line["call"], line["error"]) == (
        "mine",
        "GET /v1/status",
        "ZeroDivisionError",
    )
    assert (len(line["at"]), all("test_app.py" in one for one in line["at"])) == (12, True)

    def away(store):
        raise StoreError("away")

    monkeypatch.setattr(reading, "facts_of", away)
    caller.lines.clear()
    problem(caller("GET", "/v1/status"), 503)
    assert [one["event"] for one in caller.lines] == ["call"]


def test_calls_are_found_by_address_and_method():
    found = by_path()
    assert [(call.method, call.path) for one in found.values() for call in one.values()] != []
    assert sum(map(len, found.values())) == len(CALLS)
    assert all(found[call.path][call.method] is call for call in CALLS)


def test_a_service_begins_to_look_as_the_server_starts_and_ends_with_it(caller):
    threads = caller.service.current._threads
    seen = []

    async def lived():
        coming, going = asyncio.Queue(), asyncio.Queue()
        task = asyncio.create_task(caller.app({"type": "lifespan"}, coming.get, going.put))
        for message in ("startup", "shutdown"):
            await coming.put({"type": f"lifespan.{message}"})
            seen.append((await going.get())["type"])
            seen.append([one.is_alive() for one in threads])
        await task

    asyncio.run(lived())
    assert seen == [
        "lifespan.startup.complete",
        [True, True],
        "lifespan.shutdown.complete",
        [False, False],
    ]
    assert caller.post("/v1/documents", [{"text": "a"}]).status == 503, "it takes no more"
    assert caller.lines[-1]["event"] == "call"


def test_pages_of_others_may_read_and_send_what_they_need(call_at, tokens):
    path, made = tokens
    origin = "https://pages.example"
    headers = "authorization, content-type, content-encoding, idempotency-key"
    asked = {
        "origin": origin,
        "access_control_request_method": "DELETE",
        "access_control_request_headers": headers,
    }
    with call_at("night", tokens=str(path), listen={"origins": [origin]}) as caller:
        answer = caller("OPTIONS", "/v1/documents", **asked)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, origin)
        assert answer.headers["access-control-allow-methods"] == "GET, POST, DELETE"
        token = f"Bearer {made[Role.READER]}"
        answer = caller("GET", "/v1/models", origin=origin, authorization=token)
        exposed = answer.headers["access-control-expose-headers"]
        assert exposed == "Location, Retry-After, X-Request-ID"
        assert caller("OPTIONS", "/v1/documents", **{**asked, "origin": "https://e"}).status == 400
        assert set(caller("GET", "/v1/openapi.json").json()["components"]) == {
            "schemas",
            "securitySchemes",
        }
    with call_at("counts_2", tokens=str(path)) as caller:
        assert caller("OPTIONS", "/v1/documents", **asked).status == 405
