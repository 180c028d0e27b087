"""Read edges between named nodes: batches of the distinct edges of a shard, and samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded, ShardError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.ends import EdgeBatch, edge_keys, ends_of
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.columns import Values, values_of, words_of
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.counting.reading import ReadBatch, steadily
from streaming_moments.storage.documents import read_tables
from streaming_moments.storage.formats import DEFAULT_LIMITS, START, Position, ReadLimits
from streaming_moments.storage.lazy_libraries import pa, pc
from streaming_moments.storage.shards import Shard, ShardFormat

# A batch of edges may have this many times as many records as a batch of documents, because an edge
# is only two names.
_ROWS = 8
# To find duplicates, all edges of a shard are held in memory, with this many bytes for each.
_KEY_BYTES = 8
# A pilot makes a sketch, a matrix with a row for each node. This many bytes are counted for each
# entry, and jobs reserve a multiple of them.
_COLUMN_BYTES = 2
_NAME, _COUNT = "name", "count"


@dataclass(frozen=True, eq=False)
class EdgeReader:
    """Reads the shards of a store of edges; `names` are the names of the nodes."""

    form: ShardFormat
    columns: EdgeColumns
    names: pa.LargeStringArray
    limits: ReadLimits = DEFAULT_LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        form: ShardFormat,
        columns: EdgeColumns,
        nodes: Vocabulary,
        limits: ReadLimits = DEFAULT_LIMITS,
        storage_options: Mapping[str, object] | None = None,
    ) -> EdgeReader:
        """Make a reader of edges between `nodes`."""
        return cls(form, columns, words_of(nodes), limits, storage_options)

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadBatch[EdgeBatch]]:
        """Read the distinct edges of a shard.

        Raises ShardError if the shard cannot be read, has an edge with only one end, or has more
        edges than fit into memory.
        """
        options, limits = self.storage_options, _more_rows(self.limits)
        tables = read_tables(
            shard, self.form, self.columns.columns, limits, options, start, content
        )
        return steadily(self._counted(tables, shard), shard, options, content)

    def _counted(
        self, tables: Iterable[tuple[pa.Table, Position]], shard: Shard
    ) -> Iterator[ReadBatch[EdgeBatch]]:
        seen, passed, n = _Seen(), 0, len(self.names)
        most = self.limits.decoded_bytes // _KEY_BYTES
        for table, after in tables:
            ends = both_ends(table, self.columns.columns, shard.url, passed)
            passed += table.num_rows
            # look up sources and targets in one call, because each call first reads all names
            texts = pa.concat_arrays([one.texts for one in ends])
            places = Values(np.arange(len(texts) + 1), texts).places(self.names)
            given = places.reshape(2, -1).T.astype(np.int64)
            known = given[(given >= 0).all(axis=1)]
            keys, loops = edge_keys(known, n, self.columns.directed)
            new = seen.added(np.unique(keys))
            if seen.size > most:
                raise ShardError(
                    shard.url,
                    f"has more than {most:,} edges, which are held in memory to find duplicates",
                    "split it into several shards, or raise {option.memory}",
                )
            batch = EdgeBatch(ends_of(new, n), loops, keys.size - new.size)
            yield ReadBatch(batch, len(given) - len(known), after)


@dataclass
class _Seen:
    """Keys of the edges that were read from a shard so far, in several sorted arrays.

    Each array (run) is more than twice as long as the next one.
    """

    runs: list[NDArray[np.int64]] = field(default_factory=list)
    size: int = 0

    def added(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add sorted keys, and return the keys that were not read before."""
        for run in self.runs:
            places = np.minimum(np.searchsorted(run, keys), run.size - 1)
            keys = keys[run[places] != keys]
        if keys.size:
            self.size += keys.size
            self.runs.append(keys)
        while len(self.runs) > 1 and self.runs[-2].size <= 2 * self.runs[-1].size:
            last = self.runs.pop()
            self.runs[-1] = np.sort(np.concatenate([self.runs[-1], last]), kind="stable")
        return keys


def both_ends(
    table: pa.Table, columns: Sequence[str], url: str, passed: int
) -> tuple[Values, Values]:
    """Return the source and target columns of a table of edges.

    `passed` is the number of rows of the shard before this table.

    Raises ShardError, which names the row, for an edge with only one end.
    """
    found = []
    for name in columns:
        values = values_of(table[name], name, url)
        if len(values.texts) != table.num_rows:
            raise ShardError(
                url, f"column {name!r} holds lists; give one end of an edge in each row"
            )
        if values.texts.null_count:
            row = int(np.asarray(values.texts.is_null()).argmax())
            raise ShardError(
                url,
                f"row {passed + row + 1} has an edge with one end: its {name!r} is empty; correct "
                "or delete it",
            )
        found.append(values)
    return found[0], found[1]


def _more_rows(limits: ReadLimits) -> ReadLimits:
    return replace(limits, batch_documents=_ROWS * limits.batch_documents)


@dataclass(frozen=True, eq=False)
class EdgeSample:
    """All nodes of a shard, and some of its edges.

    nodes : name of each node, and its degree
    edges : source and target of random edges
    """

    nodes: pa.Table
    edges: pa.Table


def sample_edges(
    shard: Shard,
    form: ShardFormat,
    columns: EdgeColumns,
    quota: int,
    seed: int,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    room: int | None = None,
) -> EdgeSample:
    r"""Read the names of all nodes of a shard, and a sample of its edges, in one pass.

    The sample is smaller than the quota if it would take more than `room` bytes, by default
    `limits.pilot_bytes`. Raises BoundExceeded if the names alone take more than
    `limits.pilot_bytes`, otherwise raises as `EdgeReader.read`.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/named/a.csv", b"source,target\nann,bob\nann,cid\n")
    >>> shard = Shard("memory:///named/a.csv", 30)
    >>> sample = sample_edges(shard, ShardFormat(), EdgeColumns(), 9, 0)
    >>> sorted(sample.nodes.to_pylist()[0].items()), sample.edges.num_rows
    ([('count', 2), ('name', 'ann')], 2)
    """
    rng = np.random.default_rng(seed)
    drawn: pa.Table | None = None
    keys, passed, most = np.empty(0), 0, limits.pilot_bytes if room is None else room
    counted: list[pa.Table] = []
    tables = read_tables(shard, form, columns.columns, _more_rows(limits), storage_options)
    for table, _ in steadily(tables, shard, storage_options):
        ends = both_ends(table, columns.columns, shard.url, passed)
        passed += table.num_rows
        names = [one.texts for one in ends]
        found = pc.value_counts(pa.chunked_array(names))
        counted.append(pa.table({_NAME: found.field(0), _COUNT: found.field(1)}))
        if len(counted) > 1 and counted[-2].num_rows <= 2 * counted[-1].num_rows:
            counted = [_each_once(counted)]
        require_few_nodes(counted, limits)
        keys = np.concatenate([keys, rng.random(table.num_rows)])
        own = pa.table(dict(zip(("source", "target"), names, strict=True)))
        drawn = own if drawn is None else pa.concat_tables([drawn, own])
        if drawn.nbytes > most:
            quota = min(quota, max(1, drawn.num_rows * most // drawn.nbytes))
        if drawn.num_rows > quota:
            kept = np.sort(np.argpartition(keys, quota)[:quota])
            drawn, keys = drawn.take(kept).combine_chunks(), keys[kept]
    return EdgeSample(_each_once(counted), drawn)


def require_few_nodes(tables: Sequence[pa.Table], limits: ReadLimits, columns: int = 0) -> None:
    """Raise BoundExceeded if node names and a sketch take more memory than a pilot may use.

    The sketch has `columns` columns and a row for each node.
    """
    nodes = sum(one.num_rows for one in tables)
    held = sum(one.nbytes for one in tables) + _COLUMN_BYTES * columns * nodes
    if held > limits.pilot_bytes:
        raise BoundExceeded(
            f"the names and sketch of at least {nodes:,} nodes take {held:,} bytes, but a "
            f"pilot may use {limits.pilot_bytes:,}",
            "raise {option.memory}",
        )


def added_counts(tables: Sequence[pa.Table]) -> pa.Table:
    """Add up the counts of each name over several tables; the highest sums come first.

    Names with equal sums are sorted by name.
    """
    return _each_once(tables).sort_by([(_COUNT, "descending"), (_NAME, "ascending")])


def _each_once(tables: Sequence[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    held = pa.concat_tables(tables)
    names = held[_NAME].combine_chunks().dictionary_encode()
    # the float sums are exact, because they are whole numbers below 2^53
    sums = np.bincount(names.indices, held[_COUNT]).astype(np.int64)
    return pa.table({_NAME: names.dictionary, _COUNT: sums})
