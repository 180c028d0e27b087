"""Proportions: the topics of the documents of one shard, which a task writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputOptions
from streaming_moments.quality.representatives import (
    Representative,
    Representatives,
    clearest,
    share_bounds,
)
from streaming_moments.storage.counting.named import NamedDocuments, read_named
from streaming_moments.storage.counting.reading import CountReader
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.proportions import (
    ProportionRows,
    ProportionsFile,
    Provenance,
    Summary,
    written_before,
)
from streaming_moments.storage.shards import Shard, files_of
from streaming_moments.storage.top_documents import beginning

Method = Literal["fixed-point", "gibbs"]
METHODS: tuple[Method, ...] = ("fixed-point", "gibbs")
_LOOKED_AT = 4096  # characters of a document, of which it is shown how it begins


def require_seed(method: str, seed: int | None) -> None:
    """Refuse to sample without a seed."""
    if method == "gibbs" and seed is None:
        raise InvalidInput("the Gibbs sampler needs a seed; give --seed")


def drawn(options: OutputOptions) -> tuple[str, ...]:
    """The option `seed` where proportions are drawn by it."""
    return ("seed",) if options.method == "gibbs" else ()


@dataclass(frozen=True, eq=False)
class TransformContext:
    """All a transform task needs beside its shard."""

    reading: ReadingContext
    model: TopicModel
    output: OutputFolder
    provenance: Provenance

    __sizeof__ = held_bytes


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
    before = written_before(context.output, provenance)
    if before is not None:
        return *before, True
    reader = cast("CountReader", reading.reader)  # topics are of documents
    documents = read_named(
        shard, reader.form, reader.index, asked.id_column, reader.limits, options
    )
    with ProportionsFile.create(context.output, provenance, model.n_topics) as file:
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
    return beginning(text[:_LOOKED_AT])
