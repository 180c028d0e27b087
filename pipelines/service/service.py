"""The service: state that its calls share while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_bytes

from anyio import CapacityLimiter

from streaming_moments.pipelines.service.config import ServiceConfig
from streaming_moments.pipelines.service.gauges import Gauges
from streaming_moments.pipelines.service.limits import BODIES, Budget
from streaming_moments.pipelines.service.page_cache import PageCache
from streaming_moments.pipelines.service.state_view import Current, View
from streaming_moments.pipelines.service.tracking import Tracker
from streaming_moments.storage.inbox.deletions import Deletions
from streaming_moments.storage.inbox.group_commit import GroupCommit

_READERS = 8  # at most this many threads read sent documents at once


@dataclass(frozen=True)
class Service:
    """State that all calls of a service share. Make one with `of`, and end it with `close`.

    commits : writes documents to the inbox
    tracker : looks receipts up
    gauges : counts calls
    budget : bounds the bytes of request bodies in memory
    now : current time, in UTC
    secret : bytes that only this process knows
    pages : cache of parts of pages that are slow to make
    taking : limits how many threads read sent documents
    silence : returns the seconds since the last heartbeat of the accumulator of this process
    """

    config: ServiceConfig
    current: Current
    commits: GroupCommit
    tracker: Tracker
    gauges: Gauges
    budget: Budget
    now: Callable[[], datetime]
    secret: bytes = field(default_factory=lambda: token_bytes(32), repr=False)
    pages: PageCache = field(default_factory=PageCache)
    taking: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_READERS))
    silence: Callable[[], float] | None = None

    @classmethod
    def of(
        cls, config: ServiceConfig, now: Callable[[], datetime], tell: Callable[[str], None]
    ) -> Service:
        """Make the service of an existing store; raises what `Current` raises."""
        pages = PageCache()
        current = Current(config, tell, pages.clear)
        commits = GroupCommit(current.inbox, config.window.total_seconds())
        budget = Budget(BODIES * config.limits.body)
        tracker, gauges = Tracker(current.seals), Gauges.new()
        return cls(config, current, commits, tracker, gauges, budget, now, pages=pages)

    @property
    def deletions(self) -> Deletions:
        """Requested deletions."""
        return Deletions(self.current.seals)

    @property
    def view(self) -> View:
        """Current view."""
        return self.current.view

    def close(self) -> None:
        """Write documents that wait to be written to the inbox, and stop the threads."""
        self.commits.close()
        self.current.stop()
