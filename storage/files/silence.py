"""Silence of an object store: log it after two seconds, and limit the wait for a first answer."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from dataclasses import dataclass
from time import monotonic
from typing import Any

import fsspec

SILENCE = "streaming_moments.storage.silence"  # name of the logger that warns of silent storage
SAID_AFTER = 2.0  # log a warning after this many seconds without an answer
FIRST_ANSWER = 6.0  # seconds to wait for a first answer; later the client decides how long it waits
_ATTEMPTS = 5  # attempts of botocore to connect, unless the user sets another number
# reasons that versions of OpenSSL give if a server answers without TLS
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
_NAME = "streaming-moments"
_DEFAULT = {"mode": "legacy"}  # how botocore retries if the user has not configured it


class NoAnswer(ConnectionError):
    """An endpoint has not answered any request."""


class PlainHttp(NoAnswer):
    """An endpoint whose URL begins with https:// speaks http."""


class UntrustedCertificate(NoAnswer):
    """The certificate of an endpoint is of an unknown authority, or of another host."""


@dataclass
class _Watch:
    """Record of an endpoint's answers to one client of S3; used only by the client's event loop.

    endpoint : URL of the endpoint, or another name for it
    attempts : how often the client tries to connect
    limit : seconds to wait for a first answer; None if options or the environment set other limits
    """

    endpoint: str
    attempts: int
    limit: float | None
    answered: bool = False
    since: float | None = None
    reason: str = ""
    due: asyncio.TimerHandle | None = None

    def sent(self, **_: Any) -> None:
        """Start to wait for the first answer, unless it has come.

        Later answers have no time limit, as uploads may take long.
        """
        if not self.answered:
            self._wait()

    def received(self, exception: Exception | None, **_: Any) -> None:
        """Record an answer."""
        if exception is None:
            self.answered, self.since, self.reason = True, None, ""
            if self.due is not None:
                self.due.cancel()
                self.due = None

    def failed(self, caught_exception: Exception | None, **_: Any) -> float | None:
        """Record a failed request; return the seconds to wait before it is sent again.

        None if the client decides how long to wait.

        Raises NoAnswer if the first answer takes too long, or can never come.
        """
        if not isinstance(caught_exception, _unreachable()):
            return None
        if not self.answered:
            self._require_handshake(caught_exception)
        self._wait()
        self.reason = _reason(caught_exception)
        if self.answered or self.limit is None or self.since is None:
            return None
        waited = monotonic() - self.since
        if waited >= FIRST_ANSWER:
            raise NoAnswer(f"no answer from {self.endpoint} for {waited:.0f} s{self.reason}")
        # spread the attempts so that the last one is made after FIRST_ANSWER seconds
        return min(FIRST_ANSWER / (_ATTEMPTS - 1), FIRST_ANSWER - waited)

    def _require_handshake(self, error: Exception) -> None:
        """Raise NoAnswer if TLS fails in a way that no later attempt mends."""
        found = _of_system(error)
        if isinstance(found, ssl.SSLCertVerificationError):
            why = found.verify_message
            raise UntrustedCertificate(f"the certificate of {self.endpoint} is refused: {why}")
        if isinstance(found, ssl.SSLError) and found.reason in _NOT_TLS:
            raise PlainHttp(f"{self.endpoint} speaks http instead of https")

    def _wait(self) -> None:
        if self.since is None:
            self.since = monotonic()
            self.due = asyncio.get_running_loop().call_later(SAID_AFTER, self._say)

    def _say(self) -> None:
        self.due = None
        most = f"{self.attempts} times"
        if self.limit is not None and not self.answered:
            most = f"{self.limit - SAID_AFTER:.0f} s more"
        logging.getLogger(SILENCE).warning(
            "no answer %s from %s%s; trying again, at most %s",
            "any more" if self.answered else "yet",
            self.endpoint,
            self.reason,
            most,
        )


def watched(fs: fsspec.AbstractFileSystem) -> fsspec.AbstractFileSystem:
    """Let a client of S3 log when its endpoint is silent, and limit the wait for a first answer.

    File systems other than S3 stay unchanged.

    This function raises nothing itself. If the user set timeouts or retries, only these limit the
    time.
    """
    if "s3" not in fs.protocol or "set_session" in vars(fs):
        return fs
    begin, seen = fs.set_session, list[object]()

    async def begun(*given: Any, **named: Any) -> Any:
        client = await begin(*given, **named)
        if client not in seen:
            seen[:] = [client]
            _watch(fs, client)
        return client

    fs.set_session = begun
    return fs


def _watch(fs: fsspec.AbstractFileSystem, client: Any) -> None:
    url, config = client.meta.endpoint_url, client.meta.config
    hidden = url in (fs.endpoint_url, (fs.client_kwargs or {}).get("endpoint_url"))
    own = {"connect_timeout", "read_timeout", "retries"} & {*fs.config_kwargs}
    watch = _Watch(
        "the endpoint in the storage options" if hidden else url,
        (config.retries or {}).get("total_max_attempts", _ATTEMPTS),
        None if own or config.retries != _DEFAULT else FIRST_ANSWER + config.connect_timeout,
    )
    events = client.meta.events
    for event, heard in (
        ("before-send.s3", watch.sent),
        ("response-received.s3", watch.received),
        ("needs-retry.s3", watch.failed),
    ):
        events.register_first(event, heard, unique_id=f"{_NAME} {event}")


def _unreachable() -> tuple[type[Exception], ...]:
    from botocore import exceptions

    return (
        exceptions.ConnectionError,
        exceptions.ConnectionClosedError,
        exceptions.HTTPClientError,
    )


def _of_system(error: Exception) -> Any:
    """Return the error of the operating system inside an error of botocore."""
    inner = getattr(error, "kwargs", {}).get("error")
    return getattr(inner, "os_error", None) or inner


def _reason(error: Exception) -> str:
    of_system = _of_system(error)
    if isinstance(of_system, socket.gaierror):
        return " (its host is unknown)"
    if getattr(of_system, "errno", None) == errno.ECONNREFUSED:
        return " (the connection is refused)"
    return ""
