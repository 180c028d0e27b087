"""A real HTTP proxy before a real server, which loses, cuts and refuses what it is told to."""

import http.client
import socket
import struct
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEFORE = ("lost request", "reset request", "slow down", "internal error", "conflict")
AFTER = ("lost reply", "reset reply", "internal error after all", "cut reply", "short reply")
KINDS = (*BEFORE, *AFTER)
_REFUSALS = {
    "slow down": (503, "SlowDown"),
    "internal error": (500, "InternalError"),
    "internal error after all": (500, "InternalError"),
    "conflict": (409, "ConditionalRequestConflict"),
}
_RESET = struct.pack("ii", 1, 0)  # close at once, and tell the other side so


@dataclass(frozen=True)
class Fault:
    """What happens to some requests in a row.

    A cut reply ends too early; a short one does too, but says that this is all.

    Parameters
    ----------
    kind : str
        Of `BEFORE`: the server never hears of the request. Of `AFTER`: it has carried it out.
    start : int
        How many requests pass before.
    times : int
        How many requests it meets; conflicts meet conditional puts only.
    commits : bool
        Whether `start` counts conditional puts only.
    """

    kind: str
    start: int
    times: int = 1
    commits: bool = False


class UnreliableProxy:
    """Stands between clients and the server at `host:port`; faultless until `suffer`."""

    def __init__(self, host, port):
        self._server = _Server((host, port))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def suffer(self, fault):
        """From now on; counts anew."""
        with self._server.lock:
            self._server.fault, self._server.passed, self._server.met = fault, 0, 0

    def calm(self):
        """End the fault; how many requests it met."""
        with self._server.lock:
            self._server.fault = None
            return self._server.met

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), _Relay)
        self.upstream = upstream
        self.lock = threading.Lock()
        self.fault, self.passed, self.met = None, 0, 0
        self.resets = set()

    def next_fault(self, conditional):
        """What is to happen to the request that has just come; empty for nothing."""
        with self.lock:
            fault = self.fault
            if fault is None or self.met == fault.times:
                return ""
            if not self.met and self.passed < fault.start:
                self.passed += conditional or not fault.commits
                return ""
            if not self.met and fault.commits and not conditional:
                return ""
            if fault.kind == "conflict" and not conditional:
                return ""
            self.met += 1
            return fault.kind

    def shutdown_request(self, request):
        if request in self.resets:
            self.resets.discard(request)
            request.close()
        else:
            super().shutdown_request(request)


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    def setup(self):
        super().setup()
        # one for all requests of a client's connection
        self.upstream = http.client.HTTPConnection(*self.server.upstream, timeout=60)

    def finish(self):
        self.upstream.close()
        super().finish()

    def relay(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = "If-None-Match" in self.headers or "ifGenerationMatch=0" in self.path
        conditional = self.command in ("PUT", "POST") and asked
        kind = self.server.next_fault(conditional)
        if not kind or kind in AFTER:
            head, content = self.answer(body)
        if kind in _REFUSALS:
            head, content = self.refusal(*_REFUSALS[kind])
        if "lost" in kind or "reset" in kind:
            self.close_connection = True
            if "reset" in kind:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self.server.resets.add(self.connection)
            return
        if kind in ("cut reply", "short reply"):
            self.close_connection = True
            half = content[: len(content) // 2]
            if not content:
                head = self.headed(head, 0)
                self.wfile.write(head[: len(head) // 2])
            else:
                length = len(half if kind == "short reply" else content)
                self.wfile.write(self.headed(head, length) + half)
            return
        length = None if self.command == "HEAD" else len(content)
        self.wfile.write(self.headed(head, length) + content)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = relay  # noqa: N815

    def answer(self, body):
        """Status line with headers, and body, of the server."""
        hidden = ("connection", "expect")
        headers = {name: text for name, text in self.headers.items() if name.lower() not in hidden}
        self.upstream.request(self.command, self.path, body, headers)
        response = self.upstream.getresponse()
        content = response.read()
        return (response.status, response.reason, response.getheaders()), content

    def refusal(self, status, code):
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
        content = b"" if self.command == "HEAD" else text.encode()
        return (status, code, [("Content-Type", "application/xml")]), content

    def headed(self, head, length):
        """Bytes of the head; without a length that is what the server told."""
        status, reason, headers = head
        told = {name.lower(): text for name, text in headers}
        length = told.get("content-length", 0) if length is None else length
        hidden = {"connection", "transfer-encoding", "content-length"}
        lines = [f"{name}: {text}" for name, text in headers if name.lower() not in hidden]
        lines.append(f"Content-Length: {length}")
        return "\r\n".join([f"HTTP/1.1 {status} {reason}", *lines, "", ""]).encode()

    def log_message(self, *_):
        pass
