"""Read edges of graphs from shards, write them to files by node, and join lists of neighbours."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming_moments.errors import ShardError, StoreError
from streaming_moments.storage.counting.reading import steadily
from streaming_moments.storage.documents import read_tables
from streaming_moments.storage.files.backends import remedy_of, storage_errors
from streaming_moments.storage.files.filesystems import one_line, open_file_system
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.files.outputs import parquet_output
from streaming_moments.storage.formats import DEFAULT_LIMITS, ReadLimits
from streaming_moments.storage.formats.columns.numbers import whole_numbers
from streaming_moments.storage.shards import Shard, ShardFormat

NODE, NEIGHBOURS = "node", "neighbours"
# A task collects edges in memory. It writes them to a file when it holds this many ends of edges,
# which take 64 MB.
_HELD = 1 << 22
_ENTRY_BYTES = 16
# largest number of neighbours in a row group of a Parquet file, unless one node has more
_GROUP_IDS = 1 << 20
_HALF, _LOW = np.uint64(32), np.uint64((1 << 32) - 1)
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class EdgeColumns:
    """Names of the columns that hold the two ends of an edge.

    If `directed`, the target is a neighbour of the source, but not the reverse.
    """

    source: str = "source"
    target: str = "target"
    directed: bool = False

    @property
    def columns(self) -> tuple[str, str]:
        """Names of the columns of the source and the target."""
        return self.source, self.target


@dataclass(frozen=True)
class SetDown:
    """A file of pairs (node, neighbour), called entries, sorted by the part that has the node.

    The nodes are divided into parts. `bounds` holds the position of the first entry of each part,
    and then the number of all entries.
    """

    path: str
    bounds: tuple[int, ...]


@dataclass(frozen=True)
class ReadEdges:
    """Edges read from a shard.

    `edges` is the number of all edges of the shard. `loops` is how many of them go from a node to
    itself; `files` do not contain these.
    """

    files: tuple[SetDown, ...]
    edges: int
    loops: int


@dataclass(frozen=True)
class PartLists:
    """Lists of neighbours of one part of the nodes.

    url : URL of the Parquet file; empty for a part without nodes
    nodes, entries : number of nodes, each with a list, and number of neighbours in all lists
    repeated : number of duplicate neighbours, which were left out of the lists
    """

    url: str
    nodes: int
    entries: int
    repeated: int


def read_edges(
    shard: Shard,
    form: ShardFormat,
    columns: EdgeColumns,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[NDArray[np.int64]]:
    r"""Read the ends of the edges of a shard, as (edges, 2) int64 arrays.

    Raises ShardError for an edge with only one end, or an end that is not an integer of at least 0.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/edges/a.tsv", b"source\ttarget\n3\t4\n4\t7\n")
    >>> shard = Shard("memory:///edges/a.tsv", 22)
    >>> [part.tolist() for part in read_edges(shard, ShardFormat(), EdgeColumns())]
    [[[3, 4], [4, 7]]]
    """
    names, passed = columns.columns, 0
    tables = read_tables(shard, form, names, limits, storage_options)
    for table, _ in steadily(tables, shard, storage_options):
        ends = [_numbers(table.column(name), name, passed, shard.url) for name in names]
        yield np.stack(ends, axis=1)
        passed += table.num_rows


def set_down(
    shard: Shard,
    place: int,
    form: ShardFormat,
    columns: EdgeColumns,
    parts: int,
    folder: str,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
) -> ReadEdges:
    """Read the edges of a shard, and write them to files, sorted by the part that has the node.

    Needs memory for about a million edges, however many the shard has. Raises as `read_edges` does.
    """
    held: list[NDArray[np.int64]] = []
    files: list[SetDown] = []
    edges = loops = size = 0

    def put() -> None:
        entries = np.concatenate(held)
        held.clear()
        # convert the numbers of parts to 16 bits, because NumPy then sorts by counting, which is
        # fast
        own = part_of(entries[:, 0], parts).astype(np.uint16)
        order = np.argsort(own, kind="stable")
        bounds = np.searchsorted(own[order], np.arange(parts + 1))
        path = f"{folder}/{place}-{len(files)}"
        _write(path, entries[order], storage_options)
        files.append(SetDown(path, tuple(bounds.tolist())))

    for read in read_edges(shard, form, columns, limits, storage_options):
        kept = read[read[:, 0] != read[:, 1]]
        edges, loops = edges + len(read), loops + len(read) - len(kept)
        held += [kept] if columns.directed else [kept, kept[:, ::-1]]
        size += len(kept) if columns.directed else 2 * len(kept)
        if size >= _HELD:
            put()
            size = 0
    if size:
        put()
    return ReadEdges(tuple(files), edges, loops)


def gather_part(
    part: int,
    parts: int,
    files: Sequence[SetDown],
    output: str,
    storage_options: Mapping[str, object] | None = None,
) -> PartLists:
    """Write the list of neighbours of each node of a part, sorted and without duplicates."""
    read = [_read(one, part, storage_options) for one in files]
    entries = np.concatenate([np.empty((0, 2), dtype=np.int64), *read])
    del read
    unique = _unique(entries)
    if not len(unique):
        return PartLists("", 0, 0, 0)
    nodes, starts = np.unique(unique[:, 0], return_index=True)
    offsets = np.concatenate([starts, [len(unique)]]).astype(np.int64)
    schema = pa.schema([(NODE, pa.int64()), (NEIGHBOURS, pa.large_list(pa.int64()))])
    name = f"{NEIGHBOURS}-{part:05d}-of-{parts:05d}.parquet"
    folder = OutputFolder(Folder.at(output, storage_options))
    with parquet_output(folder, name, schema) as (url, writer):
        first = 0
        while first < len(nodes):
            fitting = np.searchsorted(offsets, offsets[first] + _GROUP_IDS, side="right") - 1
            end = max(int(fitting), first + 1)
            own = unique[offsets[first] : offsets[end], 1]
            lists = pa.LargeListArray.from_arrays(
                offsets[first : end + 1] - offsets[first], np.ascontiguousarray(own)
            )
            writer.write_table(pa.Table.from_arrays([nodes[first:end], lists], schema=schema))
            first = end
    return PartLists(url, len(nodes), len(unique), len(entries) - len(unique))


def is_list_file(name: str) -> bool:
    """Whether a file has the name of a file of neighbour lists, as `gather_part` writes them.

    Examples
    --------
    >>> is_list_file("neighbours-00000-of-00002.parquet"), is_list_file("edges.parquet")
    (True, False)
    """
    return re.fullmatch(rf"{NEIGHBOURS}-\d{{5}}-of-\d{{5}}\.parquet", name) is not None


def part_of(nodes: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """Return the (nodes,) int64 number of the part of each node, from 0 to parts - 1.

    The part depends only on the number of the node.

    Examples
    --------
    >>> part_of(np.array([1, 2, 3]), 1).tolist()
    [0, 0, 0]
    """
    mixed = nodes.astype(np.uint64) * _ODD
    mixed = (mixed ^ (mixed >> np.uint64(32))) % np.uint64(parts)
    return np.asarray(mixed, dtype=np.int64)


def _unique(entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort the pairs (node, neighbour), and remove duplicates."""
    if entries.size and entries.max() < 1 << 32:
        # pack both ends of an edge in one integer, which is faster to sort than a pair
        packed = entries[:, 0].astype(np.uint64) << _HALF | entries[:, 1].astype(np.uint64)
        packed.sort()
        new = np.ones(packed.size, dtype=np.bool_)
        new[1:] = packed[1:] != packed[:-1]
        packed = packed[new]
        return np.stack([packed >> _HALF, packed & _LOW], axis=1).astype(np.int64)
    entries = entries[np.lexsort((entries[:, 1], entries[:, 0]))]
    new = np.ones(len(entries), dtype=np.bool_)
    new[1:] = (entries[1:] != entries[:-1]).any(axis=1)
    return entries[new]


def _numbers(column: pa.ChunkedArray, name: str, passed: int, url: str) -> NDArray[np.int64]:
    """Convert a column to whole numbers.

    `passed` is the number of rows of the shard before this column, for messages.
    """

    def refused(bad: NDArray[np.bool_], why: str) -> ShardError:
        row = int(bad.argmax())
        value = column[row].as_py()
        return ShardError(url, why.format(row=passed + row + 1, name=name, value=value))

    texts = pa.types.is_large_string(column.type) or pa.types.is_string(column.type)
    whole = whole_numbers(column)
    given = pc.if_else(pc.equal(column, ""), None, column) if texts else column
    given = given if whole is None else whole
    if given.null_count:
        raise refused(
            given.is_null().to_numpy(),
            "row {row} has an edge with one end: its {name!r} is empty; correct or delete it",
        )
    try:
        numbers = np.asarray(_cast(given).to_numpy(), dtype=np.int64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        bad = np.array([not _whole(value) for value in given])
        raise refused(
            bad,
            "row {row} has the {name} {value!r}, which is not a whole number, or is too large for "
            "a float; number the nodes from 0, or create a store of --kind edges, whose nodes "
            "have names",
        ) from None
    if numbers.size and numbers.min() < 0:
        raise refused(numbers < 0, "row {row} has the {name} {value}; number the nodes from 0")
    return numbers


def _cast(given: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_floating(given.type):
        raise pa.ArrowInvalid(f"{given.type} with numbers that are not whole")
    return given.cast(pa.int64())


def _whole(value: pa.Scalar) -> bool:
    if pa.types.is_floating(value.type):
        return whole_numbers(pa.array([value.as_py()], value.type)) is not None
    try:
        pc.cast(value, pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _write(
    path: str, entries: NDArray[np.int64], storage_options: Mapping[str, object] | None
) -> None:
    try:
        fs, inner = open_file_system(path, storage_options)
        fs.makedirs(fs._parent(inner), exist_ok=True)
        fs.pipe_file(inner, np.ascontiguousarray(entries).tobytes())
    except storage_errors() as error:
        remedy = remedy_of(error) or "check the path and the connection"
        raise StoreError(
            f"{path}: edges cannot be written ({one_line(error, storage_options)}); {remedy}"
        ) from error


def _read(
    one: SetDown, part: int, storage_options: Mapping[str, object] | None
) -> NDArray[np.int64]:
    first, end = one.bounds[part] * _ENTRY_BYTES, one.bounds[part + 1] * _ENTRY_BYTES
    if first == end:
        return np.empty((0, 2), dtype=np.int64)
    try:
        fs, inner = open_file_system(one.path, storage_options)
        with fs.open(inner, "rb") as stored:
            stored.seek(first)
            content = io.BytesIO(stored.read(end - first)).getvalue()
    except storage_errors() as error:
        raise StoreError(
            f"{one.path}: written edges cannot be read ({one_line(error, storage_options)}); run "
            "this again"
        ) from error
    return np.frombuffer(content, dtype=np.int64).reshape(-1, 2)
