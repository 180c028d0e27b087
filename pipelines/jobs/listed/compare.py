"""Find which shards are new, unchanged or changed since they were counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.storage.files.parts import DOCUMENT
from streaming_moments.storage.log.ledger import Ledger, ShardRecord
from streaming_moments.storage.operations.appended import Longer, appended_to
from streaming_moments.storage.shard_table import ShardTable
from streaming_moments.storage.shards import PARTITIONS, Shard, ShardFormat, fingerprint
from streaming_moments.storage.store.changes import require_apart

# At most this many shards, with at most this many bytes together, are read in this process. That
# takes less time than the start of a cluster.
_FEW = 100
_LITTLE = 64 << 20
_STEP = "checking counted shards"

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Compared:
    """Result of comparing listed shards with the ledger.

    new : shards that are not counted
    same : number of shards that are counted with their current content
    changed : shards that were counted with other content, each with the ledger record and the
        current fingerprint
    waiting : files that have grown and end in an incomplete record, with the bytes of that record
    """

    new: ShardTable
    same: int
    changed: tuple[tuple[Shard, ShardRecord, str], ...]
    waiting: tuple[tuple[str, int], ...] = ()


def compare(
    ledger: Ledger, shards: Sequence[Shard], run: Run, form: ShardFormat | None = None
) -> Compared:
    """Look shards up in the ledger, and compare fingerprints for shards that the ledger records.

    If the storage has listed a mark of the content of a shard, this mark is compared. Other shards
    are read, on the cluster if there is much to read. With `form`, records that were appended to a
    counted file are a new shard. Raises InvalidInput for a shard within a counted folder, or a
    folder with a counted shard.
    """
    listed = ShardTable.of(shards)
    beside = ledger.beside(listed.urls, ["fingerprint", "size"])
    counted = beside["fingerprint"]
    known = _flags(counted.is_valid())
    new = listed.take(np.flatnonzero(~known))
    require_apart(ledger, new.urls)
    marks = listed.marks
    differ = _flags(pc.fill_null(pc.not_equal(marks, counted), False))
    to_read = known & _flags(marks.is_null())
    longer = np.zeros_like(to_read)
    if form is not None:
        begun = _flags(pc.is_in(listed.urls, pa.array([*ledger.parts], pa.string())))
        sizes = pc.fill_null(beside["size"], 0).to_numpy()
        longer = to_read & (begun | (listed.sizes > sizes)) & ~_flags(_not_files(listed.urls))
    grown, rewritten, waiting = _grown(ledger, listed.take(np.flatnonzero(longer)), run, form)
    unmarked = np.flatnonzero(to_read & ~longer)
    found = fingerprints(listed.take(unmarked), run)
    told = pa.chunked_array([pa.array(found, pa.string())])
    other = _flags(pc.not_equal(told, counted.take(pa.array(unmarked))))
    changed = _changed(
        ledger,
        (listed.take(np.flatnonzero(differ)), marks.filter(pa.array(differ))),
        (listed.take(unmarked[other]), told.filter(pa.array(other))),
        (rewritten, pa.chunked_array([pa.array(fingerprints(rewritten, run), pa.string())])),
    )
    same = len(listed) - len(new) - len(changed) - len(grown)
    return Compared(ShardTable.joined([new, grown]), same, changed, waiting)


def _grown(
    ledger: Ledger, listed: ShardTable, run: Run, form: ShardFormat | None
) -> tuple[ShardTable, ShardTable, tuple[tuple[str, int], ...]]:
    """Compare files that have grown with their counted beginnings.

    Returns the new parts of the files, the files whose beginning has changed, and the bytes of
    incomplete records.
    """
    if form is None or not len(listed):
        return ShardTable.of([]), listed, ()
    nbytes = run.limits.document_bytes
    asked = [
        Longer(shard, (record, *ledger.parts.get(shard.url, ())), form, nbytes)
        for shard in listed
        if (record := ledger.find(shard.url)) is not None
    ]
    found = looked_at(appended_to, asked, int(listed.sizes.sum()), run)
    parts = [one.part for one in found if one is not None and one.part is not None]
    rewritten = [one.shard for one, what in zip(asked, found, strict=True) if what is None]
    waiting = tuple(
        (one.shard.url, what.waiting)
        for one, what in zip(asked, found, strict=True)
        if what is not None and what.waiting
    )
    return ShardTable.of(parts), ShardTable.of(rewritten), waiting


def fingerprints(shards: ShardTable, run: Run) -> list[str]:
    return looked_at(fingerprint, shards, int(shards.sizes.sum()), run)


def looked_at(
    function: Callable[..., _Found], items: Sequence[Any], nbytes: int, run: Run
) -> list[_Found]:
    """Call a function for each shard, in this process if there is little to read."""
    if len(items) > _FEW or nbytes > _LITTLE:
        return run.looked_at(_STEP, function, items)
    found = []
    with ThreadPoolExecutor() as threads:
        looked = threads.map(partial(function, storage_options=run.storage_options), items)
        for done, one in enumerate(looked, start=1):
            found.append(one)
            run.progress.advance(_STEP, done, len(items))
    return found


def _not_files(urls: pa.ChunkedArray) -> pa.ChunkedArray:
    folders = pc.or_(pc.ends_with(urls, "/"), pc.ends_with(urls, DOCUMENT))
    return pc.or_(folders, pc.starts_with(urls, PARTITIONS))


def _changed(
    ledger: Ledger, *parts: tuple[ShardTable, pa.ChunkedArray]
) -> tuple[tuple[Shard, ShardRecord, str], ...]:
    """Return shards with ledger records and current fingerprints, sorted by URL."""
    found = [
        (shard, ShardRecord(**row), mark)
        for shards, marks in parts
        for shard, row, mark in zip(
            shards, ledger.beside(shards.urls).to_pylist(), marks.to_pylist(), strict=True
        )
    ]
    return tuple(sorted(found, key=lambda one: one[0].url))


def _flags(values: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    flags: np.ndarray[tuple[int], np.dtype[np.bool_]] = values.to_numpy()
    return flags
