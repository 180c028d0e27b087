"""Children: the process that accumulates beside a server, begun anew when it dies."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from time import monotonic

from streaming_moments.pipelines.service.accumulating.heartbeats import Heard

_FIRST, _LONGEST = 1.0, 60.0  # seconds before it is begun anew
_LOOK = 1.0  # seconds between two looks at one that says nothing
_ENDING = 30.0  # seconds to end a turn; one that is killed is ended by the next


@contextmanager
def kept_running(
    arguments: Sequence[str], tell: Callable[[str], None], heard: Heard, patience: timedelta
) -> Iterator[None]:
    """Run this program with other arguments, again whenever it ends, until the context ends.

    Its standard input is open as long as we live: it ends where that does. On its standard output
    it says that it goes on.

    Parameters
    ----------
    arguments : sequence of str
        Of `streaming-moments`.
    tell : callable
        Told in a line when it ended though it should not.
    heard : Heard
        Told whenever it says something.
    patience : timedelta
        After which one that says nothing is killed.
    """
    command = [sys.executable, "-m", "streaming_moments", *arguments]
    over = threading.Event()

    def begin() -> subprocess.Popen[bytes]:
        heard.beat()
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    running = [begin()]

    def keep() -> None:
        delay = _FIRST
        while not over.is_set():
            begun = monotonic()
            code = _ended(running[0], heard, patience.total_seconds(), tell)
            if over.is_set():
                return
            if monotonic() - begun > _LONGEST:
                delay = _FIRST
            tell(f"what accumulates ended with code {code}; begun anew in {delay:g} s")
            if over.wait(delay):
                return
            delay = min(2 * delay, _LONGEST)
            running[0] = begin()

    thread = threading.Thread(target=keep, name="keeping what accumulates", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        child = running[0]
        if child.stdin is not None:
            with suppress(OSError):
                child.stdin.close()
        try:
            child.wait(_ENDING)
        except subprocess.TimeoutExpired:
            child.kill()
        thread.join(_ENDING)


def _ended(
    child: subprocess.Popen[bytes], heard: Heard, patience: float, tell: Callable[[str], None]
) -> int:
    """Wait until a process ends, or kill it if it says nothing for too long; its exit code."""
    assert child.stdout is not None
    with child.stdout as said:
        while child.poll() is None:
            if select.select([said], [], [], _LOOK)[0]:
                if not os.read(said.fileno(), 1 << 12):
                    break
                heard.beat()
            elif heard.silence() >= patience:
                tell(f"what accumulates has said nothing for {heard.silence():.0f} s; killed")
                child.kill()
    return child.wait()
