"""Serve the HTTP application on a socket until a signal ends the process."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import uuid
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import h11
import uvicorn
from pydantic_core import to_json
from uvicorn.protocols.http.h11_impl import H11Protocol

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.config import ListenSection, ServiceConfig
from streaming_moments.pipelines.service.http.connections.lingering import LINGERS, App
from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.storage.files.backends import remedy_of

_HEADER_BYTES = 32 << 10
_NOT_HTTP = (
    "the request is not valid HTTP/1.1, or its headers are above 32 KiB; mend its first line and "
    "headers, and use https:// where the service has a certificate"
)
_IDLE = 30  # seconds for which an idle connection stays open


def server_of(app: App, config: ServiceConfig, tell: Callable[[str], None]) -> uvicorn.Server:
    """Return a server for an application; on SIGTERM the server completes open requests and ends.

    The server calls `tell` with its address as soon as it listens.
    """
    listen, limits = config.listen, config.limits
    return _Announced(
        uvicorn.Config(
            app,
            host=listen.host,
            port=listen.port,
            loop="asyncio",
            http=_patient(limits.seconds.total_seconds(), limits.connections),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            log_level="error",
            server_header=False,
            ssl_certfile=listen.certificate,
            ssl_keyfile=listen.key,
            limit_concurrency=limits.connections,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=int(limits.drain.total_seconds()) or 1,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            proxy_headers=False,
        ),
        tell,
    )


class _Announced(uvicorn.Server):
    """Server that reports its address when it listens."""

    def __init__(self, config: uvicorn.Config, tell: Callable[[str], None]) -> None:
        super().__init__(config)
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for one in self.servers if self.started else ():
            host, port, *_ = one.sockets[0].getsockname()
            scheme = "https" if self.config.is_ssl else "http"
            self._tell(f"listening on {scheme}://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._tell("stopping, once open requests are answered")
        await super().shutdown(sockets)


def require_free(listen: ListenSection) -> None:
    """Raise InvalidInput if another process listens at an address, or listening is not allowed."""
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidInput(
            f"[listen] host {listen.host!r} is unknown ({error.strerror}); give a name or an "
            "address of this machine, such as 127.0.0.1, or 0.0.0.0 for all"
        ) from error
    try:
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                # test the port for IPv6 only; another process may use it for IPv4
                if family == socket.AF_INET6:
                    tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                tried.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InvalidInput(
                f"[listen] cannot use port {listen.port} of {listen.host} ({error.strerror}); end "
                "the process that uses it, or give another port"
            ) from error
        remedy = {
            errno.EADDRNOTAVAIL: "give an address of this machine, or 0.0.0.0 for all",
            errno.EACCES: "give a port of 1024 or more, and let a proxy serve the lower one",
        }.get(error.errno or 0, "give another host or port")
        raise InvalidInput(
            f"[listen] cannot use port {listen.port} of {listen.host} ({error.strerror}); {remedy}"
        ) from error


def require_certificate(listen: ListenSection) -> None:
    """Raise InvalidInput unless a TLS certificate and its key can be read and belong together."""
    certificate, key = listen.certificate, listen.key
    if certificate is None or key is None:
        return
    contents = {"certificate": certificate, "key": key}
    for name, path in contents.items():
        try:
            contents[name] = Path(path).read_text(encoding="latin-1")
        except OSError as error:
            remedy = (
                remedy_of(error)
                or "check the path, which is relative to the folder where the command runs"
            )
            raise InvalidInput(
                f"[listen] {name} {path} cannot be read ({error.strerror}); {remedy}"
            ) from error
    if "ENCRYPTED" in contents["key"]:
        # do not load an encrypted key here: that would ask the user for its password, as the server
        # does later
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:
        raise InvalidInput(
            f"[listen] certificate {certificate} and key {key} are not PEM files that belong "
            f"together; give a certificate and its own key"
        ) from error


def _patient(seconds: float, most: int) -> type[asyncio.Protocol]:
    """Return an HTTP protocol that closes slow connections, and limits how many are open.

    It closes a connection if, for `seconds`, the client does not complete the head of a request or
    does not read an answer. If `most` connections are open, a new connection closes the one that
    has been idle for longest, so idle clients do not keep others out. If twice as many are open,
    new connections are closed at once, because the process needs some open files for other things.
    """

    class Patient(H11Protocol):
        since = 0.0  # time at which the connection began to wait for the head of a request
        _waits: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > 2 * most:
                transport.abort()
            elif len(self.connections) >= most:
                others = (one for one in self.connections if isinstance(one, Patient))
                idle = [one for one in others if one is not self and one.is_idle()]
                if idle:
                    min(idle, key=attrgetter("since")).transport.close()
            self._wait()

        def is_idle(self) -> bool:
            """Whether no request is in progress; a request that has been answered is over."""
            cycle = self.cycle
            done = cycle is None or cycle.response_complete or LINGERS in cycle.scope
            return done and not self.transport.is_closing()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stuck = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self._unstick()
            super().resume_writing()

        def data_received(self, data: bytes) -> None:
            if self._waits is None and (self.cycle is None or self.cycle.response_complete):
                self._wait()
            super().data_received(data)

        def handle_events(self) -> None:
            super().handle_events()
            if self.cycle is not None and not self.cycle.response_complete:
                self._rest()

        def send_400_response(self, msg: str) -> None:
            """Answer an invalid request in JSON, like other errors, instead of plain text."""
            problem = Problem(400, _NOT_HTTP, headers={"Connection": "close"})
            # make the id of this request here, because no handler sees it
            body = to_json(problem.content(uuid.uuid4().hex))
            headers = [*problem.all_headers().items(), ("Content-Length", str(len(body)))]
            told = [(name.encode(), value.encode()) for name, value in headers]
            head = h11.Response(status_code=400, headers=told, reason=b"Bad Request")
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
            self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._rest()
            self._unstick()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self.since = self.loop.time()
            self._waits = self.loop.call_later(seconds, self._too_slow)

        def _rest(self) -> None:
            if self._waits is not None:
                self._waits.cancel()
                self._waits = None

        def _unstick(self) -> None:
            if self._stuck is not None:
                self._stuck.cancel()
                self._stuck = None

        def _too_slow(self) -> None:
            self._waits = None
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return Patient
