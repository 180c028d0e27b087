"""Detect a process that hangs: it is killed after `hung_after` without a heartbeat."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from streaming_moments.pipelines.cluster.progress import StepProgress

_LEAST = 0.2  # least number of seconds between two heartbeats


@dataclass
class Heard:
    """Time of the last heartbeat of a child process, or of an earlier child that it replaces.

    Examples
    --------
    >>> heard = Heard()
    >>> heard.beat()
    >>> heard.silence() < 60
    True
    """

    _last: float = field(default_factory=monotonic)
    _begun: float = field(default_factory=monotonic)

    def beat(self) -> None:
        """Record a heartbeat now."""
        self._last = monotonic()

    def begin(self) -> None:
        """Record that a new child process starts now; its start does not count as a heartbeat."""
        self._begun = monotonic()

    def silence(self) -> float:
        """Return the seconds since the last heartbeat, even if an earlier child sent it."""
        return monotonic() - self._last

    def silence_of_process(self) -> float:
        """Return the seconds since the present child started or last sent a heartbeat."""
        return min(self.silence(), monotonic() - self._begun)


def kill_if_hung(
    child: subprocess.Popen[bytes], heard: Heard, patience: float, tell: Callable[[str], None]
) -> None:
    """Kill a process that has sent no heartbeat for `patience` seconds, and report it."""
    silence = heard.silence_of_process()
    if silence >= patience:
        tell(f"the counting process has sent no heartbeat for {silence:.0f} s; killed")
        child.kill()


@dataclass
class Beating:
    """Progress that also writes heartbeats to a pipe.

    `pipe` is the file descriptor of the write end of the pipe. `shown` also gets the progress.
    """

    pipe: int
    shown: StepProgress
    _last: float = field(default=0.0)

    def advance(self, step: str, done: int, total: int) -> None:
        """Send a heartbeat, and pass the progress on to `shown`."""
        self.beat()
        self.shown.advance(step, done, total)

    def beat(self) -> None:
        """Send a heartbeat."""
        if monotonic() - self._last < _LEAST:
            return
        self._last = monotonic()
        # An error means that the parent process, which reads the pipe, has ended. It is ignored,
        # because this process ends soon, too: its standard input closes.
        with suppress(OSError):
            os.write(self.pipe, b".")
