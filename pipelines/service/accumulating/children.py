"""Children: the process that accumulates beside a server, begun anew when it dies."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic

_FIRST, _LONGEST = 1.0, 60.0  # seconds before it is begun anew
_ENDING = 30.0  # seconds to end a turn; one that is killed is ended by the next


@contextmanager
def kept_running(arguments: Sequence[str], tell: Callable[[str], None]) -> Iterator[None]:
    """Run this program with other arguments, again whenever it ends, until the context ends.

    Its standard input is open as long as we live: it ends where that does.

    Parameters
    ----------
    arguments : sequence of str
        Of `streaming-moments`.
    tell : callable
        Told in a line when it ended though it should not.
    """
    command = [sys.executable, "-m", "streaming_moments", *arguments]
    over = threading.Event()
    first = subprocess.Popen(command, stdin=subprocess.PIPE)
    running = [first]

    def keep() -> None:
        delay = _FIRST
        while not over.is_set():
            begun = monotonic()
            code = running[0].wait()
            if over.is_set():
                return
            if monotonic() - begun > _LONGEST:
                delay = _FIRST
            tell(f"what accumulates ended with code {code}; begun anew in {delay:g} s")
            if over.wait(delay):
                return
            delay = min(2 * delay, _LONGEST)
            running[0] = subprocess.Popen(command, stdin=subprocess.PIPE)

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
