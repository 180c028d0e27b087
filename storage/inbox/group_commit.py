"""Group commit: joins requests that arrive within some milliseconds into one batch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

from streaming_moments.errors import StoreError
from streaming_moments.storage.inbox.batches import Submission
from streaming_moments.storage.inbox.idempotency import Claim
from streaming_moments.storage.inbox.inbox import Inbox

WINDOW = 0.05
MOST_BYTES = 32 << 20
_CLAIMING = 8  # number of threads that claim idempotency keys


class InboxClosed(StoreError):
    """The service is stopping and accepts no more documents."""


@dataclass(frozen=True)
class _Waiting:
    submission: Submission
    claim: Future[Claim] | None
    done: Future[str]


class GroupCommit:
    r"""Joins submissions into batches, which a separate thread writes one after the other.

    inbox : inbox for the batches
    window : seconds that the first submission of a batch waits for others
    most_bytes : a batch of this size is written without waiting

    Examples
    --------
    >>> from datetime import date
    >>> from streaming_moments.storage.inbox.batches import Piece
    >>> commits = GroupCommit(Inbox.open("memory://group-commit-example"), window=0.0)
    >>> piece = Piece(date(2026, 11, 23), 1, 15)
    >>> one = Submission("b" + "0" * 32 + "-0", "a" * 64, False, (piece,), b'{"text":"sea"}\n')
    >>> commits.submit(one, 0).result() == one.receipt
    True
    >>> commits.close()
    """

    def __init__(self, inbox: Inbox, window: float = WINDOW, most_bytes: int = MOST_BYTES) -> None:
        self._inbox = inbox
        self._window = window
        self._most_bytes = most_bytes
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._nbytes = 0
        self._held = 0
        self._closed = False
        self._claiming = ThreadPoolExecutor(_CLAIMING, "claiming keys")
        self._thread = threading.Thread(target=self._work, name="writing batches", daemon=True)
        self._thread.start()

    @property
    def held_bytes(self) -> int:
        """Bytes of submissions that are not written yet."""
        return self._held

    def submit(self, submission: Submission, after: int) -> Future[str]:
        """Add a submission to the next batch.

        Once the batch is durable, the future holds the receipt of the submission. If the future
        raises `KeyReused`, or an error of `Inbox.put` or `Inbox.claim`, the submission is not
        acknowledged. `after` is the number of an existing seal; the submission will be in a later
        one. Raises InboxClosed after `close`.
        """
        with self._changed:
            if self._closed:
                raise InboxClosed("the service is stopping; send the documents again in a moment")
            claim = None
            if submission.keyed:
                claim = self._claiming.submit(
                    self._inbox.claim, submission.receipt, submission.digest, after
                )
            one = _Waiting(submission, claim, Future())
            # mark the future as running, so that a client that disconnects cannot cancel the write
            one.done.set_running_or_notify_cancel()
            self._waiting.append(one)
            self._nbytes += len(submission.content)
            self._held += len(submission.content)
            self._changed.notify_all()
        return one.done

    def close(self) -> None:
        """Write pending submissions, and accept no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._claiming.shutdown()

    def _work(self) -> None:
        while group := self._next_group():
            self._write(group)
            with self._changed:
                self._held -= sum(len(one.submission.content) for one in group)

    def _next_group(self) -> Sequence[_Waiting]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            end = monotonic() + self._window
            while not self._closed and self._nbytes < self._most_bytes:
                left = end - monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            group, self._waiting, self._nbytes = self._waiting, [], 0
            return group

    def _write(self, group: Sequence[_Waiting]) -> None:
        try:
            self._inbox.put([one.submission for one in group])
        except Exception as error:
            for one in group:
                one.done.set_exception(error)
            return
        for one in group:
            try:
                if one.claim is not None:
                    one.claim.result().require(one.submission.digest)
            except Exception as error:
                one.done.set_exception(error)
            else:
                one.done.set_result(one.submission.receipt)
