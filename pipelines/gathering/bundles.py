"""Bundles: the shards that one task counts, and the receipt that it gives for them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streaming_moments.errors import ShardError
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.shards import Shard

# What one thread reads in a few seconds: a task costs the scheduler one or two milliseconds.
_TASK_BYTES = 32 << 20
_LEAST_TASKS = 4  # a thread has, where there are so many shards
_MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Bundle:
    """Shards that one task counts, in order and all of the same days.

    alone : whether no other task may run beside it, as workers died while they read it among others
    taken : what the task subtracts instead, of the one shard of the bundle
    """

    shards: tuple[Shard, ...]
    alone: bool = False
    taken: Spoilt | None = None

    def halves(self) -> tuple[Bundle, ...]:
        """Two bundles of the same shards, each to be read alone."""
        middle = len(self.shards) // 2
        parts = (self.shards[:middle], self.shards[middle:])
        return tuple(replace(self, shards=part, alone=True) for part in parts if part)

    def without(self, urls: Collection[str]) -> Bundle:
        """The bundle but for some shards."""
        return replace(self, shards=tuple(part for part in self.shards if part.url not in urls))


@dataclass(frozen=True)
class Counted:
    """A shard that was counted to its end.

    `mark` is its fingerprint. `documents` and `tokens` are the records and what was counted in
    them; `outside` is what lies outside the vocabulary.
    """

    url: str
    mark: str
    documents: int
    tokens: int
    outside: int


@dataclass(frozen=True)
class Spoilt:
    """A shard that cannot be counted, and the part of it that the sums hold nonetheless.

    error : may name a file of the shard, or the URL where that is read
    batches : batches of its beginning that were added; None for all of them
    mark : fingerprint of the content they were read from
    numbers : records of these batches, and what was counted in them
    """

    url: str
    error: ShardError
    batches: int | None
    mark: str
    numbers: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Receipt:
    """What one task has added to the sums of its process.

    nonce : of the sums; the receipt is void once they are gone
    counted : a row for each shard
    spoilt : shards that cannot be counted
    totals : of all records that the task added
    """

    nonce: str
    counted: tuple[Counted, ...]
    spoilt: tuple[Spoilt, ...]
    totals: Any

    def __sizeof__(self) -> int:
        tables = sum(table.nbytes for table in self.totals.tables().values())
        texts = sum(400 + sys.getsizeof(row.url) for row in self.counted)
        return int(tables) + texts + 1000 * (1 + len(self.spoilt))


def bundled(
    shards: Sequence[Shard], dates: Mapping[str, DateRange], threads: int, most: int = _MOST_SHARDS
) -> Iterator[Bundle]:
    """Group shards into tasks, neighbours of the same days together.

    shards : in the order in which they are to be read
    dates : days of the documents of a shard by its URL, where they are known
    threads : of the cluster; each thread gets several tasks if there are enough shards
    most : shards of a task

    Examples
    --------
    >>> from streaming_moments.storage.shards import Shard
    >>> small = [Shard(f"s3://corpus/{number}.txt", 1000) for number in range(64)]
    >>> [len(bundle.shards) for bundle in bundled(small, {}, threads=2)]
    [8, 8, 8, 8, 8, 8, 8, 8]
    """
    total = sum(shard.size for shard in shards)
    wanted = min(_TASK_BYTES, total // (_LEAST_TASKS * threads))
    most = min(most, _MOST_SHARDS, max(1, len(shards) // (_LEAST_TASKS * threads)))
    held: list[Shard] = []
    size = 0
    for shard in shards:
        full = len(held) >= most or size + shard.size > wanted
        if held and (full or dates.get(shard.url) != dates.get(held[0].url)):
            yield Bundle(tuple(held))
            held, size = [], 0
        held.append(shard)
        size += shard.size
    if held:
        yield Bundle(tuple(held))
