"""Transform: topic proportions of every document of some shards, as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.models.views.multi_view import MultiViewMixture
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.storage.proportions import ProportionsFile, proportions_file
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

Method = Literal["fixed-point", "gibbs"]


@dataclass(frozen=True)
class TransformResult:
    """What a transform wrote.

    Parameters
    ----------
    files : tuple of str
        URLs of the Parquet files, one a shard, in the order of the shards.
    documents : int
        Rows in all.
    weights : (shards, k) tuple of tuples of float
        Token-weighted mean proportions of each shard.
    """

    files: tuple[str, ...]
    documents: int
    weights: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, eq=False)
class TransformContext:
    """All a transform task needs beside its shard."""

    reading: ReadingContext
    model: TopicModel | MultiViewMixture
    output: str
    method: Method
    seed: int | None

    __sizeof__ = held_bytes


def transform(
    store: MomentStore,
    model: TopicModel | MultiViewMixture,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    method: Method = "fixed-point",
    seed: int | None = None,
) -> TransformResult:
    """Write one Parquet file a shard: document, length, topic, and its k proportions.

    Parameters
    ----------
    store : MomentStore
        Whose vocabulary and token policy read the shards.
    model : TopicModel or MultiViewMixture
        Of that vocabulary, or of those of its views.
    shards : sequence of Shard
        Need not be counted in the store.
    output : str
        fsspec URL of a folder; a file appears whole or not at all.
    run : Run
        Where to run, and what its steps are told.
    method, seed : str, int or None
        As in `TopicModel.transform`; each shard draws from its own stream of the seed.

    Raises
    ------
    InvalidInput
        "gibbs" without a seed, or two shards whose outputs would have one name.
    ShardError
        A shard that cannot be read.
    BoundExceeded
        The memory budget cannot hold a task.
    """
    if method == "gibbs" and seed is None:
        raise InvalidInput("the Gibbs sampler needs a seed; give --seed")
    names = [proportions_file(shard.url) for shard in shards]
    if len(set(names)) < len(names):
        raise InvalidInput("two shards have outputs of one name; transform them separately")
    plan = plan_reading(run.cluster.threads, run.cluster.memory, run.limits)
    limits = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    # made by tasks, so that they outlive any worker
    client = run.cluster.client
    reading = client.submit(ReadingContext.of, store, limits, run.storage_options, pure=False)
    context = client.submit(TransformContext, reading, model, output, method, seed, pure=False)
    calls = [(shard, place, context) for place, shard in enumerate(shards)]
    written = run.calls("transforming shards", transform_shard, calls, plan.in_flight)
    return TransformResult(
        tuple(url for url, _, _ in written),
        sum(documents for _, documents, _ in written),
        tuple(weights for _, _, weights in written),
    )


def transform_shard(
    shard: Shard, place: int, context: TransformContext
) -> tuple[str, int, tuple[float, ...]]:
    """Write the proportions of one shard: URL, documents, token-weighted mean proportions."""
    reading, model = context.reading, context.model
    tokens = np.zeros(model.n_topics)
    documents = 0
    with ProportionsFile.create(
        context.output, shard.url, model.n_topics, reading.storage_options
    ) as file:
        for number, read in enumerate(reading.read(shard)):
            seed = None
            if context.seed is not None:
                stream = np.random.SeedSequence([context.seed, place, number])
                seed = int(stream.generate_state(1)[0])
            proportions = model.transform(read.batch, context.method, seed)
            file.write(documents, read.batch.lengths, proportions)
            tokens += read.batch.lengths @ proportions
            documents += read.batch.documents
    total = float(tokens.sum())
    return file.url, documents, tuple((tokens / total if total else tokens).tolist())
