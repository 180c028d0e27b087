"""Samples of symbols: how often they occur and follow one another in a part of a shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streaming_moments.lazy_imports import LazyModule
from streaming_moments.storage.counting.reading import steadily
from streaming_moments.storage.counting.symbols.sequences import SequencesForm, read_sequences
from streaming_moments.storage.formats import DEFAULT_LIMITS, ReadLimits
from streaming_moments.storage.shards import Shard, ShardFormat

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = LazyModule("pyarrow"), LazyModule("pyarrow.compute")


@dataclass(frozen=True, eq=False)
class SymbolSample:
    """How often symbols occur, and follow one another, in a part of a shard.

    Parameters
    ----------
    symbols : list of str
        The m symbols.
    counts : (m,) int64
        Of each.
    pairs : (pairs, 3) int64
        A symbol, the one after it, and how often.
    sequences : int
        Read.
    steps, ones : int
        As of `Spans`, of sequences that have names.
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
    """Symbols of the first sequences of a shard, a quota of them or somewhat more.

    Errors as `SequenceReader.read`.
    """
    places: dict[str, int] = {}
    counts: dict[int, int] = {}
    pairs: dict[int, int] = {}
    read = number = steps = ones = 0
    found = read_sequences(shard, form, sequences, limits, storage_options)
    for one, _ in steadily(found, shard, storage_options):
        values = one.values
        coded = values.texts
        if not pa.types.is_dictionary(coded.type):
            coded = coded.dictionary_encode()
        own = [places.setdefault(term, len(places)) for term in coded.dictionary.to_pylist()]
        indices = np.asarray(pc.fill_null(coded.indices, -1), dtype=np.int64)
        symbols = np.where(indices >= 0, np.array([*own, -1], dtype=np.int64)[indices], -1)
        _add(counts, symbols[symbols >= 0])
        joined = np.ones(max(symbols.size - 1, 0), np.bool_)
        inner = values.offsets[1:-1]
        joined[inner[(inner > 0) & (inner < symbols.size)] - 1] = False
        before, after = symbols[:-1][joined], symbols[1:][joined]
        known = (before >= 0) & (after >= 0)
        _add(pairs, before[known] << 32 | after[known])
        number += len(values.offsets) - 1 - one.goes_on
        read += symbols.size
        if one.spans is not None:
            steps, ones = steps + one.spans.steps, ones + one.spans.ones
        if read >= quota:
            break
    keys = np.fromiter(pairs, dtype=np.int64, count=len(pairs))
    often = np.fromiter(pairs.values(), dtype=np.int64, count=len(pairs))
    table = np.stack([keys >> 32, keys & (1 << 32) - 1, often], axis=1)
    total = np.array([counts.get(place, 0) for place in range(len(places))], dtype=np.int64)
    return SymbolSample(list(places), total, table, number, steps, ones)


def _add(sums: dict[int, int], keys: NDArray[np.int64]) -> None:
    kinds, often = np.unique(keys, return_counts=True)
    for key, count in zip(kinds.tolist(), often.tolist(), strict=True):
        sums[key] = sums.get(key, 0) + count
