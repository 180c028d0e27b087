"""How long an unread body is read on after the answer, without a socket."""

import asyncio

import pytest

from streaming_moments.pipelines.service.http.connections.lingering import LINGERS, Lingering

CLOSE = (b"connection", b"close")
PART = {"type": "http.request", "body": b"abcde", "more_body": True}
END = {"type": "http.request", "body": b"", "more_body": False}
ANSWER = [b"no", b""]


def called(coming, answered=(CLOSE,), asked=(), reads=0, seconds=60.0):
    """Number of parts that are left, bodies of the answer, and whether it lingers."""
    left, sent, scope = list(coming), [], {"type": "http", "headers": list(asked)}

    async def app(scope, receive, send):
        for _ in range(reads):
            await receive()
        await send({"type": "http.response.start", "status": 413, "headers": list(answered)})
        await send({"type": "http.response.body", "body": b"no"})

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(Lingering(app, 10, seconds)(scope, receive, send))
    assert [one.get("more_body", False) for one in sent[1:]] == [True] * (len(sent) - 2) + [False]
    return len(left), [one["body"] for one in sent[1:]], scope.get(LINGERS, False)


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ({"coming": [PART, PART, END]}, (0, ANSWER, True)),
        ({"coming": [PART] * 20}, (12, ANSWER, True)),  # four times the largest body
        ({"coming": [PART, {"type": "http.disconnect"}, END]}, (1, ANSWER, True)),
        ({"coming": [PART], "seconds": 0.001}, (0, ANSWER, True)),
        ({"coming": [PART, END], "answered": (), "asked": (CLOSE,)}, (0, ANSWER, True)),
        # what is read already, and connections that stay open
        ({"coming": [PART, END], "reads": 2}, (0, ANSWER[:1], False)),
        ({"coming": [PART, END], "answered": ()}, (2, ANSWER[:1], False)),
    ],
)
def test_unread_bodies_are_read_on_within_bounds(case, found):
    assert called(**case) == found


def test_a_silent_client_ends_it(monkeypatch):
    monkeypatch.setattr(
        "streaming_moments.pipelines.service.http.connections.lingering._SILENT", 0.001
    )
    assert called([PART]) == (0, ANSWER, True)


def test_what_is_no_request_passes():
    seen = []

    async def app(*given):
        seen.append(given)

    asyncio.run(Lingering(app, 10, 1.0)({"type": "lifespan"}, 1, 2))
    assert seen == [({"type": "lifespan"}, 1, 2)]
