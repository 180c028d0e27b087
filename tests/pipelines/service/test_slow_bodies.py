"""Slow bodies take no place of other calls, and a caller has a share of them."""

import socket
from contextlib import ExitStack

from streaming_moments.pipelines.service.tokens import Role, add_token

BODY = b'[{"text": "law and sea"}]'


def sent_slowly(stack, port, token, content=b"["):
    """A connection whose body has begun; the server waits for the rest of it."""
    lines = (
        "POST /v1/documents HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Content-Length: {len(BODY)}",
        "Expect: 100-continue",
    )
    one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
    one.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    said = one.recv(200)
    if said.startswith(b"HTTP/1.1 100"):  # the handler reads: it is past the door
        one.sendall(content)
    return one, said


def test_slow_bodies_of_one_caller_leave_the_others_answered(serve, place):
    tokens = place / "slow.json"
    slow, other = (add_token(tokens, name, Role.WRITER) for name in ("slow", "other"))
    with serve(tokens=str(tokens), limits={"requests": 3}) as client, ExitStack() as stack:
        begun = [sent_slowly(stack, client.port, slow) for _ in range(3)]
        assert all(said.startswith(b"HTTP/1.1 100") for _, said in begun)
        # one more of that caller is refused, others are answered
        _, refused = sent_slowly(stack, client.port, slow)
        assert refused.startswith(b"HTTP/1.1 503")
        asked = {"Authorization": f"Bearer {other}"}
        assert client("GET", "/v1/status", headers=asked).status_code == 200
        whole, said = sent_slowly(stack, client.port, other, BODY)
        assert said.startswith(b"HTTP/1.1 100")
        assert whole.recv(200).startswith(b"HTTP/1.1 202")
        # a body that is whole makes room for the next
        first = begun[0][0]
        first.sendall(BODY[1:])
        assert first.recv(200).startswith(b"HTTP/1.1 202")
        assert sent_slowly(stack, client.port, slow)[1].startswith(b"HTTP/1.1 100")
