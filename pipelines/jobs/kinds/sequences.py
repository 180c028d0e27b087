"""Sequences: an alphabet, and a sketch of it, from a pilot of shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.pipelines.jobs.create import of_share, quotas
from streaming_moments.pipelines.jobs.kinds.base import (
    KindJobs,
    Made,
    Sampling,
    Sight,
    create_by,
)
from streaming_moments.pipelines.jobs.kinds.options import OF_WORDS, KindOptions
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.counts.vocabulary import TermFrequencies, Vocabulary, select_terms
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.views.sketches import core_of, sketch_of
from streaming_moments.storage.counting.symbols.sequences import SequencesForm
from streaming_moments.storage.counting.symbols.symbol_samples import sample_symbols

# number of symbols that a pilot reads for each passage that a pilot of documents would read
_SYMBOLS_EACH = 50


def _form(shape: KindOptions) -> SequencesForm:
    return SequencesForm(shape.symbols, shape.names)


def _made(sampling: Sampling) -> Made:
    shape, counting, options = sampling.shape, sampling.counting, sampling.options
    run, limits = sampling.run, sampling.limits
    sequences = _form(shape)
    calls = [
        (shard, counting.form, sequences, _SYMBOLS_EACH * quota, own, run.storage_options)
        for shard, quota in quotas(sampling.shards, options)
        for own in [of_share(limits, quota, options)]
    ]
    samples = run.calls("sampling shards", sample_symbols, calls, sampling.in_flight)
    terms = sorted({term for sample in samples for term in sample.symbols})
    places = {term: place for place, term in enumerate(terms)}
    counts = np.zeros(len(terms), dtype=np.int64)
    parts = []
    for sample in samples:
        own = np.array([places[term] for term in sample.symbols], dtype=np.int64)
        np.add.at(counts, own, sample.counts)
        parts.append(
            np.column_stack([own[sample.pairs[:, 0]], own[sample.pairs[:, 1]], sample.pairs[:, 2]])
        )
    # give the number of occurrences of a symbol in place of the number of documents with a word
    found = TermFrequencies(terms, counts, counts, int(counts.sum()))
    chosen = select_terms(found, options.vocabulary_size, options.min_documents, 1.0)
    alphabet = Vocabulary(tuple(terms[place] for place in chosen), core_of(chosen.size))
    row = np.full(len(terms), -1)
    row[chosen] = np.arange(chosen.size)
    pairs = np.concatenate(parts)
    before, after = row[pairs[:, 0]], row[pairs[:, 1]]
    known = (before >= 0) & (after >= 0)
    shape_of = (chosen.size, chosen.size)
    bigrams = sp.csr_array((pairs[known, 2], (before[known], after[known])), shape=shape_of)
    together = sp.hstack([bigrams, bigrams.T], format="csr")
    sketch = sketch_of(together, alphabet, shape.sketch_columns, options.seed)
    steps = sum(sample.steps for sample in samples)
    numbered = 0 < steps == sum(sample.ones for sample in samples)
    sequences = replace(sequences, numbered=numbered)
    foundation = SequencesFoundation(alphabet, sketch, counting.halves, sequences.named)
    number = sum(sample.sequences for sample in samples)
    origin = (
        f"a sample of {of_number(int(counts.sum()), 'symbol')} of "
        f"{of_number(number, 'sequence')} in {of_number(len(samples), 'shard')}"
    )
    if numbered:
        origin += f"; {sequences.columns[1]} rises by one, and a missing number is a gap"
    return Made(foundation, sequences.to_json(), origin)


def _sights(columns: Mapping[str, str], text_column: str) -> list[Sight]:
    """Find lists of symbols, or a long table with the usual names."""
    long = ("sequence", "time", "symbol")
    if columns.keys() >= set(long):
        return [replace(Sight.of_columns("sequences in columns", long), usual=True)]
    return [
        Sight.of_columns("sequences in column", [name])
        for name, what in columns.items()
        if what in ("words", "ids")
    ]


SEQUENCES = KindJobs(
    SequencesFoundation,
    OF_WORDS | {"columns", "sketch_columns", "symbols"},
    partial(create_by, _made),
    _form,
    sights=_sights,
)
