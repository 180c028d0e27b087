"""Distinct: fits components of sets of features to moments of distinct features only.

A set has a feature once or not at all. So counts of pairs and triples with equal features, such as
pair (i, i), are not moments of a mixture. A mixture of components h with weights w_h and
probabilities p_ih has the moments `sum_h w_h p_ih^2` for the pair (i, i), and
`sum_h w_h p_ih^2 p_lh` for the triple (i, i, l). The fit estimates these entries: first from the
rank of the covariances, as in factor analysis, then in rounds from the components found so far.

A set is a row x of 0 and 1. The fit uses the third moments of projections `z = Q' x`, because they
are a small array.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.errors import NotIdentifiable
from streaming_moments.numerics.packing import unpack
from streaming_moments.statistics.counts.statistics import MomentStatistics

MOST_ROUNDS = 60
_SETTLED = 1e-3  # rounds of `components_of` end when the probabilities change by less than this
_RANK_ROUNDS = 1000
_RANK_SETTLED = 1e-6
_MORE_DIRECTIONS = 5
_ROWS = 64
# Weight, in a least squares fit, of the equation that the mean probability of a feature over the
# components is its frequency in all rows. With this weight, the equation holds to a thousandth. In
# measurements, weight 1, which a feature that all rows have gets, gives equal or larger errors.
_FIRST = 1e3
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Components:
    """Probabilities of the features in each component, and weights of the components.

    probabilities : (n, k) float64, 0 to 1
    weights : (k,) float64, with sum 1
    spectrum : (k - 1,) float64, variance between components, divided by the variance within
        components, along each direction; decreasing
    rounds : number of rounds that estimated the moments of each feature with itself
    """

    probabilities: NDArray[np.float64]
    weights: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    rounds: int


@dataclass(frozen=True, eq=False)
class SetMoments:
    """Moments of single features, and of pairs and triples of distinct features, in sets.

    Q : (core, s) float64, basis of the projections `z = Q' x` of rows x of 0 and 1
    rows : number of sets, including empty ones
    first : (n,) float64, share of the rows with each feature
    pairs : (n, core) float64, number of rows with both features of a pair; 0 if the two are equal
    triples : (s, s, s) float64, `E[z (x) z (x) z]` without the triples in which features are equal
    """

    Q: NDArray[np.float64]
    rows: float
    first: NDArray[np.float64]
    pairs: NDArray[np.float64]
    triples: NDArray[np.float64]

    @classmethod
    def of(cls, statistics: MomentStatistics) -> SetMoments:
        """Compute the moments from the statistics of all rows.

        Raises NotIdentifiable if there are no rows.
        """
        lengths = statistics.length_histogram
        if not lengths.n_documents:
            raise NotIdentifiable("there are no rows yet; count some first")
        core, Q = statistics.basis.core, statistics.basis.matrix.astype(np.float64)
        s, rows = Q.shape[1], float(lengths.n_documents)
        sketch = unpack(statistics.triple_sketch[:core].astype(np.float64), s)
        triples = np.einsum("ia,ibc->abc", Q, sketch, optimize=True)
        # subtract the triples of features in which two or three are equal
        counts = statistics.word_counts[:core, None] * Q
        beside = statistics.pair_counts[:core] @ Q + counts
        squares = Squares.of(Q)
        triples -= squares.in_three_places(beside)
        triples += 2 * squares.times(counts)
        first = statistics.word_counts / rows
        return cls(Q, rows, first, statistics.pair_counts.astype(np.float64), triples / rows)

    @cached_property
    def squares(self) -> Squares:
        """Products `q_i (x) q_i` of each row q_i of the basis Q."""
        return Squares.of(self.Q)

    @cached_property
    def _seen(self) -> NDArray[np.float64]:
        """(n, s) mean over rows x of `x_i z`, with `z = Q' x`, for each feature i.

        The pair of feature i with itself is left out.
        """
        return np.asarray(self.pairs @ self.Q / self.rows)

    @property
    def deviations(self) -> NDArray[np.float64]:
        """(core,) standard deviations of the core features, each 0 or 1 in a row."""
        core = self.first[: len(self.Q)]
        return np.sqrt(np.maximum(core * (1 - core), _LEAST))

    def covariances(self, squares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (n, s) covariances of each feature with the projections z.

        The pair of a feature with itself has the value in `squares`.

        squares : (core,) values of `sum_h w_h p_ih^2`
        """
        core = len(self.Q)
        found = self._seen.copy()
        found[:core] += squares[:, None] * self.Q
        return found - np.outer(self.first, self.first[:core] @ self.Q)


@dataclass(frozen=True, eq=False)
class Squares:
    """(core, s s) products `q_i (x) q_i` of each row q_i of a basis, stored without zero columns.

    Most columns are zero if the basis is the identity.

    columns : number s of columns of the basis
    places : (m,) int64, indices of the nonzero columns
    values : (core, m) float64, the nonzero columns
    """

    columns: int
    places: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, Q: NDArray[np.float64]) -> Squares:
        """Compute the products of a (core, s) basis."""
        either, other = np.divmod(np.arange(Q.shape[1] ** 2), Q.shape[1])
        kept = (np.abs(Q).T @ np.abs(Q)).ravel() > 0
        values = Q[:, either[kept]] * Q[:, other[kept]]
        return cls(Q.shape[1], np.flatnonzero(kept), values)

    def times(self, beside: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (s, s, s) sum of `q_i (x) q_i (x) b_i` over i, for (core, s) rows b_i."""
        found = np.zeros((self.columns**2, self.columns))
        found[self.places] = self.values.T @ beside
        return found.reshape((self.columns,) * 3)

    def in_three_places(self, beside: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (s, s, s) sum of three tensors: with b_i of `times` in each of the places."""
        found = self.times(beside)
        return found + found.transpose(0, 2, 1) + found.transpose(2, 1, 0)


def components_of(moments: SetMoments, k: int, seed: int = 0) -> Components:
    """Find k components from the moments of all rows.

    Raises NotIdentifiable if the pairs identify fewer components.
    """
    if k > 1 and not moments.triples.any():
        raise NotIdentifiable(
            "no row has three features, which are needed to separate components; count more rows"
        )
    most = moments.Q.shape[1] + 1
    if k > most:
        raise NotIdentifiable(
            f"{k} components are asked for, but the {most - 1} columns of the sketch separate at "
            f"most {most}",
            "give more {create.sketch_columns}, or ask for fewer",
        )
    squares = squares_by_rank(moments, k - 1, seed)
    found = _decomposed(moments, squares, np.zeros_like(moments.triples), k, 1)
    for rounds in range(2, MOST_ROUNDS + 1):
        before = found
        found = _decomposed(moments, *_equal(moments, before), k, rounds)
        if _near(found, before):
            break
    return found


def squares_by_rank(moments: SetMoments, rank: int, seed: int) -> NDArray[np.float64]:
    """Estimate the (core,) moments of pairs of a feature with itself, from all other pairs.

    With these values, `sum_h w_h p_ih^2`, the matrix of covariances has rank `rank`.

    Uses HeteroPCA (Zhang, Cai, Wu 2022) with features in units of their standard deviations.
    HeteroPCA alternates two steps: it computes the leading eigenvectors, and replaces the diagonal
    of the matrix by that of the low-rank matrix which they give.
    """
    core, scale = len(moments.Q), moments.deviations
    own = moments.first[:core]
    A = moments.pairs[:core] / moments.rows - np.outer(own, own)
    A /= scale[:, None]
    A /= scale
    diagonal = np.zeros(core)
    size = min(core, rank + _MORE_DIRECTIONS)
    V = np.linalg.qr(np.random.default_rng(seed).standard_normal((core, size)))[0]
    for _ in range(_RANK_ROUNDS if rank else 0):
        before = diagonal
        A[np.arange(core), np.arange(core)] = diagonal
        V = np.linalg.qr(A @ V)[0]
        values, turned = np.linalg.eigh(V.T @ A @ V)
        leading = np.argsort(-values)[:rank]
        columns = V @ turned[:, leading]
        # limit the diagonal to 1, because the variance between components is at most the total
        # variance, which is 1 in these units
        diagonal = np.minimum(columns**2 @ np.maximum(values[leading], 0.0), 1.0)
        if np.abs(diagonal - before).sum() <= _RANK_SETTLED * diagonal.sum():
            break
    return np.asarray(np.square(own) + np.square(scale) * diagonal)


def _decomposed(
    moments: SetMoments,
    squares: NDArray[np.float64],
    triples: NDArray[np.float64],
    k: int,
    rounds: int,
) -> Components:
    """Find components, given the moments `squares` and `triples` of each feature with itself."""
    Q, core = moments.Q, len(moments.Q)
    mean = moments.first[:core] @ Q
    covariances = moments.covariances(squares)
    seen = Q.T @ covariances[:core]
    triangle = np.linalg.cholesky((Q * np.square(moments.deviations)[:, None]).T @ Q)
    scaled = np.linalg.solve(triangle, np.linalg.solve(triangle, (seen + seen.T) / 2).T)
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    values, vectors = values[::-1][: k - 1], vectors[:, ::-1][:, : k - 1]
    positive = int((values > _LEAST).sum())
    if positive < k - 1:
        raise NotIdentifiable(
            f"{k} components are asked for, but pairs of features separate {positive + 1}; ask for "
            "fewer"
        )
    W = np.linalg.solve(triangle.T, vectors) / np.sqrt(values)
    # compute the third moment of `(1, y)` for whitened rows y = W' (z - mean), whose second moment
    # is the identity
    third = np.einsum("abc,ar,bs,ct->rst", moments.triples + triples, W, W, W, optimize=True)
    u = W.T @ mean
    second = np.eye(k - 1)
    for place in range(3):
        third -= np.moveaxis(np.multiply.outer(u, second), 0, place)
    third -= np.multiply.outer(np.multiply.outer(u, u), u)
    tensor = np.zeros((k, k, k))
    tensor[1:, 1:, 1:] = third
    tensor[0, 1:, 1:] = tensor[1:, 0, 1:] = tensor[1:, 1:, 0] = second
    tensor[0, 0, 0] = 1.0
    O = by_joint_diagonalization(tensor)
    weights = np.maximum(np.square(O[0]), _LEAST)
    weights = weights / weights.sum()
    heights = O[1:] / np.where(np.abs(O[0]) > _LEAST, O[0], _LEAST)
    P = np.clip(moments.first[:, None] + (covariances @ W) @ heights, 0.0, 1.0)
    order = np.argsort(-weights, kind="stable")
    found = Components(P[:, order], weights[order], values.copy(), rounds)
    read = by_pairs(moments.pairs, moments.rows, found, moments.first)
    return Components(read, found.weights, found.spectrum, rounds)


def by_pairs(
    pairs: NDArray[np.float64],
    rows: float,
    found: Components,
    first: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the (n, k) probabilities of each feature, from its pairs with other core features.

    For distinct features, `P_ij = sum_h w_h p_jh p_ih` is linear in row i of the probabilities.
    This row is found by least squares. The weight of a pair is inverse to the variance of its
    count, which is nearly proportional to the frequency `E[x_j]`. Triples are used only to separate
    the components.

    pairs : (n, core) float64, pair counts of all rows or of one half
    rows : number of rows counted
    found : components that were found from the triples
    first : (n,) float64 or None, share of these rows with each feature, if known
    """
    core = pairs.shape[1]
    columns = found.probabilities[:core] * found.weights
    scaled = columns / np.maximum(columns.sum(axis=1), _LEAST)[:, None]
    whole = columns.T @ scaled
    right = pairs @ scaled / rows
    if first is not None:
        whole = whole + _FIRST * np.outer(found.weights, found.weights)
        right += _FIRST * np.outer(first, found.weights)
    whole += _LEAST * np.trace(whole) * np.eye(len(whole))
    read = np.empty_like(right)
    read[core:] = np.linalg.solve(whole, right[core:].T).T
    for start in range(0, core, _ROWS):
        own = slice(start, min(start + _ROWS, core))
        without = whole - columns[own, :, None] * scaled[own, None, :]
        read[own] = np.linalg.solve(without, right[own, :, None])[:, :, 0]
    return np.asarray(np.clip(read, 0.0, 1.0))


def _near(found: Components, before: Components) -> bool:
    changed = np.abs(found.probabilities - before.probabilities).sum()
    return bool(changed <= _SETTLED * found.probabilities.sum())


def _equal(
    moments: SetMoments, found: Components
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the moments of pairs and triples with equal features that a mixture would have.

    Those of pairs are (core,), and those of triples are (s, s, s).

    The triples are projected by Q.
    """
    Q = moments.Q
    P = found.probabilities[: len(Q)]
    own = np.square(P) * found.weights
    pairs: NDArray[np.float64] = own.sum(axis=1)
    triples = moments.squares.in_three_places(own @ (P.T @ Q))
    cubes = np.einsum("ih,ih->i", own, P)
    return pairs, triples - 2 * moments.squares.times(cubes[:, None] * Q)
