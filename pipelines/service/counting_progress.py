"""Whether what is sealed is being counted, and which shards are set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from streaming_moments.pipelines.service.accumulating.counted import counted_up_to
from streaming_moments.pipelines.service.accumulating.steps import FailingStep
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.set_aside import SetAside, all_set_aside

_COUNTING = ("look", "count")  # steps without which no document is counted


@dataclass(frozen=True)
class Counting:
    """What is known of counting at a time.

    Parameters
    ----------
    lag : int
        Seals that are not counted.
    failing : str or None
        Why the last turn of the accumulator failed; None where it did not.
    set_aside : tuple of SetAside
        Shards that cannot be counted as the store is.
    reached : int
        Number of a seal up to which all are counted.
    since : float or None
        On the clock of this process: since when seals wait and no more are counted, or turns fail.
    """

    lag: int = 0
    failing: str | None = None
    set_aside: tuple[SetAside, ...] = ()
    reached: int = 0
    since: float | None = None

    @property
    def documents_set_aside(self) -> int:
        """Documents that were sealed in the shards that are set aside."""
        return sum(note.documents for note in self.set_aside)

    def stalled(self) -> float:
        """Seconds since counting goes on no more; 0 where it does."""
        return 0.0 if self.since is None else monotonic() - self.since

    def problem(self, patience: float) -> str | None:
        """What keeps documents from being counted; None where nothing does.

        Parameters
        ----------
        patience : float
            Seconds that a count of what is sealed may take.
        """
        if self.failing is not None:
            return f"no documents are counted, each turn fails: {self.failing}"
        if self.stalled() >= patience:
            return (
                f"no documents were counted for more than {patience:.0f} s though some are sealed; "
                "look whether `streaming-moments accumulate` runs, and at its output"
            )
        return None


def counting_now(
    inbox: Inbox, sealed: int, steps: Sequence[FailingStep], before: Counting
) -> Counting:
    """What is known of counting now.

    Parameters
    ----------
    inbox : Inbox
        Of the service.
    sealed : int
        Number of the latest seal.
    steps : sequence of FailingStep
        Of the accumulator.
    before : Counting
        What was known when it was looked at last.

    Raises
    ------
    StoreError
        The inbox cannot be read, or a note is damaged.
    """
    reached = counted_up_to(inbox)
    failing = next((one.error for one in steps if one.step in _COUNTING), None)
    lag, since = max(0, sealed - reached), None
    if failing is not None or lag:
        went_on = reached > before.reached and failing is None
        since = monotonic() if before.since is None or went_on else before.since
    return Counting(lag, failing, all_set_aside(inbox.folder), reached, since)
