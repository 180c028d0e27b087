"""The journal of a night: its steps so far, and the lock that says that it is alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.cluster.progress import StepProgress
from streaming_moments.pipelines.reports.page import StepReport
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.store.store import MomentStore

_BEATS = 4  # renewals in the time of the lock


@dataclass
class Journal:
    """The steps of a run, as they are done.

    lock : held by the run; each step begins by renewing it
    tell : called with each step when it is done
    steps : those done so far
    """

    lock: Lock
    tell: Callable[[StepReport], None]
    steps: list[StepReport] = field(default_factory=list)
    _renewed: float = field(default_factory=time.monotonic)
    _renewing: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Renew the lock from a thread beside what has no steps, for as long as that lasts.

        So its expiry may be short, and one who waits for a run that died waits as long.
        """
        over = threading.Event()

        def keep() -> None:
            while not over.wait(self.lock.expiry.total_seconds() / _BEATS / 2):
                # tried again; whoever works is told at its next commit, or as it lets the lock go
                with suppress(StoreError):
                    self.beat()

        thread = threading.Thread(target=keep, name="keeping the lock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @contextmanager
    def step(self, name: str) -> Iterator[dict[str, Any]]:
        """Run a step, and yield the dictionary of values it reports; a failed step is not listed.

        LockHeld if another run has taken this one for dead.
        """
        self._renew()
        found: dict[str, Any] = {}
        begun = time.monotonic()
        yield found
        done = StepReport(name, round(time.monotonic() - begun, 3), found)
        self.steps.append(done)
        self.tell(done)

    def beat(self) -> None:
        """Say in the middle of a step that the run is alive; errors as `step`."""
        with self._renewing:
            if time.monotonic() - self._renewed > self.lock.expiry.total_seconds() / _BEATS:
                self._renew()

    def fenced(self, store: MomentStore) -> MomentStore:
        """The store as it is opened, to be written under the lock; errors as `step`."""
        with self._renewing:
            if store.commit.fence >= self.lock.fence:
                # the notes of the lock under which it was written are gone
                self.lock = self.lock.above(store.commit.fence)
            return replace(store, fence=self.lock.fence)

    def _renew(self) -> None:
        with self._renewing:
            self.lock = self.lock.renewed()
            self._renewed = time.monotonic()


@dataclass(frozen=True)
class Heartbeat:
    """Progress that renews the lock of a run with every shard and row block.

    `shown` gets the progress, too.
    """

    journal: Journal
    shown: StepProgress

    def advance(self, step: str, done: int, total: int) -> None:
        """Renew the lock if a part of its time is over, and pass it on."""
        self.journal.beat()
        self.shown.advance(step, done, total)
