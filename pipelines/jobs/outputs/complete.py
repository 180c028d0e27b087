"""Complete: the rows of tables with what is missing filled in by a latent tree, as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.claiming import claim_output
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputOptions,
    written_each,
)
from streaming_moments.storage.completions import SCORES, CompletionsFile
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

# Rows of a table completed at a time: every node of the tree holds its states of each.
_ROWS = 2048
_NODE_ARRAYS = 4  # beliefs, messages and distributions of a node, and one on its way
_COPIES = 2  # of the model, one on its way


@dataclass(frozen=True)
class CompleteResult:
    """What was written of rows.

    Parameters
    ----------
    files : tuple of str
        One for each shard.
    documents : int
        Rows in all.
    log_probability, chow_liu_log_probability : float
        Of what is known of a row, in the mean, nats: by the tree, and by Chow-Liu's.
    """

    files: tuple[str, ...]
    documents: int
    log_probability: float
    chow_liu_log_probability: float

    def lines(self, output: str) -> list[str]:
        """For people, with the folder where it lies."""
        fits = self.log_probability >= self.chow_liu_log_probability
        better = "" if fits else ", which fits these rows better"
        return [
            f"{self.documents:,} rows, log-probability of what is known of one "
            f"{self.log_probability:.4f} nats in the mean, by Chow-Liu's tree "
            f"{self.chow_liu_log_probability:.4f}{better}; {len(self.files)} files in "
            f"{output}"
        ]

    def as_json(self) -> dict[str, Any]:
        """All of it by name."""
        scores = {name: getattr(self, name) for name in SCORES}
        return {"documents": self.documents, "files": list(self.files), **scores}


def complete(
    store: MomentStore,
    model: LatentTree,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    options: OutputOptions,
) -> CompleteResult:
    """Write one Parquet file a shard, a row for each row: see `completions_schema`.

    Parameters and errors as of `transform`; none of the options tells anything here.
    """
    states = sum(table.shape[1] for tree in (model.tree, model.dependence) for table in tree.tables)
    plan = plan_reading(
        run.cluster.threads,
        run.cluster.memory,
        run.limits,
        "a completion",
        held={"the model": _COPIES * held_bytes(model)},
        beside={f"{states} states of nodes": _NODE_ARRAYS * 8 * _ROWS * states},
    )
    folder = claim_output(store, model, shards, output, run, options)
    found = written_each(
        store, shards, run, "completing rows", plan, complete_shard, model, folder, options
    )
    files, documents, sums = zip(*found, strict=True)
    rows = sum(documents)
    means = (sum(own) / max(rows, 1) for own in zip(*sums, strict=True))
    return CompleteResult(files, rows, *means)


def complete_shard(
    shard: Shard, _place: int, context: OutputContext
) -> tuple[str, int, tuple[float, ...]]:
    """Write the completed rows of one shard: URL, rows, sums of the `SCORES`."""
    reading, model = context.reading, context.model
    sums, documents = np.zeros(len(SCORES)), 0
    with CompletionsFile.create(context.output, shard.url, model.table) as file:
        for read in reading.read(shard):
            codes = model.codes(read.batch)
            for first in range(0, len(codes), _ROWS):
                rows = codes[first : first + _ROWS]
                logs = [tree.log_probabilities(rows) for tree in (model.tree, model.dependence)]
                filled, sure = model.tree.completed(rows)
                file.write(documents, rows, filled, sure, logs)
                sums += [own.sum() for own in logs]
                documents += len(rows)
    return file.url, documents, tuple(sums.tolist())
