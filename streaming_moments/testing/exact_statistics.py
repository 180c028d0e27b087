"""Statistics that have exactly the moments of a model, to test whether a fit recovers the model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.weighted import WeightedStatistics
from streaming_moments.statistics.row_block import RowBlock

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ExactLengths:
    """Normalising constants of statistics that come from a model instead of documents."""

    C1: float
    C2: float
    C3: float
    weight: float = 1.0
    n_documents: int = 1
    is_pooled: bool = True


def raw_sketch(triples: Array, pairs: Array, word_counts: Array, Q: Array) -> Array:
    """Return packed `sum x_i y y'`, where y = Q'x, from sums over triples of distinct positions."""
    core, columns = Q.shape
    i = np.arange(len(word_counts))
    raw = triples.copy()
    raw[i, i, :] += pairs
    raw[i, :, i] += pairs
    raw[:, i, i] += pairs
    raw[i, i, i] += word_counts
    sketch = np.einsum("ijk,ja,kb->iab", raw[:, :core, :core], Q, Q)
    rows, cols = np.triu_indices(columns)
    return np.ascontiguousarray(sketch[:, rows, cols])


def statistics_of(
    M1: Array, M2: Array, M3: Array, core: int, columns: int, seed: int = 0
) -> WeightedStatistics:
    """Make floating point statistics with these moments of words at distinct positions."""
    rng = np.random.default_rng(seed)
    Q = rng.integers(-127, 128, size=(core, columns)).astype(np.int8)
    lengths: Any = ExactLengths(M1.sum(), M2.sum(), M3.sum())
    return WeightedStatistics(
        Basis(Q, len(M1)),
        RowBlock(),
        lengths,
        M1,
        M1,
        np.ascontiguousarray(M2[:, :core]),
        raw_sketch(M3, M2, M1, Q.astype(np.float64)),
        None,
    )


def in_all_places(outer: Array) -> Array:
    """Return the sum of a tensor over the three places that its last index can take.

    If the tensor is symmetric in its first two indices, the sum is symmetric in all three.
    """
    return outer + outer.transpose(0, 2, 1) + outer.transpose(2, 1, 0)


def same_columns(found: Array, truth: Array) -> NDArray[np.int64]:
    """Return the order of the found columns in which they match the true columns best."""
    size = range(truth.shape[1])
    return np.array(
        min(permutations(size), key=lambda order: np.abs(found[:, list(order)] - truth).sum())
    )
