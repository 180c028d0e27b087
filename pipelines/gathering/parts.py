"""Parts of shards: what the tasks of an update do on a worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from streaming_moments.errors import BoundExceeded, ShardError
from streaming_moments.statistics.base import Prepared
from streaming_moments.storage.contents import ShardContent, content_of
from streaming_moments.storage.formats import START, Position, ReadLimits
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.manifests import FileRecord
from streaming_moments.storage.segments.blocks import sum_block
from streaming_moments.storage.segments.segments import SegmentWriter
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.readers import ReadRecords, ShardReader, reader_of
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class PartAddress:
    """Where a read task begins: a shard, and the place in it up to which it was read before.

    Parameters
    ----------
    shard : Shard
        The shard.
    start : Position
        After the last batch that was read.
    content : ShardContent, optional
        What its first part found in it; None at the first.
    alone : bool
        Whether nothing else may run beside it: workers died that were reading it among others.
    part_bytes : int
        Prepared batches that may be read from there on; 0 for what all shards begin with.
    """

    shard: Shard
    start: Position = START
    content: ShardContent | None = None
    alone: bool = False
    part_bytes: int = 0

    @property
    def begun(self) -> bool:
        """Whether some of the shard was read before."""
        return self.start != START


@dataclass(frozen=True, eq=False)
class Part:
    """Batches of a shard made ready to be added; stays on the worker that read them.

    Parameters
    ----------
    batches : tuple of Prepared
        In the order of the shard.
    summary : PartSummary
        What the coordinator needs to know.
    """

    batches: tuple[Any, ...]
    summary: PartSummary


@dataclass(frozen=True, eq=False)
class PartSummary:
    """Numbers of a part.

    Parameters
    ----------
    totals : Totals
        Of its records.
    outside : int
        What lies in them that is not counted.
    nbytes : int
        Of its batches.
    rest : PartAddress or None
        Where the shard goes on; None at its end.
    mark : str
        Fingerprint of the shard.
    """

    totals: Any
    outside: int
    nbytes: int
    rest: PartAddress | None
    mark: str


@dataclass(frozen=True, eq=False)
class ReadingContext:
    """All a read task needs beside its shard, loaded once on the cluster."""

    store: MomentStore
    reader: ShardReader
    limits: ReadLimits
    storage_options: Mapping[str, object] | None = field(repr=False)

    @classmethod
    def of(
        cls,
        store: MomentStore,
        limits: ReadLimits,
        storage_options: Mapping[str, object] | None,
    ) -> ReadingContext:
        """The context, made by a task so that it outlives any worker."""
        return cls(store, reader_of(store, limits, storage_options), limits, storage_options)

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadRecords]:
        """Batches of a shard from a position on; errors as `ShardReader.read`."""
        return self.reader.read(shard, start, content)


def read_part(address: PartAddress, context: ReadingContext, part_bytes: int) -> Part:
    """Read a shard from `address` on while its prepared batches fit in `part_bytes`.

    One more batch is taken to need as much as the last one; the first is always read.

    Raises
    ------
    ShardError
        The shard cannot be read, or changed between its parts.
    """
    foundation, shard = context.store.foundation, address.shard
    # hashing may read all of the shard: once is enough, what is read later is held to it
    content = address.content or content_of(shard, context.storage_options)
    batches: list[Prepared] = []
    totals: Any = foundation.totals({})
    outside, nbytes = 0, 0
    rest, seen, after = None, 0, address.start
    for read in context.read(shard, address.start, content):
        if batches and nbytes + batches[-1].nbytes > part_bytes:
            # what cannot be read from its middle is read from its beginning each time: so ever
            # larger parts
            wanted = part_bytes if after.offset else 2 * part_bytes
            rest = PartAddress(shard, after, content, address.alone, wanted)
            break
        try:
            prepared = foundation.prepared(read.batch)
        except BoundExceeded as error:
            raise ShardError(shard.url, f"from document {seen} on: {error}") from error
        seen, after = seen + prepared.totals.n_documents, read.after
        batches.append(prepared)
        nbytes += prepared.nbytes
        totals = totals + prepared.totals
        outside += read.outside
    return Part(tuple(batches), PartSummary(totals, outside, nbytes, rest, content.mark))


def summary_of(part: Part) -> PartSummary:
    """Numbers of a part, for the coordinator."""
    return part.summary


def write_block(
    index: int,
    writer: SegmentWriter,
    parts: Sequence[Part],
    earlier: Sequence[SegmentReference] = (),
) -> tuple[FileRecord, ...]:
    """Add up one row block over all parts and write it to the segment.

    `earlier` are segments of parts of the same shards that were added up before.
    """
    layout = writer.layout
    batches = chain.from_iterable(part.batches for part in parts)
    statistics = layout.foundation.of(batches, layout.block(index))
    if earlier:
        statistics = statistics + sum_block(writer.folder, earlier, layout, index)
    return writer.write_block(statistics)
