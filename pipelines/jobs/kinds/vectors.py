"""Create stores of vectors: choose a grid and a sketch of the rows from a pilot of shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.pipelines.cluster.memory import Budget
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.create import cut_to_room
from streaming_moments.pipelines.jobs.kinds.base import (
    KindJobs,
    Made,
    Redraw,
    Sampling,
    Sight,
    create_by,
)
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.printing.remedies import remedy
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.pilot import foundation_of, sketching_bytes
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.storage.counting.vectors import (
    VectorsForm,
    pilot_of,
    sample_vectors,
)
from streaming_moments.storage.operations.lineages import stage_on
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

_COPIES = 12  # the choice of a grid and a sketch needs this many copies of the rows of a pilot
_CLIPPED = 0.03  # report the share of rows beyond the radius if it is larger than this


def _form(shape: KindOptions) -> VectorsForm:
    return VectorsForm(shape.names or VectorsForm().columns, shape.bad_rows)


def _made(sampling: Sampling) -> Made:
    return _made_of(_form(sampling.shape), sampling)


def _made_of(form: VectorsForm, sampling: Sampling) -> Made:
    shape, counting, options = sampling.shape, sampling.counting, sampling.options
    limits = sampling.limits
    samples = sampling.samples(sample_vectors, form)
    rows, bad = pilot_of(samples, options.pilot_documents, options.seed, limits.pilot_bytes)
    few = len(rows) < options.pilot_documents
    most = cut_to_room(sum(one.values.nbytes for one in samples), limits) if few else ""
    _require_room(rows, shape, sampling.run.cluster.memory)
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
        f"a sample of {len(rows):,} rows{most} in {of_number(len(samples), 'shard')}: "
        f"{of_number(foundation.dimension, 'number')} each",
    ]
    if bad:
        said.append(
            agreeing(bad, "other row is", "other rows are")
            + " shorter or longer, or not finite numbers"
        )
    constant = int((rows.min(axis=0) == rows.max(axis=0)).sum())
    if constant:
        said.append(agreeing(constant, "of the numbers never varies", "of the numbers never vary"))
    with np.errstate(over="ignore"):
        small = int((rows.std(axis=0) < foundation.grid.step).sum()) - constant
    if small > 0 and not foundation.grid.whole:
        said.append(
            agreeing(small, "of the numbers varies", "of the numbers vary")
            + " by less than a step; scale them if they matter"
        )
    if totals.clipped > _CLIPPED * len(rows):
        said.append(f"{totals.clipped / len(rows):.0%} of the rows lie beyond the radius")
    return Made(foundation, form.to_json(), "; ".join(said))


def _require_room(rows: NDArray[np.float64], shape: KindOptions, memory: int) -> None:
    width = rows.shape[1]
    items = {
        "the pilot": _COPIES * rows.nbytes,
        "how its numbers vary together": sketching_bytes(width, shape.sketch_columns, shape.fourth),
    }
    shorter = remedy("raise {option.memory}, or give shorter rows")
    Budget(f"a sketch of rows of {width:,} numbers", items, shorter).require(memory)


def _known(store: MomentStore) -> Mapping[str, Any]:
    return {}


def _begun(
    store: MomentStore,
    shards: Sequence[Shard],
    options: PilotOptions,
    halves: bool | None,
    run: Run,
) -> MomentStore:
    before, pilot = store.foundation, store.commit.lineage.pilot or {}
    shape = KindOptions(
        store.kind,
        sketch_columns=pilot.get("sketch_columns", before.columns),
        squares=before.squares,
        fourth=before.fourth,
    )
    counting = CountingOptions(
        format=store.form.kind, halves=before.halves if halves is None else halves
    )
    sampling = Sampling.of(shards, shape, counting, options, run)
    made = _made_of(VectorsForm.from_json(store.reading), sampling)
    written = {**pilot, **asdict(options)}
    return stage_on(store, made.foundation, written, f"rebase: begin from {made.origin}")


def _renewed(foundation: VectorsFoundation) -> str:
    return "a new grid and sketch"


_NUMBERS = frozenset({"number", "whole", "bit"})


def _sights(columns: Mapping[str, str], text_column: str) -> list[Sight]:
    """Find lists of numbers, or a table with only numbers."""
    if "" in columns or columns.get("vector") in ("numbers", "ids"):
        return [Sight("rows of numbers", usual=True)]
    found = [
        Sight.of_columns("rows of numbers in column", [name])
        for name, what in columns.items()
        if what == "numbers"
    ]
    if len(columns) > 1 and _NUMBERS.issuperset(columns.values()):
        found.append(Sight.of_columns("rows of numbers in columns", columns))
    return found


VECTORS = KindJobs(
    VectorsFoundation,
    frozenset({"columns", "sketch_columns", "squares", "fourth", "bad_rows"}),
    partial(create_by, _made),
    _form,
    Redraw(_known, _begun, _renewed),
    sights=_sights,
)
