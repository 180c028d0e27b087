"""Events: what runs on and on tells, a line an event."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from streaming_moments.pipelines.terminal import shown

if TYPE_CHECKING:
    import structlog


def event_logger() -> structlog.stdlib.BoundLogger:
    """A logger of one line an event on standard error, JSON where nobody looks on."""
    import structlog

    rendered: tuple[Any, ...] = (structlog.processors.JSONRenderer(ensure_ascii=False),)
    if sys.stderr.isatty():
        rendered = (_shown_values, structlog.dev.ConsoleRenderer())
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *rendered,
        ],
    )
    return logger


def _shown_values(logger: Any, method: str, event: Any) -> Any:
    """Values as a terminal may show them; JSON escapes them itself."""
    return {
        name: shown(value if isinstance(value, str) else repr(value))
        for name, value in event.items()
    }
