"""Trial for stores that do not count documents: count some shards, fit a model, and time both."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import threadpool_limits

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.registry import models_of
from streaming_moments.models.rows import InMemory
from streaming_moments.models.states import compares_states
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.counts import policy_of
from streaming_moments.pipelines.jobs.kinds.create_kinds import create_kind
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.planning.job import CorpusSize, Job
from streaming_moments.pipelines.planning.step_costs import BlockCosts, PilotCosts, StepCosts
from streaming_moments.pipelines.planning.stopwatch import timed, timed_on_all
from streaming_moments.pipelines.planning.trial import (
    Reading,
    copying,
    read_some,
    reading_costs,
    spread,
    try_out,
)
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage.files.arrays import decode, encode_metadata
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

_STATES = 10  # default number of states of the refit, if the store does not count documents


def try_out_any(
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    n_topics: int | None,
    threads: int,
    storage_options: Mapping[str, object] | None = None,
) -> tuple[Job, StepCosts]:
    """Call `try_out` for a store of documents, and `try_out_kind` for any other kind."""
    if not KINDS[shape.kind].by_length:
        n_states = n_topics or _STATES
        return try_out_kind(shards, shape, counting, options, n_states, threads, storage_options)
    return try_out(
        shards,
        Reading(counting.form, policy_of(shards, counting), storage_options),
        options,
        n_topics,
        threads,
        counting.codocuments,
        counting.halves,
    )


def try_out_kind(
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    n_states: int,
    threads: int,
    storage_options: Mapping[str, object] | None = None,
) -> tuple[Job, StepCosts]:
    """Do the same as `try_out`, but time a fit on the sample alone.

    The time of a fit does not depend on the number of counted records. The timed fit has `n_states`
    states, or as many as the sample allows. Raises NotIdentifiable if it allows none. Other errors
    as in `create_kind`.
    """
    corpus = CorpusSize.of(shards)
    sampled = spread(shards, threads, options.seed)
    with (
        tempfile.TemporaryDirectory(prefix="streaming-moments-plan-") as folder,
        connect() as cluster,
    ):
        run = Run(cluster, storage_options=storage_options)
        choosing, store = timed(
            lambda: create_kind(f"{folder}/store", sampled, shape, counting, options, run)
        )
        with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
            reading = Reading(counting.form, None, storage_options)
            pieces, open_shard = read_some(sampled, store, reading, pool)
            read = reading_costs(pieces, sampled, open_shard)
            model = _model_of(store.kind)
            job = Job(
                corpus,
                store.foundation,
                store.row_blocks,
                n_topics=n_states,
                pilot_documents=options.pilot_documents,
                model=model,
            )
            batches = [piece.batch for piece in pieces]
            blocks = _block_costs(job, store, batches, pool, threads)
    return job, StepCosts(threads, PilotCosts(0.0, 0.0, choosing), read, blocks)


def _model_of(kind: str) -> Any:
    """Return the first model of the kind; prefer one whose numbers of states can be compared."""
    own = models_of(kind)
    return next(filter(compares_states, own), own[0])


def _block_costs(
    job: Job, store: MomentStore, batches: Sequence[Any], pool: ThreadPoolExecutor, threads: int
) -> BlockCosts:
    layout, foundation = store.layout, store.foundation
    indices = range(min(threads, store.row_blocks))
    foundation.of(batches[:1])  # this compiles the kernels, so that compiling is not timed
    zeroing, _ = timed_on_all(pool, lambda index: foundation.of([], layout.block(index)), indices)
    adding, statistics = timed_on_all(
        pool, lambda index: foundation.of(batches, layout.block(index)), indices
    )
    writer = store.new_segment()
    writing, written = timed_on_all(pool, writer.write_block, statistics)
    content = {
        file.path: store.folder.read(f"segments/{writer.id}/{file.path}") for file in written[0]
    }
    # measure only decoding: reading would be too fast, because the file is still in memory
    loading, _ = timed(lambda: decode({**encode_metadata(layout.specs, {}), **content}, ""))
    return BlockCosts(
        add=max(adding - zeroing, 0.0) / max(sum(batch.nbytes for batch in batches), 1),
        write=zeroing + writing,
        load=loading,
        copy=copying(store, writer, written[0]),
        disk_bytes=sum(map(len, content.values())),
        files=len(content),
        finish=_fit_seconds(job, foundation.of(batches)),
        **dict.fromkeys(
            ("core_rows", "evidence", "topic_rows", "whitening", "rotation", "pairs"), 0.0
        ),
        refinement=0.0,
        renewal=0.0,
    )


def _fit_seconds(job: Job, statistics: Any) -> float:
    """Time a fit of as many states as the sample allows, after an untimed fit that compiles."""
    k, rows = job.n_topics, InMemory((statistics,))

    def fitted() -> Any:
        return job.model.fit(rows, job.model.Options(topics=k))

    while True:
        try:
            fitted()
        except NotIdentifiable:
            if k <= 1:
                raise
            k //= 2
            continue
        return timed(fitted)[0]
