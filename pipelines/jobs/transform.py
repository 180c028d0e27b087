"""Transform: what a model says of every document or row of some shards, as Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from streaming_moments.errors import InvalidInput
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.storage.completions import SCORES, CompletionsFile
from streaming_moments.storage.documents import read_tables
from streaming_moments.storage.proportions import ProportionsFile, proportions_file
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

Method = Literal["fixed-point", "gibbs"]

# Rows of a table completed at a time: every node of the tree holds its states of each.
_ROWS = 2048


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
        Token-weighted mean proportions of each shard; none of a latent tree.
    scores : mapping
        Of a latent tree, mean log-probability of a row by name, nats.
    """

    files: tuple[str, ...]
    documents: int
    weights: tuple[tuple[float, ...], ...]
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TransformContext:
    """All a transform task needs beside its shard."""

    reading: ReadingContext
    model: TopicModel | LatentTree
    output: str
    method: Method
    seed: int | None
    keep: str | None = None

    __sizeof__ = held_bytes


def transform(
    store: MomentStore,
    model: TopicModel | LatentTree,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    method: Method = "fixed-point",
    seed: int | None = None,
    keep: str | None = None,
) -> TransformResult:
    """Write one Parquet file a shard.

    Of topics: document, length, topic, and its k proportions. Of a latent tree: the columns of the
    table with what is missing completed, the probability of each value, and the log-probability of
    what is known of the row by the tree and by Chow-Liu's.

    Parameters
    ----------
    store : MomentStore
        Whose vocabulary and token policy read the shards.
    model : TopicModel or LatentTree
        Of that vocabulary.
    shards : sequence of Shard
        Need not be counted in the store.
    output : str
        fsspec URL of a folder; a file appears whole or not at all.
    run : Run
        Where to run, and what its steps are told.
    method, seed : str, int or None
        As in `TopicModel.transform`, of topics alone; each shard draws from its own stream of the
        seed.

    keep : str, optional
        Column of the shards, such as the nodes of a graph, that goes with the proportions.

    Raises
    ------
    InvalidInput
        A column of documents that are cut into passages,
        "gibbs" without a seed or of a latent tree, or two shards whose outputs would have one name.
    ShardError
        A shard that cannot be read.
    BoundExceeded
        The memory budget cannot hold a task.
    """
    is_tree = isinstance(model, LatentTree)
    if is_tree and (method != "fixed-point" or seed is not None):
        raise InvalidInput("a latent tree is not sampled; leave out the method and the seed")
    if keep is not None and (is_tree or (store.policy and store.policy.passage_words)):
        raise InvalidInput(
            f"the column {keep!r} goes with whole documents and their proportions; leave out --keep"
        )
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
    told = (output, method, seed, keep)
    context = client.submit(TransformContext, reading, model, *told, pure=False)
    calls = [(shard, place, context) for place, shard in enumerate(shards)]
    written = run.calls(
        "transforming shards",
        complete_shard if is_tree else transform_shard,
        calls,
        plan.in_flight,
    )
    files = tuple(url for url, _, _ in written)
    documents = sum(documents for _, documents, _ in written)
    sums = tuple(own for _, _, own in written)
    if is_tree:
        every = zip(*sums, strict=True)
        means = (sum(own) / max(documents, 1) for own in every)
        return TransformResult(files, documents, (), dict(zip(SCORES, means, strict=True)))
    return TransformResult(files, documents, sums)


def transform_shard(
    shard: Shard, place: int, context: TransformContext
) -> tuple[str, int, tuple[float, ...]]:
    """Write the proportions of one shard: URL, documents, token-weighted mean proportions."""
    reading, model = context.reading, context.model
    assert isinstance(model, TopicModel)
    tokens = np.zeros(model.n_topics)
    documents = 0
    kept = None if context.keep is None else (context.keep, _column(shard, context))
    with ProportionsFile.create(
        context.output, shard.url, model.n_topics, reading.storage_options, kept
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


def _column(shard: Shard, context: TransformContext) -> pa.ChunkedArray:
    """All of the column that is kept."""
    names, reading = [str(context.keep)], context.reading
    told = reading.limits, reading.storage_options
    tables = read_tables(shard, reading.store.form, names, *told)
    return pa.concat_tables([table for table, _ in tables]).column(0)


def complete_shard(
    shard: Shard, place: int, context: TransformContext
) -> tuple[str, int, tuple[float, ...]]:
    """Write the completed rows of one shard: URL, rows, sums of the `SCORES`."""
    reading, model = context.reading, context.model
    assert isinstance(model, LatentTree)
    sums, documents = np.zeros(len(SCORES)), 0
    with CompletionsFile.create(
        context.output, shard.url, model.table, reading.storage_options
    ) as file:
        for read in reading.read(shard):
            codes = model.codes(read.batch)
            for first in range(0, len(codes), _ROWS):
                rows = codes[first : first + _ROWS]
                logs = [tree.log_probabilities(rows) for tree in (model.tree, model.dependence)]
                file.write(documents, rows, *model.tree.completed(rows), logs)
                sums += [own.sum() for own in logs]
                documents += len(rows)
    return file.url, documents, tuple(sums.tolist())
