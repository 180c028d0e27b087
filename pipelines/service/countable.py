"""Countable: a long document is judged by what will count it, before it is acknowledged.

One that cannot be counted spoils its shard, and with it what others sent in the same seconds.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cached_property

import fsspec

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.storage.formats import DEFAULT_LIMITS
from streaming_moments.storage.shards import Shard
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
        files, path = fsspec.filesystem("memory"), f"/judged/{uuid.uuid4().hex}.jsonl"
        files.pipe_file(path, line)
        try:
            for _ in self._context.prepared(Shard(f"memory://{path}", len(line))):
                pass
        except ShardError as error:
            return error.reason
        finally:
            files.rm_file(path)
        return None

    @cached_property
    def _context(self) -> ReadingContext:
        return ReadingContext.of(self.store, DEFAULT_LIMITS, None)
