"""Create a store of vectors: grid and sketch from a pilot of the shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.pipelines.cluster.memory import Budget, mebibytes, plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import (
    CountingOptions,
    PilotOptions,
    cut_to_room,
    of_share,
    pilot_limits,
    quotas,
)
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.pilot import foundation_of, sketching_bytes
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.storage.counting.vectors import (
    VectorsForm,
    pilot_of,
    sample_vectors,
)
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

_COPIES = 12  # of the rows of a pilot, while a grid and a sketch are chosen
_CLIPPED = 0.01  # a larger share of rows beyond the radius is said


@dataclass(frozen=True)
class VectorsShape:
    """What is kept of vectors.

    Parameters
    ----------
    form : VectorsForm
        Where the numbers are.
    sketch_columns : int, optional
        Of the sketch.
    squares, fourth : bool
        Optional sums.
    """

    form: VectorsForm
    sketch_columns: int | None = None
    squares: bool = False
    fourth: bool = False


def vectors_of(
    shards: Sequence[Shard],
    shape: VectorsShape,
    counting: CountingOptions,
    options: PilotOptions,
    run: Run,
    limits: ReadLimits,
    in_flight: int,
) -> tuple[VectorsFoundation, dict[str, Any], str]:
    """Foundation, how its shards are read, and where it comes from, in words.

    Parameters
    ----------
    shards, counting, options, run
        As of `create_kind`.
    shape : VectorsShape
        What is kept.
    limits, in_flight
        Of a reading task, and how many at once.

    Raises
    ------
    ShardError
        A sampled shard cannot be read, or a column of it.
    InvalidInput
        No rows of numbers, or all of them equal.
    BoundExceeded
        Rows of so many numbers that the budget cannot hold how they vary together.
    """
    calls = [
        (shard, counting.form, shape.form, quota, options.seed + place, own, run.storage_options)
        for place, (shard, quota) in enumerate(quotas(shards, options))
        for own in [of_share(limits, quota, options)]
    ]
    samples = run.calls("sampling shards", sample_vectors, calls, in_flight)
    rows, bad = pilot_of(samples, options.pilot_documents, options.seed, limits.pilot_bytes)
    few = len(rows) < options.pilot_documents
    most = cut_to_room(sum(one.values.nbytes for one in samples), limits) if few else ""
    _require_room(rows, shape, run.cluster.memory)
    foundation = foundation_of(
        rows,
        shape.sketch_columns,
        options.seed,
        squares=shape.squares,
        fourth=shape.fourth,
        halves=counting.halves,
    )
    totals = foundation.prepared(VectorBatch.of(rows)).totals
    said = [
        f"a pilot of {len(rows):,} rows{most} in {len(samples)} shards: "
        f"{foundation.dimension:,} numbers each, a sketch of {foundation.columns} columns, "
        f"a step of {foundation.grid.step:.3g}",
        f"room for {foundation.room(totals):.2g} rows like these",
    ]
    if bad:
        said.append(f"{bad:,} others were no row of so many finite numbers")
    constant = int((rows.min(axis=0) == rows.max(axis=0)).sum())
    if constant:
        said.append(f"{constant:,} of the numbers never vary")
    with np.errstate(over="ignore"):
        small = int((rows.std(axis=0) < foundation.grid.step).sum()) - constant
    if small > 0 and not foundation.grid.whole:
        said.append(f"{small:,} of the numbers vary by less than a step; scale them if they matter")
    if totals.clipped > _CLIPPED * len(rows):
        said.append(f"{totals.clipped / len(rows):.0%} of the rows lie beyond the radius")
    sums = 8 * sum(foundation.sizes.values()) * (1 + foundation.halves)
    return foundation, shape.form.to_json(), "; ".join([*said, f"{mebibytes(sums)} of sums"])


def _require_room(rows: NDArray[np.float64], shape: VectorsShape, memory: int) -> None:
    width = rows.shape[1]
    items = {
        "the pilot": _COPIES * rows.nbytes,
        "how its numbers vary together": sketching_bytes(width, shape.sketch_columns, shape.fourth),
    }
    remedy = "raise --memory, or give shorter rows"
    Budget(f"a sketch of rows of {width:,} numbers", items, remedy).require(memory)


def vectors_again(
    store: MomentStore,
    shards: Sequence[Shard],
    options: PilotOptions,
    halves: bool | None,
    run: Run,
) -> tuple[VectorsFoundation, str]:
    """A foundation like that of a store from a new pilot, and where it comes from, in words.

    Arguments and errors as of `rebase`.
    """
    before, pilot = store.foundation, store.commit.lineage.pilot or {}
    columns = pilot.get("sketch_columns", before.columns)
    form = VectorsForm.from_json(store.reading)
    shape = VectorsShape(form, columns, before.squares, before.fourth)
    counting = CountingOptions(
        format=store.form.kind, halves=before.halves if halves is None else halves
    )
    plan = plan_reading(run.cluster.threads, run.cluster.memory, run.limits)
    limits = pilot_limits(run.limits, plan, run.cluster.memory)
    made, _, origin = vectors_of(shards, shape, counting, options, run, limits, plan.in_flight)
    return made, origin
