"""Countable: a long document is judged by what will count it, before it is acknowledged.

One that cannot be counted spoils its shard, and with it what others sent in the same seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.pipelines.service.lines import as_shard
from streaming_moments.storage.formats import DEFAULT_LIMITS
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class Countable:
    """Judges lines of a store's documents.

    Parameters
    ----------
    store : MomentStore
        That will count them.
    """

    store: MomentStore

    def why_not(self, line: bytes) -> str | None:
        """What keeps a line from being counted; None where nothing does."""
        try:
            with as_shard(line) as shard:
                for _ in self._context.prepared(shard):
                    pass
        except ShardError as error:
            return error.reason
        return None

    @cached_property
    def _context(self) -> ReadingContext:
        return ReadingContext.of(self.store, DEFAULT_LIMITS, None)
