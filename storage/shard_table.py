"""Shard table: shards in columns, so that a million shards can be listed and compared quickly."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming_moments.storage.files.urls import is_utf8
from streaming_moments.storage.shards import Shard

_SCHEMA = pa.schema(
    [
        ("url", pa.string()),
        ("size", pa.int64()),
        ("etag", pa.string()),
        # The URL or path from which the shard is read; null if it is the same as `url`. The type is
        # binary, because names on a local disk may not be UTF-8.
        ("read_at", pa.binary()),
    ]
)
_CHUNK = 1 << 14  # number of shards that are converted to objects at a time


@dataclass(frozen=True, eq=False, repr=False)
class ShardTable(Sequence[Shard]):
    """Shards in the columns of an Arrow table. Iterating or indexing makes `Shard` objects.

    Make a table with `of`. The columns are those of `Shard`: `url` (string), `size` (int64, bytes),
    `etag` (string or null) and `read_at` (binary or null).

    Examples
    --------
    >>> table = ShardTable.of([Shard("s3://corpus/a.txt", 4, "d41d"), Shard("/corpus/b.txt", 5)])
    >>> len(table), table[1], table.nbytes < 150
    (2, Shard(url='/corpus/b.txt', size=5, etag=None), True)
    """

    columns: pa.Table

    @classmethod
    def of(cls, shards: Iterable[Shard]) -> ShardTable:
        """Make a table of shards without holding all of them as objects."""
        if isinstance(shards, ShardTable):
            return shards
        batches, rows = [], list[Shard]()
        for shard in shards:
            rows.append(shard)
            if len(rows) == _CHUNK:
                batches.append(_batch_of(rows))
                rows.clear()
        return cls(pa.Table.from_batches([*batches, _batch_of(rows)]))

    @classmethod
    def joined(cls, tables: Iterable[ShardTable]) -> ShardTable:
        """Join several tables by URL, each shard once; a later shard replaces an earlier one."""
        columns = pa.concat_tables([_SCHEMA.empty_table(), *(one.columns for one in tables)])
        columns = columns.combine_chunks()
        names = _sources(columns)
        # a stable sort: of equal names, the one from the last table comes last
        order = pc.sort_indices(names)
        names = names.take(order)
        last = np.ones(len(names), dtype=bool)
        if len(names):
            last[:-1] = pc.not_equal(names[:-1], names[1:]).to_numpy()
        del names
        return cls(columns.take(order.filter(pa.array(last))))

    @property
    def urls(self) -> pa.ChunkedArray:
        """Names of the shards, as strings."""
        return self.columns["url"]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(shards,) stored sizes in bytes."""
        sizes: NDArray[np.int64] = self.columns["size"].to_numpy()
        return sizes

    @property
    def marks(self) -> pa.ChunkedArray:
        """Fingerprints of the shards whose ETag the storage gave; null for other shards."""
        marks = pc.binary_join_element_wise("etag:", self.columns["etag"], "")
        return pc.if_else(pc.ends_with(self.urls, "/"), pa.scalar(None, pa.string()), marks)

    @property
    def nbytes(self) -> int:
        """Size of the columns in bytes."""
        return int(self.columns.nbytes)

    def take(self, places: NDArray[np.int64]) -> ShardTable:
        """Return the shards with these indices."""
        return ShardTable(self.columns.take(pa.array(places)))

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    @overload
    def __getitem__(self, place: int) -> Shard: ...
    @overload
    def __getitem__(self, place: slice) -> ShardTable: ...
    def __getitem__(self, place: int | slice) -> Shard | ShardTable:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step == 1:
                return ShardTable(self.columns.slice(start, max(0, stop - start)))
            return self.take(np.arange(start, stop, step))
        index = operator.index(place)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} shards")
        return next(iter(ShardTable(self.columns.slice(index % len(self), 1))))

    def __iter__(self) -> Iterator[Shard]:
        for batch in self.columns.to_batches(_CHUNK):
            for url, size, etag, read_at in zip(*map(pa.Array.to_pylist, batch), strict=True):
                yield Shard(url, size, etag, _text(read_at))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[object, ...]:
        # pickle the rows, because Arrow would pickle the whole table if this is a slice of it
        return ShardTable.of, (list(self),)


def _batch_of(shards: Sequence[Shard]) -> pa.RecordBatch:
    sources = [
        one.read_at.encode(errors="surrogatepass") if one.read_at else None for one in shards
    ]
    columns = ([one.url for one in shards], [one.size for one in shards])
    rows = (*columns, [one.etag for one in shards], sources)
    return pa.record_batch([pa.array(*c) for c in zip(rows, _SCHEMA.types, strict=True)], _SCHEMA)


def _sources(columns: pa.Table) -> pa.ChunkedArray:
    """Return a unique name of each shard: its URL, and the raw bytes of its name if not UTF-8.

    The URL alone is not unique: the escaped form of a name that is not UTF-8 may be the name of
    another shard.
    """
    urls, read_at = columns["url"], columns["read_at"]
    places = np.flatnonzero(read_at.is_valid().to_numpy())
    foreign = [place for place in places if not is_utf8(_text(read_at[place].as_py()))]
    if not foreign:
        return urls
    mask = np.zeros(len(urls), dtype=bool)
    mask[foreign] = True
    names = [urls[place].as_py().encode() + b"\xff" + read_at[place].as_py() for place in foreign]
    binary = urls.cast(pa.binary())
    return pc.replace_with_mask(binary, pa.array(mask), pa.array(names, pa.binary()))


def _text(read_at: bytes | None) -> str:
    return "" if read_at is None else read_at.decode(errors="surrogatepass")
