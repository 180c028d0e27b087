"""Neighbours: group the edges of a graph of any size by node, on the cluster."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.storage.counting.graphs.edges import (
    EdgeColumns,
    gather_part,
    is_list_file,
    set_down,
)
from streaming_moments.storage.files.filesystems import open_file_system
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.locks import held
from streaming_moments.storage.log.processes import is_gone, mark_of_process
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.garbage import GRACE

# Each task sorts the edges of one part of the nodes. The number of parts is chosen so that these
# edges take about this many bytes in the compressed shards. An edge takes about 5 bytes in a shard,
# 32 bytes in an intermediate file, and three times 32 bytes of memory while it is sorted.
_PART_BYTES = 8 << 20
_MOST_PARTS = 4096
_ASIDE = ".edges"
_LOCK = ".grouping"  # hidden, so that readers of the folder skip it
_EXPIRY = timedelta(minutes=30)


@dataclass(frozen=True)
class NeighbourLists:
    """Result of `neighbours`: files with a list of neighbours for each node.

    files : URLs of the Parquet files, with columns `node` and `neighbours`
    nodes : number of nodes, each with one list
    edges : number of different edges
    duplicates, loops : number of repeated edges, and of edges from a node to itself; both were left
        out
    """

    files: tuple[str, ...]
    nodes: int
    edges: int
    duplicates: int
    loops: int


def neighbours(
    shards: Sequence[Shard],
    output: str,
    run: Run,
    columns: EdgeColumns = EdgeColumns(),
    form: ShardFormat = ShardFormat(),
    parts: int | None = None,
) -> NeighbourLists:
    """Write the list of neighbours of every node, each neighbour once, as Parquet.

    Writes the edges of each node to intermediate files beside the output, and deletes these at the
    end. Each task gathers a part of the nodes, so memory does not grow with the graph. If a call is
    killed, the next call deletes its intermediate files: at once on the same machine, after a week
    on another one. A lock allows one call at a time for each folder. To create a store from the
    lists, read them as token ids with `--ids-column neighbours`. Raises LockHeld if another call
    groups edges into the folder, or took over the lock. Raises InvalidInput if there are no shards,
    `parts` is out of range, or no edge joins two nodes. Raises ShardError if an edge has only one
    end, or a shard is unreadable. Raises StoreError if the output cannot be written. Raises
    BoundExceeded if a read task does not fit into the memory budget.

    shards : shards of edges (Parquet, CSV or TSV, also compressed) of the whole graph
    output : fsspec URL of a folder that all workers reach; a file appears whole or not at all
    parts : number of files among which the nodes are divided; by default it follows from the size
        of the shards. If edges are added later and the number is the same, each node stays in its
        file, and `update --replace` counts only the changed files. Files from another number of
        parts are deleted.
    """
    if not shards:
        raise InvalidInput("there are no shards with edges; give at least one")
    if parts is not None and not 1 <= parts <= _MOST_PARTS:
        raise InvalidInput(f"{parts} parts are requested; give 1 to {_MOST_PARTS}")
    plan = plan_reading(run.cluster.threads, run.cluster.memory, run.limits)
    limits = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    stored = sum(shard.size for shard in shards)
    parts = parts or min(_MOST_PARTS, 1 + stored // _PART_BYTES)
    # the name identifies this process, so that a later call can check whether it still runs
    name = "-".join([_ASIDE, *mark_of_process().split(), uuid.uuid4().hex])
    aside = f"{output.rstrip('/')}/{name}"
    options = run.storage_options
    Folder.at(output, options).require_bucket()
    # one call at a time, because two calls would mix their files
    with held(Folder.at(f"{output.rstrip('/')}/{_LOCK}", options), _EXPIRY):
        try:
            _delete_left(output, aside, options)
            calls = [
                (shard, place, form, columns, parts, aside, limits, options)
                for place, shard in enumerate(shards)
            ]
            read = run.calls("reading edges", set_down, calls, plan.in_flight)
            files = [file for one in read for file in one.files]
            gathered = run.calls(
                "gathering neighbours",
                gather_part,
                [(part, parts, files, output, options) for part in range(parts)],
                plan.in_flight,
            )
        finally:
            _delete(aside, options)
        ends = 1 if columns.directed else 2
        nodes = sum(part.nodes for part in gathered)
        if not nodes:
            raise InvalidInput(
                f"none of {sum(one.edges for one in read)} edges joins two nodes; give other "
                "shards, or name the columns with the two nodes of an edge"
            )
        written = tuple(part.url for part in gathered if part.url)
        _delete_others(output, written, options)
        return NeighbourLists(
            written,
            nodes,
            sum(part.entries for part in gathered) // ends,
            sum(part.repeated for part in gathered) // ends,
            sum(one.loops for one in read),
        )


def _delete_left(output: str, aside: str, storage_options: Mapping[str, object] | None) -> None:
    """Delete intermediate files of calls that died, or that have written nothing for too long."""
    folder, own = (Folder.at(url, storage_options) for url in (output, aside))
    for name in folder.names(""):
        if not name.startswith(f"{_ASIDE}-"):
            continue
        gone = is_gone(" ".join(name.split("-")[1:-1]))
        written = [] if gone else [file.modified for file in folder.files(name)]
        if gone or (written and own.clock() - max(written) > GRACE):
            _delete(f"{output.rstrip('/')}/{name}", storage_options)


def _delete(url: str, storage_options: Mapping[str, object] | None) -> None:
    fs, path = open_file_system(url, storage_options)
    while fs.exists(path):
        with suppress(FileNotFoundError):  # another call may delete the folder at the same time
            fs.rm(path, recursive=True)


def _delete_others(
    output: str, written: Sequence[str], storage_options: Mapping[str, object] | None
) -> None:
    """Delete files of neighbour lists that earlier calls wrote and this call did not write."""
    fs, path = open_file_system(output, storage_options)
    kept = {url.rsplit("/", 1)[-1] for url in written}
    for found in fs.ls(path, detail=False):
        name = found.rsplit("/", 1)[-1]
        if is_list_file(name) and name not in kept:
            fs.rm_file(found)
