"""Check whether a large document can be counted, before the service accepts it.

A document that cannot be counted makes its whole shard bad, with all documents that other users
sent in the same seconds. A document with huge counts could bring a sum of the store so near to the
largest integer that the store has no room for other documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.statistics.counts.lengths.room import LARGEST_TOTAL
from streaming_moments.storage.formats import DEFAULT_LIMITS
from streaming_moments.storage.inbox.records import LIGHT
from streaming_moments.storage.shards import as_shard
from streaming_moments.storage.store.store import MomentStore

# A document may add at most 2^62 / 16,384 to a sum of the store, so that the sums of 16,384
# documents never exceed 2^62.
DOCUMENTS_OF_ROOM = 1 << 14
_MOST = LARGEST_TOTAL // DOCUMENTS_OF_ROOM


@dataclass(frozen=True)
class Countable:
    """Checks whether a store can count a document, which is given as one line of JSON."""

    store: MomentStore

    def why_not(self, line: bytes) -> str | None:
        """Return why the document of a line cannot be counted; None if it can."""
        try:
            bound = self.bound(line)
        except ShardError as error:
            return error.reason
        if bound < _MOST:
            return None
        return (
            f"it could add {bound:.3g} to a sum, above {_MOST:.3g}, one part in "
            f"{DOCUMENTS_OF_ROOM:,} of the largest sum (2^62); send it as several documents, or "
            "create the store with --passage-words to count passages"
        )

    def bound(self, line: bytes) -> float:
        """Return a number that is at least what the document adds to any sum of the store.

        Raises ShardError if the line cannot be counted.
        """
        with as_shard(line) as shard:
            return float(sum(one.bound for one, _ in self._context.prepared(shard)))

    @cached_property
    def light(self) -> int:
        """A document with at most this many bytes and tokens needs no check of its size."""
        return int(self.store.foundation.tokens_below(_MOST, LIGHT))

    @cached_property
    def _context(self) -> ReadingContext:
        return ReadingContext.of(self.store, DEFAULT_LIMITS, None)
