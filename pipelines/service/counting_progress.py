"""Whether sealed documents are being counted, and which shards are set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from streaming_moments.pipelines.service.ingest_worker.counted import counted_up_to
from streaming_moments.pipelines.service.ingest_worker.steps import START, FailingStep
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.set_aside import SetAside, all_set_aside

_COUNTING = (START, "look", "count")  # if one of these steps fails, no document is counted


@dataclass(frozen=True)
class Counting:
    """State of counting at some time.

    lag : number of seals whose documents are not counted yet
    failing : why the accumulator's last cycle failed; None if it did not fail
    set_aside : shards that the store cannot count now
    reached : number of the latest seal up to which all documents are counted
    since : when counting stopped or began to fail, on the clock of this process; None if it works
    """

    lag: int = 0
    failing: str | None = None
    set_aside: tuple[SetAside, ...] = ()
    reached: int = 0
    since: float | None = None

    @property
    def documents_set_aside(self) -> int:
        """Documents in the shards that are set aside."""
        return sum(note.documents for note in self.set_aside)

    def stalled(self) -> float:
        """Return the seconds since counting stopped; 0 while it works."""
        return 0.0 if self.since is None else monotonic() - self.since

    def problem(self, patience: float) -> str | None:
        """Return why no documents are counted, or None.

        Counting may go on for `patience` seconds without result before this is a problem.
        """
        if self.failing is not None:
            return f"no documents are counted, because each cycle fails: {self.failing}"
        if self.stalled() >= patience:
            return (
                f"no documents were counted for more than {patience:.0f} s although some are "
                "pending; check that `streaming-moments accumulate` runs, and read its output"
            )
        return None


def counting_now(
    inbox: Inbox,
    sealed: int,
    steps: Sequence[FailingStep],
    before: Counting,
    unusable: str | None = None,
    overdue: float | None = None,
) -> Counting:
    """Return the current state of counting.

    sealed : number of the latest seal
    steps : failing steps of the accumulator
    before : state of counting at the last check
    unusable : why the inbox cannot be used, if the service has noticed this itself; on a full disk,
        for example, the accumulator cannot record its failures
    overdue : age in seconds of a pending document that should have been sealed and counted by now
    """
    reached = counted_up_to(inbox)
    failing = unusable or next((one.error for one in steps if one.step in _COUNTING), None)
    lag, since = max(0, sealed - reached), None
    if failing is not None or lag:
        went_on = reached > before.reached and failing is None
        since = monotonic() if before.since is None or went_on else before.since
    if overdue is not None:
        since = min(monotonic() - overdue, monotonic() if since is None else since)
    return Counting(lag, failing, all_set_aside(inbox.folder), reached, since)
