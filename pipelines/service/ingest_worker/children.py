"""Run an accumulator as a child process: kill it when it hangs, and restart it when it dies."""

from __future__ import annotations

import math
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic, sleep

from streaming_moments.pipelines.service.ingest_worker.hung_worker import Heard, kill_if_hung

_FIRST, _LONGEST = 1.0, 60.0  # shortest and longest wait before a restart, in seconds
_LOOK = 0.5  # seconds between two checks whether a child has ended or sent a heartbeat
# When the service ends, the child process has this many seconds to finish its cycle. Then it is
# killed, and a later accumulator finishes the cycle.
_ENDING = 30.0


@contextmanager
def kept_running(
    arguments: Sequence[str], tell: Callable[[str], None], heard: Heard, patience: timedelta
) -> Iterator[None]:
    """Run this program as a child until the block ends, and restart the child whenever it ends.

    The standard input of the child stays open as long as this process lives; when it closes, the
    child ends. The child writes heartbeats to its standard output, and `heard` records them. A
    child that sends no heartbeat for `patience` is killed. `tell` gets a line whenever a child ends
    unexpectedly.
    """
    over = threading.Event()
    watch = _Watch(tuple(arguments), tell, heard, patience.total_seconds(), over.is_set, _ENDING)
    child = watch.begin()
    thread = threading.Thread(
        target=watch.keep,
        args=(child, lambda code: True),
        name="keeping the counting process running",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(2 * _ENDING)


def watched(
    arguments: Sequence[str],
    tell: Callable[[str], None],
    heard: Heard,
    patience: timedelta,
    over: Callable[[], bool],
) -> int:
    """Run this program as a child until it ends by itself or `over` is True; return its exit code.

    A child without a heartbeat for too long is killed. A killed child is always restarted. A
    negative exit code is the number of a signal, as in `subprocess`. When `over` returns True, the
    child gets a signal to end, and completes its cycle. Other arguments as in `kept_running`.
    """
    watch = _Watch(tuple(arguments), tell, heard, patience.total_seconds(), over, math.inf)
    return watch.keep(watch.begin(), lambda code: code < 0)


@dataclass(frozen=True)
class _Watch:
    arguments: tuple[str, ...]
    tell: Callable[[str], None]
    heard: Heard
    patience: float
    over: Callable[[], bool]
    ending: float

    def begin(self) -> subprocess.Popen[bytes]:
        self.heard.begin()
        command = [sys.executable, "-m", "streaming_moments", *self.arguments]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def keep(self, child: subprocess.Popen[bytes], anew: Callable[[int], bool]) -> int:
        """Restart a child that ends, until `over` is True or `anew` is False for its exit code.

        Returns the last exit code.
        """
        delay = _FIRST
        while True:
            begun = monotonic()
            code = self._ended(child)
            if self.over() or not anew(code):
                return code
            if monotonic() - begun > _LONGEST:
                delay = _FIRST
            told, another = f"the counting process ended with exit code {code}", None
            while another is None:
                self.tell(f"{told}; restarting it in {delay:g} s")
                until = monotonic() + delay
                while (left := until - monotonic()) > 0:
                    if self.over():
                        return code
                    sleep(min(left, _LOOK))
                delay = min(2 * delay, _LONGEST)
                try:
                    another = self.begin()
                # there is too little memory, or there are too many processes; try again a little
                # later
                except OSError as error:
                    told = f"the counting process cannot be started ({error})"
            child = another

    def _ended(self, child: subprocess.Popen[bytes]) -> int:
        """Wait until the child ends, or kill it if it sends no heartbeat; return its exit code."""
        assert child.stdout is not None
        assert child.stdin is not None
        until = math.inf
        with child.stdout as said, child.stdin as lifeline:
            while child.poll() is None:
                if self.over() and not lifeline.closed:
                    until = monotonic() + self.ending
                    lifeline.close()
                    # also send a signal, because the child may not read its standard input yet
                    child.terminate()
                if select.select([said], [], [], _LOOK)[0]:
                    if not os.read(said.fileno(), 1 << 12):
                        break
                    self.heard.beat()
                else:
                    kill_if_hung(child, self.heard, self.patience, self.tell)
                if monotonic() >= until:
                    child.kill()
        return child.wait()
