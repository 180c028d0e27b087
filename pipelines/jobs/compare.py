"""Compare: which of some shards are new, which are as they were counted, and which are changed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.storage.log.ledger import Ledger, ShardRecord
from streaming_moments.storage.shard_table import ShardTable
from streaming_moments.storage.shards import Shard, fingerprint
from streaming_moments.storage.store.changes import require_apart

# Read in less time than a cluster takes to start.
_FEW = 100  # shards
_LITTLE = 64 << 20  # bytes
_STEP = "checking counted shards"


@dataclass(frozen=True)
class Compared:
    """Shards beside the ledger.

    Parameters
    ----------
    new : ShardTable
        Not counted.
    same : int
        How many are counted with the content they have.
    changed : tuple of (Shard, ShardRecord, str)
        Counted with other content: as they were counted, and their fingerprint now.
    """

    new: ShardTable
    same: int
    changed: tuple[tuple[Shard, ShardRecord, str], ...]


def compare(ledger: Ledger, shards: Sequence[Shard], run: Run) -> Compared:
    """Look shards up in the ledger, and compare the fingerprints of those that are in it.

    Marks of the storage's own are compared here as they were listed; what has none is read, on the
    cluster if it is much.

    Parameters
    ----------
    ledger : Ledger
        What is counted.
    shards : sequence of Shard
        As `list_shards` gives them.
    run : Run
        Where to run, and what its steps are told.

    Raises
    ------
    ShardError
        A counted shard cannot be read.
    InvalidInput
        A shard within a counted folder, or a folder of a counted shard.
    """
    listed = ShardTable.of(shards)
    counted = ledger.beside(listed.urls, ["fingerprint"])["fingerprint"]
    known = _flags(counted.is_valid())
    new = listed.take(np.flatnonzero(~known))
    require_apart(ledger, new.urls)
    marks = listed.marks
    differ = _flags(pc.fill_null(pc.not_equal(marks, counted), False))
    unmarked = np.flatnonzero(known & _flags(marks.is_null()))
    found = _fingerprints(listed.take(unmarked), run)
    told = pa.chunked_array([pa.array(found, pa.string())])
    other = _flags(pc.not_equal(told, counted.take(pa.array(unmarked))))
    changed = _changed(
        ledger,
        (listed.take(np.flatnonzero(differ)), marks.filter(pa.array(differ))),
        (listed.take(unmarked[other]), told.filter(pa.array(other))),
    )
    return Compared(new, len(listed) - len(new) - len(changed), changed)


def _fingerprints(shards: ShardTable, run: Run) -> list[str]:
    if len(shards) > _FEW or shards.sizes.sum() > _LITTLE:
        return run.looked_at(_STEP, fingerprint, shards)
    found = []
    with ThreadPoolExecutor() as threads:
        marks = threads.map(partial(fingerprint, storage_options=run.storage_options), shards)
        for done, mark in enumerate(marks, start=1):
            found.append(mark)
            run.progress.advance(_STEP, done, len(shards))
    return found


def _changed(
    ledger: Ledger, *parts: tuple[ShardTable, pa.ChunkedArray]
) -> tuple[tuple[Shard, ShardRecord, str], ...]:
    """Shards with their records and what they are marked by now, by URL."""
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
