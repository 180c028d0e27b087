"""The journal of a nightly run: its finished steps, and the lock that shows that it is alive."""

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

_BEATS = 4  # the lock is renewed this many times before it would expire


@dataclass
class Journal:
    """Finished steps of a run, and its lock.

    lock : lock of the run; each step renews it before it begins
    tell : function that is called with each finished step
    steps : finished steps
    """

    lock: Lock
    tell: Callable[[StepReport], None]
    steps: list[StepReport] = field(default_factory=list)
    _renewed: float = field(default_factory=time.monotonic)
    _renewing: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let a thread renew the lock during work that has no steps.

        Because the thread renews the lock often, its expiry can be short. So other runs need not
        wait long if this run dies.
        """
        over = threading.Event()

        def keep() -> None:
            while not over.wait(self.lock.expiry.total_seconds() / _BEATS / 2):
                # Ignore errors, because this loop soon tries again. The run notices a lost lock at
                # its next commit, or when it releases the lock.
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
        """Run a step; yield a dictionary, to which the step adds the values that it reports.

        A failed step is not added to `steps`. Raises LockHeld if another run considered this one
        dead and took over.
        """
        self._renew()
        found: dict[str, Any] = {}
        begun = time.monotonic()
        yield found
        done = StepReport(name, round(time.monotonic() - begun, 3), found)
        self.steps.append(done)
        self.tell(done)

    def beat(self) -> None:
        """Show in the middle of a step that the run is alive; errors as in `step`."""
        with self._renewing:
            if time.monotonic() - self._renewed > self.lock.expiry.total_seconds() / _BEATS:
                self._renew()

    def fenced(self, store: MomentStore) -> MomentStore:
        """Open the store for writing under the lock; errors as in `step`."""
        with self._renewing:
            if store.commit.fence >= self.lock.fence:
                # Raise the fence, a number of the lock, above the fence of the latest commit. It is
                # too low only if the files of earlier locks were deleted.
                self.lock = self.lock.above(store.commit.fence)
            return replace(store, fence=self.lock.fence)

    def _renew(self) -> None:
        with self._renewing:
            self.lock = self.lock.renewed()
            self._renewed = time.monotonic()


@dataclass(frozen=True)
class Heartbeat:
    """Progress that renews the lock of a run after finished shards and row blocks.

    It passes the progress on to `shown`.
    """

    journal: Journal
    shown: StepProgress

    def advance(self, step: str, done: int, total: int) -> None:
        """Renew the lock if the last renewal is some time ago, and pass the progress on."""
        self.journal.beat()
        self.shown.advance(step, done, total)
