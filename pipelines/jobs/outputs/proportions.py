"""Proportions: a task that writes the topic proportions of the documents of one shard."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa

from streaming_moments.columns import Columns
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputContext, seed_of_batch
from streaming_moments.quality.representatives import (
    Representative,
    Representatives,
    clearest,
    share_bounds,
)
from streaming_moments.storage.column_files import write_columns
from streaming_moments.storage.counting.named import NamedDocuments, read_named
from streaming_moments.storage.counting.reading import CountReader
from streaming_moments.storage.proportions import (
    Summary,
    proportion_columns,
    proportions_file,
    said_of_documents,
    said_of_passages,
    written_before,
)
from streaming_moments.storage.shards import Shard, files_of
from streaming_moments.storage.top_documents import beginning

Method = Literal["fixed-point", "gibbs"]
METHODS: tuple[Method, ...] = ("fixed-point", "gibbs")
_LOOKED_AT = 4096  # read at most this many characters to show the beginning of a document


def transform_shard(shard: Shard, place: int, context: OutputContext) -> tuple[str, Summary, bool]:
    """Write the topic proportions of the documents of one shard.

    Returns the URL of the file, its summary, and whether it existed already.
    """
    reading, model, asked = context.reading, context.model, context.asked
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
    # the reader counts documents, because only stores of documents have models of topics
    reader = cast("CountReader", reading.reader)
    documents = read_named(
        shard, reader.form, reader.index, asked.id_column, reader.limits, options
    )
    summary = Summary(representatives=Representatives(asked.top_documents))
    tokens = np.zeros(model.n_topics)

    def parts() -> Iterator[dict[str, Any]]:
        nonlocal summary, tokens
        for number, read in enumerate(documents):
            seed = seed_of_batch(provenance.seeds, number)
            said = model.read(read.counted.batch, asked.method, seed)
            whole = said_of_documents(read.counted, said, asked.foreign_below)
            own = said_of_passages(read.counted, said, whole) if asked.passages else whole
            yield proportion_columns(read, own, shard.url, asked.labels, asked.passages)
            tokens = tokens + whole["length"].array @ whole["proportions"].array
            summary = _with(summary, read, whole, shard.url)

    def told() -> dict[bytes, bytes]:
        nonlocal summary
        total = float(tokens.sum())
        summary = replace(summary, weights=tuple((tokens / total if total else tokens).tolist()))
        return summary.metadata

    name, metadata = proportions_file(shard.url), provenance.metadata
    url = write_columns(context.output, name, parts(), metadata, told)
    return url, summary, False


def _state_of(shard: Shard, storage_options: Mapping[str, object] | None) -> str:
    """Return a hash of the state of a shard's files.

    Output files store only this hash, because a path can be a signed URL, whose signature is
    secret.
    """
    states = [astuple(state) for state in files_of(shard, storage_options)]
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()


def _with(summary: Summary, read: NamedDocuments, whole: Columns, url: str) -> Summary:
    """Return the summary of a shard's output with the documents of a batch added."""
    best, lengths = summary.representatives, whole["length"].array
    return replace(
        summary,
        documents=summary.documents + read.counted.documents,
        tokens=summary.tokens + int(lengths.sum()),
        unknown=summary.unknown + int(whole["unknown"].array.sum()),
        foreign=summary.foreign + int(whole["foreign"].array.sum()),
        empty=summary.empty + int((lengths == 0).sum()),
        representatives=best.joined(_clearest(read, whole, url, best)) if best.number else best,
    )


def _clearest(
    read: NamedDocuments, whole: Columns, url: str, best: Representatives
) -> Representatives:
    """Select documents of a batch that may show a topic more clearly than those of `best`."""
    shares, lengths = whole["proportions"].array, whole["length"].array
    bounds = share_bounds(shares, np.where(whole["foreign"].array, 0, lengths))
    if best.topics:
        # a document that shows a topic only as clearly as the last document of `best` is dropped:
        # of two equal documents, the earlier one stays
        least = [one[-1].bound if len(one) == best.number else 0.0 for one in best.topics]
        bounds = np.where(bounds > np.array(least), bounds, 0.0)

    def document(topic: int, place: int) -> Representative:
        return Representative(
            read.ids[place].as_py(),
            url,
            read.first + place,
            float(shares[place, topic]),
            float(bounds[place, topic]),
            int(lengths[place]),
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
    """Return the beginning of a text on one line, or "" for a document of token ids."""
    if not isinstance(texts, pa.Array):
        return ""
    text = texts[place].as_py()[: 4 * _LOOKED_AT]
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return beginning(text[:_LOOKED_AT])
