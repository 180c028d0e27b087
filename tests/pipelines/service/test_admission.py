"""Admission: who is let in, how many at once, and what is said where there is no room or time."""

import asyncio
import base64
from types import SimpleNamespace

import pytest
from service_answers import problem

from streaming_moments.pipelines.service.http.admission import Door, password_in
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.request_params import body_of
from streaming_moments.pipelines.service.http.routes import CALLS
from streaming_moments.pipelines.service.tokens import Role


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:99", "127.0.0.1:8080", "[::1]:80", "[::1]", ""]
)
def test_without_tokens_this_machine_may_do_everything(caller, host):
    assert caller("GET", "/v1/models", host=host).status == 200


@pytest.mark.parametrize("host", ["localhost.evil", "evil:80", "127.0.0.2", "localhost:x"])
def test_without_tokens_no_other_host_is_answered(caller, host):
    told = problem(caller("GET", "/v1/models", host=host), 421)
    assert "only requests to localhost" in told["detail"]
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
            assert asked(path, "Bearer sm_wrong") == missing
            for given in (f"Bearer {reader}", f"bearer  {reader} "):
                assert asked(path, given) == (200, None)
        assert asked("/versions", basic) == asked("/versions", basic.lower()[:5] + basic[5:])
        assert asked("/versions", basic)[0] == 200
        assert asked("/v1/models", basic) == (401, 'Bearer realm="streaming-moments"')
        told = problem(caller("GET", "/v1/models"), 401)
        assert (told["field"], told["detail"]) == (
            "Authorization",
            "send a token in the header `Authorization: Bearer sm_...`",
        )
        assert "type a token of the service as the password" in caller("GET", "/versions").text
        # the page Health links the metrics, so the login of the page opens them in a browser
        page = {"accept": "text/html,*/*;q=0.8"}
        assert caller("GET", "/metrics", authorization=basic, **page).status == 200
        assert caller("GET", "/v1/models", authorization=basic, **page).status == 401
        assert asked("/metrics") == (401, 'Bearer realm="streaming-moments"')


def test_each_call_asks_for_its_role_and_no_more(call_at, tokens):
    path, made = tokens
    with call_at("night", tokens=str(path)) as caller:
        for call in CALLS:
            if call.role is None:
                continue
            address = call.path.replace("{", "").replace("}", "")
            for role, token in made.items():
                answer = caller(call.method, address, authorization=f"Bearer {token}")
                refused = answer.status == 403 and "this call needs a token of role" in answer.text
                assert refused is (role < call.role), (call.path, role)
        told = problem(
            caller("DELETE", "/v1/documents", authorization=f"Bearer {made[Role.WRITER]}"), 403
        )
        assert (
            told["detail"]
            == "this call needs a token of role admin; the token writer has role writer"
        )


def test_where_the_file_of_tokens_cannot_be_read_nobody_is_let_in(call_at, tokens):
    path, made = tokens
    with call_at("night", tokens=str(path)) as caller:
        path.write_bytes(b"?")
        caller.service.current.look()
        answer = caller("GET", "/v1/models", authorization=f"Bearer {made[Role.ADMIN]}")
        assert (problem(answer, 503)["detail"], answer.headers["retry-after"]) == (
            "the token file cannot be read; see the log",
            "5",
        )


def test_as_many_calls_are_worked_on_at_once_as_are_allowed(call_at):
    with call_at("night", limits={"requests": 3}) as caller:
        door = Door(caller.service)
        door.within = 3
        door.require_room()
        door.within = 4
        with pytest.raises(Problem, match="too many requests") as crowded:
            door.require_room()
        assert (crowded.value.status, crowded.value.retry_after) == (503, 1)


def test_a_body_finds_its_place_taken_by_calls_that_came_in_meanwhile(call_at):
    with call_at("night", limits={"requests": 3}) as caller:
        service, door = caller.service, Door(caller.service)

        def asked(meanwhile):
            async def stream():
                yield b"{}"
                door.within += meanwhile

            state = SimpleNamespace(door=door, principal=SimpleNamespace(name="one"))
            request = SimpleNamespace(state=state, stream=stream, headers={}, client=None)
            with door.entered():
                return asyncio.run(body_of(service, request))

        assert asked(2) == b"{}"
        service.budget.give(2)
        with pytest.raises(Problem, match="too many requests"):
            asked(1)
        # what was held of the body is given back
        assert service.budget.take(service.budget.nbytes)
        service.budget.give(service.budget.nbytes)


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


def test_the_password_of_a_browser():
    def told(text):
        return base64.b64encode(text).decode()

    assert password_in(told(b"me:sm_a:b")) == "sm_a:b"
    assert password_in(f" {told(b'me:sm_a')} ") == "sm_a"
    for none in (told(b"me"), "?", "bWU6", told(b"\xff:\xff"), "bW U6c21f"):
        assert password_in(none) == ""
