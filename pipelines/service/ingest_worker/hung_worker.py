"""A hung worker: who says nothing through its pipe for `hung_after` is killed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from streaming_moments.pipelines.cluster.progress import StepProgress

_LEAST = 0.2  # seconds between two beats


@dataclass
class Heard:
    """When a process was heard last.

    Examples
    --------
    >>> heard = Heard()
    >>> heard.beat()
    >>> heard.silence() < 60
    True
    """

    _last: float = field(default_factory=monotonic)

    def beat(self) -> None:
        """It is heard now."""
        self._last = monotonic()

    def silence(self) -> float:
        """Seconds since."""
        return monotonic() - self._last


def kill_if_hung(
    child: subprocess.Popen[bytes], heard: Heard, patience: float, tell: Callable[[str], None]
) -> None:
    """Kill a process that has said nothing for so many seconds, and tell."""
    silence = heard.silence()
    if silence >= patience:
        tell(f"the counting process has sent no heartbeat for {silence:.0f} s; killed")
        child.kill()


@dataclass
class Beating:
    """Progress that is also written to a pipe, as is every wait.

    `pipe` is the file descriptor of its write end; `shown` gets the progress, too.
    """

    pipe: int
    shown: StepProgress
    _last: float = field(default=0.0)

    def advance(self, step: str, done: int, total: int) -> None:
        """Say that it goes on, and pass it on."""
        self.beat()
        self.shown.advance(step, done, total)

    def beat(self) -> None:
        """Say that it goes on."""
        if monotonic() - self._last < _LEAST:
            return
        self._last = monotonic()
        # who read it is gone: we end by standard input
        with suppress(OSError):
            os.write(self.pipe, b".")
