"""Statistics whose moments are exactly those given, to recover the model that has them."""

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from streaming_moments import Basis, RowBlock
from streaming_moments.weighted import WeightedStatistics


@dataclass(frozen=True)
class ExactLengths:
    """Totals of documents that nobody drew."""

    C1: float
    C2: float
    C3: float
    weight: float = 1.0
    n_documents: int = 1


def raw_sketch(triples, pairs, word_counts, Q):
    """Packed `sum x_i y y'`, y = Q'x, from counts of distinct positions; Q of the first words."""
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


def statistics_of(M1, M2, M3, core, columns, seed=0):
    """Statistics, floats, of moments of words at distinct positions, by document."""
    rng = np.random.default_rng(seed)
    Q = rng.integers(-127, 128, size=(core, columns)).astype(np.int8)
    lengths = ExactLengths(M1.sum(), M2.sum(), M3.sum())
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


def in_all_places(outer):
    """Of a tensor symmetric in its first two indices, the sum over the places of the third."""
    return outer + outer.transpose(0, 2, 1) + outer.transpose(2, 1, 0)


def same_columns(found, truth):
    """The order in which columns found are those of the truth."""
    size = range(truth.shape[1])
    return np.array(
        min(permutations(size), key=lambda order: np.abs(found[:, list(order)] - truth).sum())
    )
