"""Decode: write the states of all symbols of sequences as Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.jobs.outputs.records import Part, write_records
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputJob,
    Written,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.counting.symbols.named_sequences import Spans
from streaming_moments.storage.counting.symbols.sequences import PIECE
from streaming_moments.storage.shards import Shard

DECODINGS = ("viterbi", "posterior")
# A task holds this many arrays for a piece of a shard: posteriors, back pointers of the Viterbi
# algorithm, and start distributions. Each can have as many rows as the piece has symbols. Start
# distributions need one row for each sequence, but every sequence may have only one symbol.
_PIECE_ARRAYS = 3


def decode(job: OutputJob) -> Written:
    """Write one Parquet file for each shard: a row for each sequence, or each part of a long one.

    Column `name` is null for sequences without a name. `from` is the number of the first symbol of
    the row, if the symbols are numbered. `first` is the position of this symbol in its sequence;
    position 0 is the first symbol that the shard has of the sequence.

    Option `method` chooses the most likely sequence of states, "viterbi", or the most likely state
    of each symbol, "posterior". In both cases `probabilities` use the whole sequence. Raises
    InvalidInput if the method is unknown, or two shards would write the same file. Raises
    ShardError, BoundExceeded as `transform` does.
    """
    model, method = job.model, job.options.method
    if method not in DECODINGS:
        raise InvalidInput(f"sequences are decoded by {' or '.join(DECODINGS)}, not by {method}")
    # each task holds the smoothed emission table and its logarithms, and the results of one piece
    beside = 3 * model.emission.nbytes + _PIECE_ARRAYS * 8 * PIECE * (model.n_topics + 1)
    plan = job.plan("a decoding", f"{model.n_topics} states of symbols", beside)
    found = write_records(job, "decoding shards", plan, _read, ("method",))
    sequences, symbols = found.added("sequences"), found.added("symbols")
    score = float(np.sum([one["log_likelihood"] for one in found.totals]))
    perplexity = float(np.exp(-score / symbols)) if symbols else None
    told = () if perplexity is None else (f"Perplexity {perplexity:.4g} per symbol.",)
    facts = {"files": found.urls, "sequences": sequences, "symbols": symbols}
    facts |= {"log_likelihood": score, "perplexity": perplexity}
    said = f"{of_number(sequences, 'sequence')} of {of_number(symbols, 'known symbol')}"
    return Written(facts, said, told)


def _read(shard: Shard, place: int, context: OutputContext) -> Iterator[Part]:
    """Yield a row for each sequence of a batch, or for each part of a long one."""
    sequences, first = -1, 0
    for read in context.reading.read(shard):
        told: Any = read
        batch: Any = read.batch
        said = context.model.read(batch, context.asked.method)
        numbers = sequences + np.cumsum(batch.begins)
        firsts = np.zeros(batch.documents, dtype=np.int64)
        if batch.documents and not batch.begins[0]:
            firsts[0] = first
        scores = said["log_likelihood"].array
        yield (
            {
                "sequence": pa.array(numbers),
                **_called(told.spans, batch.documents),
                "first": pa.array(firsts),
                "length": pa.array(batch.lengths),
                **said,
            },
            {
                "sequences": batch.sequences,
                "symbols": int((batch.symbols[batch.own] >= 0).sum()),
                "log_likelihood": float(scores.sum()),
            },
        )
        if batch.documents:
            sequences, first = int(numbers[-1]), int(firsts[-1] + batch.lengths[-1])


def _called(spans: Spans | None, number: int) -> dict[str, pa.Array]:
    """Return columns `name` and `from`: names of sequences, and numbers of their first symbols.

    A column is null where these are unknown.
    """
    names = pa.nulls(number, pa.string()) if spans is None else pa.array(spans.names, pa.string())
    if spans is None or not spans.numbered:
        return {"name": names, "from": pa.nulls(number, pa.int64())}
    return {"name": names, "from": pa.array(spans.places[:, 0])}
