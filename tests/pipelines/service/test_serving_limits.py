"""The server: what it is told of limits, and when it lets a connection go, without a socket."""

import asyncio
import gc
import socket
from types import SimpleNamespace

import pytest
import uvicorn

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.config import ListenSection, service_of
from streaming_moments.pipelines.service.http.connections.lingering import LINGERS
from streaming_moments.pipelines.service.http.connections.serving import (
    _Announced,
    _patient,
    require_certificate,
    require_free,
    server_of,
)


async def nothing(scope, receive, send):
    """Answers nothing."""


def test_the_server_is_told_of_the_limits_and_trusts_no_header():
    content = {
        "store": "s",
        "listen": {"port": 0},
        "limits": {"connections": 7, "drain": "9s", "seconds": "3s"},
    }
    server = server_of(nothing, service_of(content, "t"), lambda line: None)
    found = server.config
    assert (found.host, found.port, found.limit_concurrency) == ("127.0.0.1", 0, 7)
    assert (found.timeout_keep_alive, found.timeout_graceful_shutdown) == (30, 9)
    assert found.h11_max_incomplete_event_size == 32 << 10
    assert (found.proxy_headers, found.server_header, found.access_log) == (False, False, False)
    assert (found.lifespan, found.ws, found.log_level) == ("on", "none", "error")
    short = service_of({"store": "s", "limits": {"drain": "10ms"}}, "t")
    assert server_of(nothing, short, print).config.timeout_graceful_shutdown == 1


@pytest.mark.parametrize(
    ("address", "secure", "line"),
    [
        (("127.0.0.1", 80), False, "listening on http://127.0.0.1:80"),
        (("::1", 80, 0, 0), False, "listening on http://[::1]:80"),
        (("localhost", 80), True, "listening on https://localhost:80"),
    ],
)
def test_a_server_says_where_it_listens_once_it_does(monkeypatch, address, secure, line):
    async def startup(self, sockets=None):
        self.started = bool(began)
        began.append(1)
        self.servers = [SimpleNamespace(sockets=[SimpleNamespace(getsockname=lambda: address)])]

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    monkeypatch.setattr(uvicorn.Config, "is_ssl", secure)
    lines, began = [], []
    for told in ([], [line]):
        server = _Announced(uvicorn.Config(nothing), lines.append)
        asyncio.run(server.startup())
        assert lines == told


def test_a_server_says_that_it_stops(monkeypatch):
    async def shutdown(self, sockets=None):
        lines.append("ended")

    monkeypatch.setattr(uvicorn.Server, "shutdown", shutdown)
    lines = []
    asyncio.run(_Announced(uvicorn.Config(nothing), lines.append).shutdown())
    assert lines == ["stopping, once open requests are answered", "ended"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_that_is_in_use_is_named_before_anything_starts(host):
    require_free(ListenSection(port=0))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InvalidInput, match=rf"port {port} of {host} \(Address already in use"):
            require_free(ListenSection(host=host, port=port))
    require_free(ListenSection(host=host, port=port))
    for host, told in (
        ("no.invalid", r"host 'no\.invalid' is unknown .*; give a name or an address of this"),
        ("192.0.2.1", r"cannot use port 80 of 192\.0\.2\.1 .*; give an address of this machine"),
    ):
        with pytest.raises(InvalidInput, match=told):
            require_free(ListenSection(host=host, port=80))


def test_a_certificate_that_cannot_be_used_is_named_before_anything_starts(tmp_path):
    require_certificate(ListenSection())
    paths = [tmp_path / "certificate.pem", tmp_path / "key.pem"]
    section = ListenSection(certificate=str(paths[0]), key=str(paths[1]))
    for name, path in zip(("certificate", "key"), paths, strict=True):
        with pytest.raises(InvalidInput) as refused:
            require_certificate(section)
        assert str(refused.value) == (
            f"[listen] {name} {path} cannot be read (No such file or directory); check the path, "
            "which is relative to the folder where the command runs"
        )
        path.write_text("?")
    with pytest.raises(InvalidInput, match="are not PEM files that belong together"):
        require_certificate(section)
    paths[1].write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    require_certificate(section)


class Transport(asyncio.Transport):
    """Keeps what is written, and whether it was closed or aborted."""

    def __init__(self):
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written, self.closed, self.aborted = b"", False, False

    def write(self, data):
        self.written += data

    def close(self):
        self.closed = True

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.closed or self.aborted

    def pause_reading(self):
        """Nothing is read of it."""

    def resume_reading(self):
        """Nothing is read of it."""

    def set_write_buffer_limits(self, high=None, low=None):
        """It takes all."""


class Timers:
    """A loop whose timers ring only as they are told to."""

    def __init__(self, loop):
        self._loop, self.set = loop, []

    def __getattr__(self, name):
        return getattr(self._loop, name)

    def call_later(self, seconds, act, *how):
        timer = SimpleNamespace(seconds=seconds, act=act, cancelled=False)
        timer.cancel = lambda: setattr(timer, "cancelled", True)
        self.set.append(timer)
        return timer

    def ring(self, seconds):
        """Let the timers of so many seconds ring that wait."""
        for timer in [one for one in self.set if one.seconds == seconds and not one.cancelled]:
            timer.cancelled = True
            timer.act()

    def waiting(self, seconds):
        return sum(one.seconds == seconds and not one.cancelled for one in self.set)


@pytest.fixture
def connected():
    """Connections of a server that waits 3 seconds and takes 3 connections, in a loop."""
    loop = asyncio.new_event_loop()
    config = uvicorn.Config(nothing, http=_patient(3.0, 3), timeout_keep_alive=30, log_config=None)
    config.load()
    state = uvicorn.server.ServerState()
    timers = Timers(loop)

    def made():
        protocol = config.http_protocol_class(config, state, {}, _loop=timers)
        transport = Transport()
        protocol.connection_made(transport)
        return protocol, transport

    yield made, timers
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    gc.collect()


HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"


def test_who_sends_no_head_in_time_is_let_go(connected):
    made, timers = connected
    protocol, transport = made()
    assert timers.waiting(3.0) == 1
    protocol.data_received(HEAD[:20])
    assert timers.waiting(3.0) == 1, "a part of a head is waited for no longer"
    timers.ring(3.0)
    assert (transport.closed, transport.aborted) == (True, False)
    protocol.data_received(HEAD[20:25])
    assert timers.waiting(3.0) == 1, "what was under way is no end of it"


def test_of_a_request_that_is_worked_on_no_head_is_waited_for(connected):
    made, timers = connected
    protocol, transport = made()
    protocol.data_received(HEAD)
    assert protocol.cycle is not None
    assert timers.waiting(3.0) == 0
    timers.ring(3.0)
    assert not transport.closed
    # nor while its body comes
    protocol.data_received(b"abc")
    assert timers.waiting(3.0) == 0
    protocol._too_slow()
    assert not transport.closed
    protocol.cycle.response_complete = True
    protocol.data_received(b"")
    assert timers.waiting(3.0) == 1, "the next head is waited for"
    protocol.connection_lost(None)
    assert timers.waiting(3.0) == 0
    assert protocol._waits is None


def test_who_takes_no_answer_is_let_go(connected):
    made, timers = connected
    protocol, transport = made()
    timers.set.clear()
    protocol.pause_writing()
    assert (timers.waiting(3.0), protocol.flow.write_paused) == (1, True)
    protocol.resume_writing()
    assert (timers.waiting(3.0), protocol.flow.write_paused) == (0, False)
    protocol.pause_writing()
    timers.ring(3.0)
    assert transport.aborted
    protocol.pause_writing()
    protocol.connection_lost(None)
    assert (timers.waiting(3.0), protocol._stuck) == (0, None)
    assert protocol.connections == set()


def test_a_new_connection_closes_the_one_that_was_idle_for_longest(connected):
    made, timers = connected
    times = iter(range(100))
    timers.time = lambda: next(times)
    several = [made() for _ in range(2)]
    assert [transport.closed for _, transport in several] == [False, False]
    several[0][0].data_received(HEAD)
    for number, closed in enumerate([[1], [1, 2], [1, 2, 3]]):
        several.append(made())
        shut = [place for place, (_, transport) in enumerate(several) if transport.closed]
        assert shut == closed, number
    busy, transport = several[0]
    assert (transport.closed, busy.is_idle()) == (False, False), "its request is in progress"
    busy.cycle.scope[LINGERS] = True
    assert busy.is_idle(), "its request is answered"


def test_connections_beyond_twice_as_many_are_closed_at_once(connected):
    made, _ = connected
    assert [made()[1].aborted for _ in range(8)] == [False] * 6 + [True] * 2
