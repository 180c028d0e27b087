"""Transform: topic proportions of every document of some shards, as Parquet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pyarrow as pa

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.cluster.memory import plan_transform
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.quality.representatives import (
    Representative,
    Representatives,
    clearest,
    share_bounds,
)
from streaming_moments.storage.counting.named import NamedDocuments, read_named
from streaming_moments.storage.counting.reading import CountReader
from streaming_moments.storage.proportions import (
    ProportionRows,
    ProportionsFile,
    Provenance,
    Summary,
    frame_of,
    proportions_file,
    written_before,
)
from streaming_moments.storage.shards import Shard, files_of
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.storage.top_documents import write_top_documents

if TYPE_CHECKING:
    import pandas as pd

Method = Literal["fixed-point", "gibbs"]
METHODS: tuple[Method, ...] = ("fixed-point", "gibbs")

FOREIGN_BELOW = 0.2  # share of known words
MOST_TOP_DOCUMENTS = 100
_SHOWN = 200  # characters of a document
_LOOKED_AT = 4096  # of which they are taken


@dataclass(frozen=True)
class TransformResult:
    """What a transform wrote.

    Parameters
    ----------
    files : tuple of str
        URLs of the Parquet files, one a shard, in the order of the shards.
    documents : int
        In all.
    weights : (shards, k) tuple of tuples of float
        Token-weighted mean proportions of each shard.
    tokens, unknown : int
        Words of the documents in the vocabulary, and those that are not.
    foreign, empty : int
        Documents of which too few words are known, and those without a known word: they have no
        topic.
    kept : int
        Files that were there before, made of the same.
    representatives : Representatives
        The documents that speak most for each topic.
    storage_options : mapping, optional
        By which the files are read.
    """

    files: tuple[str, ...]
    documents: int
    weights: tuple[tuple[float, ...], ...]
    tokens: int = 0
    unknown: int = 0
    foreign: int = 0
    empty: int = 0
    kept: int = 0
    representatives: Representatives = field(default_factory=lambda: Representatives(0))
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)

    @property
    def unknown_share(self) -> float | None:
        """Of all words; None where there are none."""
        words = self.tokens + self.unknown
        return self.unknown / words if words else None

    def to_frame(self) -> pd.DataFrame:
        """All rows as one pandas frame, by the ids of the documents; a column for each topic.

        Raises
        ------
        StoreError
            A file is gone, or cannot be read.
        """
        return frame_of(self.files, self.storage_options)


@dataclass(frozen=True, eq=False)
class TransformContext:
    """All a transform task needs beside its shard."""

    reading: ReadingContext
    model: TopicModel
    output: str
    provenance: Provenance

    __sizeof__ = held_bytes

    @classmethod
    def of(
        cls, reading: ReadingContext, model: TopicModel, output: str, provenance: Provenance
    ) -> TransformContext:
        """The context, with the mark of the model."""
        digest = hashlib.sha256(json.dumps([model.alpha0, model.name]).encode())
        for array in (model.topics, model.weights, model.word_probabilities):
            digest.update(np.ascontiguousarray(array).data)
        return cls(reading, model, output, replace(provenance, digest=digest.hexdigest()))


def transform(
    store: MomentStore,
    model: TopicModel,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    method: Method = "fixed-point",
    seed: int | None = None,
    *,
    id_column: str | None = None,
    passages: bool = False,
    top_documents: int = 0,
    foreign_below: float = FOREIGN_BELOW,
    name: str = "",
    labels: Mapping[int, str] | None = None,
) -> TransformResult:
    """Write one Parquet file a shard, with a row for each document: see `proportions_schema`.

    A file that is there and was made of the same is kept: the same call goes on where one was
    stopped. What a file was made of is in its metadata.

    Parameters
    ----------
    store : MomentStore
        Whose vocabulary and token policy read the shards.
    model : TopicModel
        Of that vocabulary.
    shards : sequence of Shard
        Need not be counted in the store.
    output : str
        fsspec URL of a folder; a file appears whole or not at all.
    run : Run
        Where to run, and what its steps are told.
    method, seed : str, int or None
        As in `TopicModel.transform`; each shard draws from its own stream of the seed.
    id_column : str, optional
        Column, or JSON field, of what documents are called; without one the files of a folder have
        their names, other documents the name of their shard and their number.
    passages : bool
        Whether to write a row a passage, where documents are cut; else the passages of a document
        are added up, weighted by their tokens.
    top_documents : int
        Documents to find of each topic that speak most for it, up to 100; they are also written,
        with the first 200 characters of each, to `_top_documents.json` in the output.
    foreign_below : float
        A text of whose words a smaller share is known is marked, and has no topic.
    name, labels : str, mapping
        Of a model that is kept, and of its topics.

    Raises
    ------
    InvalidInput
        "gibbs" without a seed, two shards whose outputs would have one name, or a number or share
        out of its range.
    ShardError
        A shard that cannot be read.
    StoreError
        The output cannot be written.
    BoundExceeded
        The memory budget cannot hold a task.
    """
    # Dask is loaded by who has something to compute
    from streaming_moments.pipelines.cluster.tasks import run_in_turn

    if method == "gibbs" and seed is None:
        raise InvalidInput("the Gibbs sampler needs a seed; give --seed")
    if not 0 <= top_documents <= MOST_TOP_DOCUMENTS or not 0 <= foreign_below <= 1:
        raise InvalidInput(
            f"{top_documents} documents of a topic, foreign below {foreign_below:g}; give 0 to "
            f"{MOST_TOP_DOCUMENTS} documents, and a share of 0 to 1"
        )
    names = [proportions_file(shard.url) for shard in shards]
    if len(set(names)) < len(names):
        raise InvalidInput("two shards have outputs of one name; transform them separately")
    room = run.cluster.threads, run.cluster.memory
    passage_words = None if store.policy is None else store.policy.passage_words
    plan = plan_transform(model.n_words, model.n_topics, *room, run.limits, passage_words)
    limits = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    reference = store.models.get(name)
    asked = Provenance(
        shard="",
        state="",
        model=name,
        digest="",
        store=store.url,
        fitted_version=None if reference is None else reference.version,
        method=method,
        seeds=() if seed is None else (seed,),
        id_column=id_column,
        passages=passages,
        foreign_below=foreign_below,
        top_documents=top_documents,
        labels=dict(labels or {}),
        package=version("streaming-moments"),
    )
    # made by tasks, so that they outlive any worker
    cluster = run.cluster
    client = cluster.client
    reading = client.submit(ReadingContext.of, store, limits, run.storage_options, pure=False)
    context = client.submit(TransformContext.of, reading, model, output, asked, pure=False)
    calls = [(shard, place, context) for place, shard in enumerate(shards)]
    step, in_flight = "transforming shards", cluster.workers * plan.in_flight
    results: list[tuple[str, Summary, bool]] = [("", Summary(), False)] * len(calls)
    best = Representatives(top_documents)
    with closing(
        run_in_turn(cluster, transform_shard, calls, in_flight, run.progress, step)
    ) as finished:
        for place, (url, summary, there) in finished:
            # more than a few numbers is held of no more shards than are at work
            best = best.joined(summary.representatives)
            results[place] = url, replace(summary, representatives=Representatives(0)), there
    if top_documents:
        write_top_documents(output, best, asked, run.storage_options)
    summaries = [summary for _, summary, _ in results]
    return TransformResult(
        tuple(url for url, _, _ in results),
        sum(one.documents for one in summaries),
        tuple(one.weights for one in summaries),
        sum(one.tokens for one in summaries),
        sum(one.unknown for one in summaries),
        sum(one.foreign for one in summaries),
        sum(one.empty for one in summaries),
        sum(there for _, _, there in results),
        best,
        run.storage_options,
    )


def transform_shard(
    shard: Shard, place: int, context: TransformContext
) -> tuple[str, Summary, bool]:
    """Write the proportions of one shard: URL, what they are, and whether they were there."""
    reading, model, asked = context.reading, context.model, context.provenance
    options = reading.storage_options
    provenance = replace(
        asked,
        shard=shard.url,
        state=_state_of(shard, options),
        seeds=(*asked.seeds, place) if asked.seeds else (),
    )
    before = written_before(context.output, provenance, options)
    if before is not None:
        return *before, True
    reader = cast("CountReader", reading.reader)  # topics are of documents
    documents = read_named(
        shard, reader.form, reader.index, asked.id_column, reader.limits, options
    )
    with ProportionsFile.create(context.output, provenance, model.n_topics, options) as file:
        summary = Summary(representatives=Representatives(asked.top_documents))
        tokens = np.zeros(model.n_topics)
        for number, read in enumerate(documents):
            method, seed = cast("Method", asked.method), _seed(provenance, number)
            proportions = model.transform(read.counted.batch, method, seed)
            whole = ProportionRows.of_documents(read, proportions, asked.foreign_below)
            file.write(whole.in_passages(read, proportions) if asked.passages else whole)
            tokens += whole.lengths @ whole.proportions
            summary = _with(summary, read, whole, shard.url)
        total = float(tokens.sum())
        weights = tuple((tokens / total if total else tokens).tolist())
        summary = replace(summary, weights=weights)
        file.end(summary)
    return file.url, summary, False


def _seed(provenance: Provenance, number: int) -> int | None:
    """Of a batch: each shard has its own stream."""
    if not provenance.seeds:
        return None
    stream = np.random.SeedSequence([*provenance.seeds, number])
    return int(stream.generate_state(1)[0])


def _state_of(shard: Shard, storage_options: Mapping[str, object] | None) -> str:
    """Mark of the files of a shard, whose paths may hold a signature."""
    states = [astuple(state) for state in files_of(shard, storage_options)]
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()


def _with(summary: Summary, read: NamedDocuments, whole: ProportionRows, url: str) -> Summary:
    """The summary with some more documents."""
    best = summary.representatives
    return replace(
        summary,
        documents=summary.documents + read.documents,
        tokens=summary.tokens + int(whole.lengths.sum()),
        unknown=summary.unknown + int(whole.unknown.sum()),
        foreign=summary.foreign + int(whole.foreign.sum()),
        empty=summary.empty + int((whole.lengths == 0).sum()),
        representatives=best.joined(_clearest(read, whole, url, best)) if best.number else best,
    )


def _clearest(
    read: NamedDocuments, whole: ProportionRows, url: str, best: Representatives
) -> Representatives:
    """Of some documents of a shard those that may be among the best of each topic."""
    bounds = share_bounds(whole.proportions, np.where(whole.foreign, 0, whole.lengths))
    if best.topics:
        # those before come first among equals
        least = [one[-1].bound if len(one) == best.number else 0.0 for one in best.topics]
        bounds = np.where(bounds > np.array(least), bounds, 0.0)

    def document(topic: int, place: int) -> Representative:
        return Representative(
            read.ids[place].as_py(),
            url,
            read.first + place,
            float(whole.proportions[place, topic]),
            float(bounds[place, topic]),
            int(whole.lengths[place]),
            _beginning(read.texts, place),
        )

    found = enumerate(clearest(bounds, best.number))
    return Representatives(
        best.number,
        tuple(
            tuple(document(topic, place) for place in places.tolist()) for topic, places in found
        ),
    )


def _beginning(texts: Any, place: int) -> str:
    """How a text begins, on one line; nothing of token ids."""
    if not isinstance(texts, pa.Array):
        return ""
    text = texts[place].as_py()[: 4 * _LOOKED_AT]
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return " ".join(text[:_LOOKED_AT].split())[:_SHOWN]
