"""Bundles of shards that one task counts, and the receipt that the task returns."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streaming_moments.errors import ShardError
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.shards import Shard

# Most bytes of shards for one task. A thread needs a few seconds to read them, so the one or two
# milliseconds that the scheduler spends on a task do not matter.
_TASK_BYTES = 32 << 20
_LEAST_TASKS = 4  # make at least this many tasks for each thread, if there are enough shards
_MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Bundle:
    """Shards that one task counts in order; their documents have the same days.

    alone : run no other task at the same time, because workers died while they read these shards
    taken : if set, the bundle has one shard, and the task subtracts this part of it
    """

    shards: tuple[Shard, ...]
    alone: bool = False
    taken: Spoilt | None = None

    def halves(self) -> tuple[Bundle, ...]:
        """Split the bundle into two bundles that are both marked `alone`."""
        middle = len(self.shards) // 2
        parts = (self.shards[:middle], self.shards[middle:])
        return tuple(replace(self, shards=part, alone=True) for part in parts if part)

    def without(self, urls: Collection[str]) -> Bundle:
        """Return the bundle without the shards that have these URLs."""
        return replace(self, shards=tuple(part for part in self.shards if part.url not in urls))


@dataclass(frozen=True)
class Counted:
    """Shard that was counted completely.

    `mark` is its fingerprint. `documents` and `tokens` are the numbers of its records and of its
    counted tokens. `outside` is the number of its tokens outside the vocabulary.
    """

    url: str
    mark: str
    documents: int
    tokens: int
    outside: int


@dataclass(frozen=True)
class Spoilt:
    """Shard that cannot be counted, and the part of it that was already added to the sums.

    error : why it cannot be counted; names the shard, a file of it, or the URL that was read
    batches : number of its first batches that were added; None for all
    mark : fingerprint of the content of these batches
    numbers : number of records and number of tokens in these batches
    """

    url: str
    error: ShardError
    batches: int | None
    mark: str
    numbers: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Receipt:
    """Receipt of what one task has added to the sums of its process.

    nonce : identifies the sums; the receipt is void once they are deleted
    counted : a row for each shard
    spoilt : shards that could not be counted
    totals : totals of all records that the task added
    seconds : time of the tokeniser, and time of all reading including the tokeniser
    """

    nonce: str
    counted: tuple[Counted, ...]
    spoilt: tuple[Spoilt, ...]
    totals: Any
    seconds: tuple[float, float] = (0.0, 0.0)

    def __sizeof__(self) -> int:
        tables = sum(table.nbytes for table in self.totals.tables().values())
        texts = sum(400 + sys.getsizeof(row.url) for row in self.counted)
        return int(tables) + texts + 1000 * (1 + len(self.spoilt))


def bundled(
    shards: Sequence[Shard], dates: Mapping[str, DateRange], threads: int, most: int = _MOST_SHARDS
) -> Iterator[Bundle]:
    """Group shards into tasks; neighbouring shards of the same days share a task.

    shards : shards in reading order
    dates : known days of the documents of a shard, by its URL
    threads : threads of the cluster; each gets several tasks if there are enough shards
    most : largest number of shards of a task

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
