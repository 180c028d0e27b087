"""Read vectors: the components, or the factors, of all rows of numbers, as Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.inference import posteriors
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture, log_sums
from streaming_moments.models.mixtures.passes import shape_of
from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.claiming import claim_output
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputOptions,
    origins,
    written_each,
)
from streaming_moments.quality.representatives import NearRow
from streaming_moments.storage.counting.named import with_names
from streaming_moments.storage.documents import ids_of
from streaming_moments.storage.files.outputs import parquet_output
from streaming_moments.storage.proportions import proportions_file
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.storage.top_documents import ModelRead, write_near_rows

_ID = [("id", pa.string())]
_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class VectorsResult:
    """What was written of rows of numbers.

    Parameters
    ----------
    files : tuple of str
        One for each shard.
    documents : int
        Records in all.
    without : int
        Those that are no row of numbers: nothing is told of them.
    log_likelihood : float, optional
        Mean of a row, of a mixture.
    nearest : tuple of tuples of NearRow
        Of each component the rows nearest to its mean, where they are asked for.
    """

    files: tuple[str, ...]
    documents: int
    without: int
    log_likelihood: float | None = None
    nearest: tuple[tuple[NearRow, ...], ...] = ()

    def lines(self, output: str) -> list[str]:
        """For people, with the folder where it lies."""
        without = f", {self.without:,} of them no row of numbers" if self.without else ""
        likely = ""
        if self.log_likelihood is not None:
            likely = f", log likelihood of a row {self.log_likelihood:.4f}"
        said = f"{self.documents:,} records{without}{likely}; {len(self.files)} files in {output}"
        near = [
            f"component {number}: {one.id + ', ' if one.id else ''}row {one.row} of {one.source}, "
            f"distance {one.distance:.4g}"
            for number, rows in enumerate(self.nearest)
            for one in rows
        ]
        return [said, *near]

    def as_json(self) -> dict[str, Any]:
        """All of it by name."""
        return {**asdict(self), "files": list(self.files)}


def read_components(
    store: MomentStore,
    model: GaussianMixture,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    options: OutputOptions,
) -> VectorsResult:
    """Write one Parquet file a shard, a row for each record: see `components_schema`.

    Parameters
    ----------
    store, model, shards, output, run
        As of `transform`.
    options : OutputOptions
        `top_documents`: so many rows nearest to each mean are told, and written beside the files;
        `id_column`, of what rows are called.

    Raises
    ------
    InvalidInput
        Two shards whose outputs would have one name.
    ShardError, StoreError, BoundExceeded
        As of `transform`.
    """
    nearest, room = options.top_documents, (run.cluster.threads, run.cluster.memory)
    plan = plan_transform(*shape_of(model), *room, run.limits)
    folder = claim_output(store, model, shards, output, run, options, ("id_column",))
    found = written_each(
        store,
        shards,
        run,
        "reading rows of numbers",
        plan,
        write_components,
        model,
        folder,
        options,
    )
    files, documents, without, logs, near = zip(*found, strict=True)
    read = sum(documents) - sum(without)
    told = tuple(tuple(sorted(chain(*rows))[:nearest]) for rows in zip(*near, strict=True))
    mean = sum(logs) / read if read else None
    if nearest:
        of = ModelRead(store.url, options.name, options.labels)
        write_near_rows(folder, nearest, told, of)
    return VectorsResult(files, sum(documents), sum(without), mean, told)


def read_factors(
    store: MomentStore,
    model: IndependentFactors,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    options: OutputOptions,
) -> VectorsResult:
    """Write one Parquet file a shard, a row for each record: see `factors_schema`.

    Arguments and errors as of `read_components`, but that no rows are told.
    """
    room = run.cluster.threads, run.cluster.memory
    plan = plan_transform(model.dimension, model.n_topics, *room, run.limits)
    folder = claim_output(store, model, shards, output, run, options, ("id_column",))
    found = written_each(
        store, shards, run, "reading rows of numbers", plan, write_factors, model, folder, options
    )
    files, documents, without = zip(*found, strict=True)
    return VectorsResult(files, sum(documents), sum(without))


def write_components(
    shard: Shard, place: int, context: OutputContext
) -> tuple[str, int, int, float, tuple[tuple[NearRow, ...], ...]]:
    """Write those of one shard: URL, records, no rows, their log likelihood, the nearest rows."""
    model, nearest = context.model, context.options.top_documents
    named = context.options.id_column is not None
    name, schema = proportions_file(shard.url), components_schema(model.n_topics, named)
    documents = without = 0
    total = 0.0
    near: list[tuple[NearRow, ...]] = [()] * (model.n_topics if nearest else 0)
    with parquet_output(context.output, name, schema) as (url, writer):
        for found, ids in _read(shard, context):
            values = found.batch.values
            densities = model.log_densities(values)
            logs, shares = log_sums(densities), posteriors(densities)
            columns = [
                *([] if ids is None else [ids]),
                *origins(shard, documents, found.kept.size),
                _where(found.kept, pa.array(shares.argmax(axis=1).astype(np.int32))),
                _where(found.kept, pa.array(logs)),
                _where(
                    found.kept,
                    pa.FixedSizeListArray.from_arrays(pa.array(shares.ravel()), shares.shape[1]),
                ),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            for number in range(len(near)):
                kept = np.flatnonzero(found.kept)
                chosen, distances = _nearest(values, model.means[number], nearest)
                added = [
                    NearRow(
                        distance,
                        shard.url,
                        documents + place,
                        "" if ids is None else ids[place].as_py(),
                    )
                    for distance, place in zip(distances, kept[chosen].tolist(), strict=True)
                ]
                near[number] = tuple(sorted((*near[number], *added))[:nearest])
            documents += found.kept.size
            without += int((~found.kept).sum())
            total += float(logs.sum())
    return url, documents, without, total, tuple(near)


def write_factors(shard: Shard, place: int, context: OutputContext) -> tuple[str, int, int]:
    """Write those of one shard: URL, records, those that are no row of numbers."""
    model = context.model
    named = context.options.id_column is not None
    name, schema = proportions_file(shard.url), factors_schema(model.n_topics, named)
    documents = without = 0
    with parquet_output(context.output, name, schema) as (url, writer):
        for found, ids in _read(shard, context):
            values = model.values(found.batch.values)
            held = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
            columns = [
                *([] if ids is None else [ids]),
                *origins(shard, documents, found.kept.size),
                _where(found.kept, held),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            documents += found.kept.size
            without += int((~found.kept).sum())
    return url, documents, without


def components_schema(k: int, named: bool = False) -> pa.Schema:
    """Columns of a file of a mixture: a row a record, null where it is no row of numbers.

    Records with names have these in front, as `id`.

    Examples
    --------
    >>> components_schema(2).names
    ['source', 'row', 'topic', 'log_likelihood', 'proportions']
    """
    return pa.schema(
        [
            *_ID * named,
            ("source", pa.string()),
            ("row", pa.int64()),
            ("topic", pa.int32()),
            ("log_likelihood", pa.float64()),
            ("proportions", pa.list_(pa.float64(), k)),
        ]
    )


def factors_schema(k: int, named: bool = False) -> pa.Schema:
    """Columns of a file of factors, likewise.

    Examples
    --------
    >>> factors_schema(2).names
    ['source', 'row', 'factors']
    """
    return pa.schema(
        [
            *_ID * named,
            ("source", pa.string()),
            ("row", pa.int64()),
            ("factors", pa.list_(pa.float64(), k)),
        ]
    )


def _read(shard: Shard, context: OutputContext) -> Iterator[tuple[Any, pa.StringArray | None]]:
    """Batches of a shard, and what their records are called, where that is asked for."""
    reading, column = context.reading, context.options.id_column
    batches = reading.read(shard)
    if column is None:
        yield from ((read, None) for read in batches)
        return
    told = reading.store.form, column, reading.limits, reading.storage_options
    named = with_names(batches, _records, ids_of(shard, *told), shard.url)
    yield from ((read, ids) for read, _, ids in named)


def _records(read: Any) -> int:
    return int(read.kept.size)


def _where(kept: NDArray[np.bool_], found: Any) -> Any:
    """What was found of the records that are kept, null of the others."""
    if kept.all():
        return found
    places = np.cumsum(kept) - 1
    return found.take(pa.array(places, mask=~kept))


def _nearest(
    values: NDArray[Any], mean: NDArray[np.float64], number: int
) -> tuple[NDArray[np.intp], list[float]]:
    """Rows nearest to a mean, the first of equals first, and their distances."""
    away = values - mean
    with np.errstate(over="ignore"):
        distances = np.linalg.norm(away, axis=1)
        far = np.isinf(distances)
        # slower, and without squares; what is larger than any number has no place in JSON
        distances[far] = np.minimum(np.hypot.reduce(away[far], axis=1), _LARGEST)
    chosen = np.argsort(distances, kind="stable")[:number]
    return chosen, distances[chosen].tolist()
