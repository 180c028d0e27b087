"""The log of the service: a line for each call and each fault, without document texts or tokens."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import structlog

_FRAMES = 12  # of a fault, at most this many stack frames are logged: the innermost ones


@dataclass(frozen=True)
class ServiceLog:
    """Writer of log lines about a request, given by its ASGI scope."""

    log: structlog.stdlib.BoundLogger

    def call(self, scope: Mapping[str, Any], status: int, seconds: float) -> None:
        """Log a call that was answered."""
        # log the address too, because without a valid token nothing else shows who made the call
        client = {"client": scope["client"][0]} if status == 401 and scope.get("client") else {}
        self.log.info(
            "call",
            call=scope.get("call", "none"),
            status=status,
            seconds=round(seconds, 4),
            request_id=scope["request_id"],
            principal=scope.get("principal", ""),
            **client,
        )

    def fault(self, error: Exception, scope: Mapping[str, Any]) -> None:
        """Log where a fault arose, but not its message, which may contain a document."""
        at = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
        self.log.error(
            "fault",
            request_id=scope["request_id"],
            call=scope["call"],
            error=type(error).__name__,
            at=at[-_FRAMES:],
        )
