"""Samples of symbols: frequencies of symbols, and of pairs of symbols, in a part of a shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from streaming_moments.storage.counting.reading import steadily
from streaming_moments.storage.counting.symbols.sequences import SequencesForm, read_sequences
from streaming_moments.storage.formats import DEFAULT_LIMITS, ReadLimits
from streaming_moments.storage.lazy_libraries import pa, pc
from streaming_moments.storage.shards import Shard, ShardFormat

_PIECE = 1 << 16  # number of symbols that are read between two checks of the memory
# Bytes for each symbol (besides its characters) and each pair in a pilot. Jobs reserve a multiple
# of this, as an entry of a Python dictionary takes some 300 bytes.
_ENTRY_BYTES = 48


@dataclass(frozen=True, eq=False)
class SymbolSample:
    """Frequencies of m symbols, and of pairs of adjacent symbols, in a part of a shard.

    counts : (m,) int64, number of occurrences of each symbol
    pairs : (pairs, 3) int64: a symbol, the next symbol, and the number of occurrences
    sequences : number of sequences read
    steps, ones : as in `Spans`, for sequences with names
    """

    symbols: list[str]
    counts: NDArray[np.int64]
    pairs: NDArray[np.int64]
    sequences: int
    steps: int = 0
    ones: int = 0


def sample_symbols(
    shard: Shard,
    form: ShardFormat,
    sequences: SequencesForm,
    quota: int,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
) -> SymbolSample:
    """Count the symbols of the first sequences of a shard, up to slightly more than a quota.

    Reads fewer sequences if the different symbols, and pairs of them, take more than
    `limits.pilot_bytes`. Raises as `SequenceReader.read`.
    """
    places: dict[str, int] = {}
    counts: dict[int, int] = {}
    pairs: dict[int, int] = {}
    read = number = steps = ones = nbytes = 0
    found = read_sequences(shard, form, sequences, limits, storage_options)
    for one, _ in steadily(found, shard, storage_options):
        offsets, size, looked = one.values.offsets, len(one.values.texts), 0
        # whether each symbol is in the same sequence as the previous one
        joined = np.ones(size + 1, np.bool_)
        joined[offsets[:-1]] = False
        last = np.empty(0, np.int64)
        # read a long list in parts that fit in memory, because it may have a million different
        # symbols
        while looked < size and nbytes <= limits.pilot_bytes:
            held = len(places), len(pairs)
            symbols = _coded(one.values.texts[looked : looked + _PIECE], places)
            _add(counts, symbols[symbols >= 0])
            chain = np.concatenate([last, symbols])
            looked += symbols.size
            before, after = chain[:-1], chain[1:]
            known = joined[looked - after.size : looked] & (before >= 0) & (after >= 0)
            _add(pairs, before[known] << 32 | after[known])
            last = chain[-1:]
            nbytes += sum(map(len, islice(places, held[0], None)))
            nbytes += _ENTRY_BYTES * (len(places) - held[0] + len(pairs) - held[1])
        number += (
            int(np.count_nonzero(offsets[:-1] < looked)) if looked < size else len(offsets) - 1
        )
        number -= one.goes_on
        read += looked
        if one.spans is not None:
            steps, ones = steps + one.spans.steps, ones + one.spans.ones
        if read >= quota or nbytes > limits.pilot_bytes:
            break
    keys = np.fromiter(pairs, dtype=np.int64, count=len(pairs))
    often = np.fromiter(pairs.values(), dtype=np.int64, count=len(pairs))
    table = np.stack([keys >> 32, keys & (1 << 32) - 1, often], axis=1)
    total = np.array([counts.get(place, 0) for place in range(len(places))], dtype=np.int64)
    return SymbolSample(list(places), total, table, number, steps, ones)


def _coded(texts: pa.Array, places: dict[str, int]) -> NDArray[np.int64]:
    """Return the (symbols,) int64 number of each symbol; -1 if the symbol is missing.

    New symbols are added to `places` with the next free numbers.
    """
    coded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
    indices = np.asarray(pc.fill_null(coded.indices, -1), dtype=np.int64)
    used, inverse = np.unique(indices, return_inverse=True)
    found = np.full(used.size, -1, dtype=np.int64)
    terms = coded.dictionary.take(pa.array(used[used >= 0])).to_pylist()
    found[used >= 0] = [places.setdefault(term, len(places)) for term in terms]
    return found[inverse]


def _add(sums: dict[int, int], keys: NDArray[np.int64]) -> None:
    kinds, often = np.unique(keys, return_counts=True)
    for key, count in zip(kinds.tolist(), often.tolist(), strict=True):
        sums[key] = sums.get(key, 0) + count
