"""Decode: the states of all symbols of sequences, as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streaming_moments.errors import InvalidInput
from streaming_moments.models.views.hidden_markov import HiddenMarkovModel
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.claiming import claim_output
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputOptions,
    written_each,
)
from streaming_moments.storage.counting.symbols.named_sequences import Spans
from streaming_moments.storage.counting.symbols.sequences import PIECE
from streaming_moments.storage.files.outputs import parquet_output
from streaming_moments.storage.proportions import proportions_file
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

DECODINGS = ("viterbi", "posterior")
_COPIES = 2  # of the model, one on its way
# Arrays of a row a symbol: posteriors, where Viterbi came from, starts of chunks of one symbol.
_PIECE_ARRAYS = 3
_SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        ("name", pa.string()),
        ("from", pa.int64()),
        ("first", pa.int64()),
        ("length", pa.int64()),
        ("log_likelihood", pa.float64()),
        ("states", pa.list_(pa.int32())),
        ("probabilities", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True)
class DecodeResult:
    """What a decoding wrote.

    Parameters
    ----------
    files : tuple of str
        One for each shard.
    sequences, symbols : int
        In all; symbols of the alphabet.
    log_likelihood : float
        Of the symbols, by the parameters.
    """

    files: tuple[str, ...]
    sequences: int
    symbols: int
    log_likelihood: float

    @property
    def perplexity(self) -> float | None:
        """Of a symbol; None without any."""
        return float(np.exp(-self.log_likelihood / self.symbols)) if self.symbols else None

    def lines(self, output: str) -> list[str]:
        """For people, with the folder where it lies."""
        said = "" if self.perplexity is None else f", perplexity {self.perplexity:.4g} a symbol"
        return [
            f"{self.sequences:,} sequences of {self.symbols:,} known symbols{said}; "
            f"{len(self.files)} files in {output}"
        ]

    def as_json(self) -> dict[str, Any]:
        """All of it by name."""
        return {**asdict(self), "files": list(self.files), "perplexity": self.perplexity}


def decode(
    store: MomentStore,
    model: HiddenMarkovModel,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    options: OutputOptions,
) -> DecodeResult:
    """Write one Parquet file a shard: a row for each sequence, or each part of a long one.

    `name` is of sequences that have one, and `from` the number with which the row begins where they
    are numbered; `first` counts from 0 in what the shard holds together.

    Parameters
    ----------
    store, model, shards, output, run
        As of `transform`.
    options : OutputOptions
        `method`: the likeliest states together by "viterbi", or each by itself by "posterior";
        `probabilities` are those of the states given the whole sequence either way.

    Raises
    ------
    InvalidInput
        Another method, or two shards whose outputs would have one name.
    ShardError, BoundExceeded
        As of `transform`.
    """
    method = options.method
    if method not in DECODINGS:
        raise InvalidInput(f"sequences are decoded by {' or '.join(DECODINGS)}, not by {method}")
    # the table of symbols smoothed and its logarithms; what is known of the symbols of a piece
    beside = 3 * model.emission.nbytes + _PIECE_ARRAYS * 8 * PIECE * (model.n_topics + 1)
    plan = plan_reading(
        run.cluster.threads,
        run.cluster.memory,
        run.limits,
        "a decoding",
        held={"the model": _COPIES * held_bytes(model)},
        beside={f"{model.n_topics} states of symbols": beside},
    )
    folder = claim_output(store, model, shards, output, run, options, ("method",))
    found = written_each(
        store, shards, run, "decoding shards", plan, decode_shard, model, folder, options
    )
    files, sequences, symbols, scores = zip(*found, strict=True)
    return DecodeResult(files, sum(sequences), sum(symbols), float(np.sum(scores)))


def decode_shard(shard: Shard, _place: int, context: OutputContext) -> tuple[str, int, int, float]:
    """Write the states of one shard: URL, sequences, known symbols and their log likelihood."""
    model, reading = context.model, context.reading
    sequences, symbols, total, first = -1, 0, 0.0, 0
    name = proportions_file(shard.url)
    with parquet_output(context.output, name, _SCHEMA) as (url, writer):
        for read in reading.read(shard):
            told: Any = read
            batch: Any = read.batch
            posterior = model.posterior(batch)
            if context.options.method == "viterbi":
                states = model.decode(batch)[1]
            else:
                states = posterior.argmax(axis=1).astype(np.int32)
            own = batch.own
            certain = posterior[np.arange(states.size), states][own]
            scores = model.log_likelihoods(batch)
            numbers = sequences + np.cumsum(batch.begins)
            firsts = np.zeros(batch.documents, dtype=np.int64)
            if batch.documents and not batch.begins[0]:
                firsts[0] = first
            ends = np.concatenate([[0], np.cumsum(batch.lengths)]).astype(np.int32)
            columns = [
                pa.array(numbers),
                *_called(told.spans, batch.documents),
                pa.array(firsts),
                pa.array(batch.lengths),
                pa.array(scores),
                pa.ListArray.from_arrays(ends, pa.array(states[own])),
                pa.ListArray.from_arrays(ends, pa.array(certain)),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA))
            if batch.documents:
                sequences, first = int(numbers[-1]), int(firsts[-1] + batch.lengths[-1])
            symbols += int((batch.symbols[own] >= 0).sum())
            total += float(scores.sum())
    return url, sequences + 1, symbols, total


def _called(spans: Spans | None, number: int) -> list[pa.Array]:
    """What sequences are called and where they begin; nulls where that is not told."""
    names = pa.nulls(number, pa.string()) if spans is None else pa.array(spans.names, pa.string())
    if spans is None or not spans.numbered:
        return [names, pa.nulls(number, pa.int64())]
    return [names, pa.array(spans.places[:, 0])]
