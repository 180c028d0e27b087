"""The door of the service, called in this process: who is let in, and what each answer has."""

import asyncio
import base64
from dataclasses import replace

import pytest
import structlog
from starlette.requests import Request
from starlette.responses import Response
from structlog.testing import LogCapture

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.service.http import reading
from streaming_moments.pipelines.service.http.admission import Door, password_in
from streaming_moments.pipelines.service.http.app import _Answers, _Logged, by_path
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.routes import CALLS
from streaming_moments.pipelines.service.tokens import Role, add_token

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def problem(answer, status):
    assert answer.status == status, answer.text
    return answer.json()


@pytest.fixture
def tokens(tmp_path):
    """A file of tokens, and a token of each role."""
    path = tmp_path / "tokens.json"
    return path, {role: add_token(path, role.name.lower(), role) for role in Role}


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
        found = [
            (one["call"], one["status"], one["request_id"], one["principal"])
            for one in caller.lines
            if one["event"] == "call"
        ]
        assert found == [
            ("GET /v1/models", 200, "a", "reader"),
            ("GET /healthz", 200, "b", ""),
            ("none", 404, "c", ""),
        ]
        assert all(0 <= one["seconds"] < 60 for one in caller.lines)
        assert dict(caller.service.gauges.rates.last(60)) == {"calls": 3, "refused": 1}


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:99", "127.0.0.1:8080", "[::1]:80", "[::1]", ""]
)
def test_without_tokens_this_machine_may_do_everything(caller, host):
    assert caller("GET", "/v1/models", host=host).status == 200


@pytest.mark.parametrize("host", ["localhost.evil", "evil:80", "127.0.0.2", "localhost:x"])
def test_without_tokens_no_other_host_is_answered(caller, host):
    told = problem(caller("GET", "/v1/models", host=host), 421)
    assert "only this machine" in told["detail"]
    assert caller("GET", "/healthz", host=host).status == 200


def test_calls_and_pages_ask_for_tokens_each_in_its_way(call_at, tokens):
    path, made = tokens
    reader = made[Role.READER]
    basic = "Basic " + base64.b64encode(f"any:{reader}".encode()).decode()

    def asked(path, given=None):
        answer = caller("GET", path, **({} if given is None else {"authorization": given}))
        return answer.status, answer.headers.get("www-authenticate")

    with call_at("night", tokens=str(path)) as caller:
        for path, scheme in (("/v1/models", "Bearer"), ("/versions", "Basic")):
            missing = (401, f'{scheme} realm="streaming-moments"')
            for given in (None, "Bearer", "Bearer ", "Digest x", reader):
                assert asked(path, given) == missing
            wrong = (401, f'{scheme} realm="none of these"')
            assert asked(path, "Bearer sm_wrong") == wrong
            for given in (f"Bearer {reader}", f"bearer  {reader} "):
                assert asked(path, given) == (200, None)
        assert asked("/versions", basic) == asked("/versions", basic.lower()[:5] + basic[5:])
        assert asked("/versions", basic)[0] == 200
        assert asked("/v1/models", basic) == (401, 'Bearer realm="streaming-moments"')
        told = problem(caller("GET", "/v1/models"), 401)
        assert (told["field"], told["detail"]) == (
            "Authorization",
            "send a token: Authorization: Bearer sm_...",
        )
        assert "as the password" in caller("GET", "/versions").text


def test_each_call_asks_for_its_role_and_no_more(call_at, tokens):
    path, made = tokens
    with call_at("night", tokens=str(path)) as caller:
        for call in CALLS:
            if call.role is None:
                continue
            address = call.path.replace("{", "").replace("}", "")
            for role, token in made.items():
                answer = caller(call.method, address, authorization=f"Bearer {token}")
                refused = answer.status == 403 and "this needs a token of role" in answer.text
                assert refused is (role < call.role), (call.path, role)
        told = problem(
            caller("DELETE", "/v1/documents", authorization=f"Bearer {made[Role.WRITER]}"), 403
        )
        assert told["detail"] == "this needs a token of role admin; writer is a writer"


def test_where_the_file_of_tokens_cannot_be_read_nobody_is_let_in(call_at, tokens):
    path, made = tokens
    with call_at("night", tokens=str(path)) as caller:
        path.write_bytes(b"?")
        caller.service.current.look()
        answer = caller("GET", "/v1/models", authorization=f"Bearer {made[Role.ADMIN]}")
        assert (problem(answer, 503)["detail"], answer.headers["retry-after"]) == (
            "the file of tokens cannot be read; see the log",
            "5",
        )


def test_as_many_calls_are_worked_on_at_once_as_are_allowed(call_at):
    with call_at("night", limits={"requests": 3}) as caller:
        door = Door(caller.service)
        door.within = 3
        door.require_room()
        door.within = 4
        with pytest.raises(Problem, match="too many calls") as crowded:
            door.require_room()
        assert (crowded.value.status, crowded.value.retry_after) == (503, 1)


@pytest.mark.parametrize(("method", "bodies"), [("GET", 1), ("POST", 2)])
def test_a_call_is_answered_in_time_and_counts_until_it_ends(call_at, monkeypatch, method, bodies):
    """A body is waited for as long as the answer, and an answer a moment longer than a storage."""
    waited, wait = [], asyncio.wait

    async def without_waiting(tasks, timeout):
        waited.append(timeout)
        return await wait(tasks, timeout=0)

    monkeypatch.setattr(asyncio, "wait", without_waiting)
    with call_at("night", limits={"seconds": "3s"}) as caller:
        door = Door(caller.service)

        async def asked(fails):
            goes_on = asyncio.Event()

            async def hanging():
                await goes_on.wait()
                return 1 // (not fails)

            with pytest.raises(Problem, match="no answer within 3 seconds") as late:
                await door.in_time(hanging(), method)
            assert (late.value.status, late.value.retry_after) == (503, 30)
            assert door.within == 1
            goes_on.set()
            while door.within:
                await asyncio.sleep(0)

        for fails in (False, True):
            asyncio.run(asked(fails))
    assert waited == [3 * bodies + 1.0] * 2


def test_a_call_counts_while_it_is_worked_on(caller):
    door, seen = Door(caller.service), []
    answers = _Answers(door, None)

    async def noting(service, request):
        seen.append(door.within)
        return Response()

    call = replace(by_path()["/v1/models"]["GET"], handler=noting)
    scope = {"type": "http", "method": "HEAD", "request_id": "a"}
    request = Request({**scope, "headers": [(b"host", b"localhost")]})
    asyncio.run(answers.endpoint({"GET": call})(request))
    assert (seen, door.within, request.scope["call"]) == ([1], 0, "GET /v1/models")
    door.within = caller.service.config.limits.requests
    crowded = asyncio.run(answers.endpoint({"GET": call})(request))
    assert (crowded.status_code, len(seen)) == (503, 1)
    assert door.within == caller.service.config.limits.requests


def test_a_call_whose_server_ends_is_given_up(caller):
    door, ended = Door(caller.service), []

    async def given_up():
        began = asyncio.Event()

        async def hanging():
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(1)

        task = asyncio.create_task(door.in_time(hanging(), CALLS[0].method))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert ended == [1]

    asyncio.run(given_up())


def test_what_becomes_of_a_call_that_was_too_late_is_no_fault_of_the_loop(caller):
    door, told = Door(caller.service, 2), []

    async def failing():
        raise OSError("away")

    async def late():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: told.append(context["message"]))
        several = [asyncio.ensure_future(one) for one in (failing(), asyncio.sleep(60))]
        several[1].cancel()
        await asyncio.wait(several)
        assert [task.cancelled() for task in several] == [False, True]
        for task in several:
            door._ended(task)

    asyncio.run(late())
    assert (door.within, told) == (0, [])


def test_a_client_that_goes_away_is_told_so_and_no_fault(caller):
    answer = caller("POST", "/v1/transform", [b"{", None], content_type="application/json")
    assert problem(answer, 400)["detail"] == "the client went away"
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
    logged = _Logged(nothing, caller.service, log)
    both = [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")]
    for headers in ([], both):
        asyncio.run(logged({"type": "http", "path": "/", "headers": headers}, None, send))
    assert [one["status"] for one in capture.entries] == [0, 400]
    assert sent[0]["status"] == 400


def test_an_address_that_is_not_there_says_where_they_are_listed(caller):
    told = problem(caller("GET", "/v1/none"), 404)
    assert told["detail"] == "there is no such address; see /docs"
    answer = caller("PUT", "/v1/documents")
    assert problem(answer, 405)["detail"] == "the address does not take this method; see /docs"
    assert set(answer.headers["allow"].split(", ")) == {"POST", "DELETE"}
    assert caller("GET", "/v1/models/").status == 404, "no redirect"


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


def test_the_password_of_a_browser():
    def told(text):
        return base64.b64encode(text).decode()

    assert password_in(told(b"me:sm_a:b")) == "sm_a:b"
    assert password_in(f" {told(b'me:sm_a')} ") == "sm_a"
    for none in (told(b"me"), "?", "bWU6", told(b"\xff:\xff"), "bW U6c21f"):
        assert password_in(none) == ""


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
