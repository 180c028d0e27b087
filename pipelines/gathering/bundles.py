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
    """Shards that one task counts.

    Parameters
    ----------
    shards : tuple of Shard
        In their order, all of the same days.
    alone : bool
        Whether nothing else may run beside it: workers died that were reading it among others.
    taken : Spoilt, optional
        What the task is to take away instead, of the one shard there is.
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

    Parameters
    ----------
    url, mark : str
        Of the shard, and its fingerprint.
    documents, tokens, outside : int
        Records, what was counted in them, and what lies outside.
    """

    url: str
    mark: str
    documents: int
    tokens: int
    outside: int


@dataclass(frozen=True)
class Spoilt:
    """A shard that is not to be counted, and what the sums hold of it nonetheless.

    Parameters
    ----------
    url : str
        Of the shard.
    error : ShardError
        Why; it may name a file of the shard, or where that is read.
    batches : int or None
        Batches of its beginning that were added; None: all there are.
    mark : str
        Of what these were read from.
    numbers : tuple of (int, int)
        Records of them, and what was counted in these.
    """

    url: str
    error: ShardError
    batches: int | None
    mark: str
    numbers: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Receipt:
    """What one task has added to the sums of its process.

    Parameters
    ----------
    nonce : str
        Of the sums; where they are gone the receipt is void.
    counted : tuple of Counted
        A row for each shard.
    spoilt : tuple of Spoilt
        Shards that cannot be counted.
    totals : Totals
        Of all records that the sums hold by it.
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
    """Shards by the task, neighbours of the same days together.

    Parameters
    ----------
    shards : sequence of Shard
        In the order in which they are to be read.
    dates : mapping
        Days of the documents of a shard by its URL, where they are known.
    threads : int
        Of the cluster: each is given several tasks where there are so many shards.
    most : int
        Shards of a task.

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
