"""Categorical tables: planted latent trees and real ones; ours, Chow-Liu, and EM on a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hidden.beside import Figure
from hidden.tree_em import likelier_tree, random_tables
from numpy.typing import NDArray
from ours import OURS

from streaming_moments import Basis, MomentStatistics
from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.latent_trees.structure import robinson_foulds
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.counts.tables.columns import TableColumns
from streaming_moments.synthetic.tables import SyntheticTable, latent_tree_table

_HELD_OUT = 5000  # rows of the planted ones
_LEVELS = 3  # of a real number
_LOADED = {"cancer": "breast_cancer"}  # names of scikit-learn


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in two parts, states asked for, and maybe the truth."""

    table: TableColumns
    training: NDArray[np.int64]
    held_out: NDArray[np.int64]
    states: int
    truth: SyntheticTable | None = None


@dataclass(frozen=True, eq=False)
class FoundTree:
    """A tree, and the model that it is of where it has a structure of its own."""

    tree: DirectedTree
    model: LatentTree | None = None


@dataclass(frozen=True)
class PlantedTable:
    """15 columns of 4 categories at the leaves of a random tree of hidden nodes of 3 states."""

    rows: int
    draw: int = 0
    figures = (Figure("excess", "excess, nats a row", 3), Figure("splits", "wrong splits", 0))

    @property
    def name(self) -> str:
        drawn = f", draw {self.draw}" if self.draw else ""
        return f"table planted {self.rows} rows{drawn}"

    def load(self) -> Rows:
        drawn = latent_tree_table(self.rows + _HELD_OUT, seed=self.draw)
        parts = drawn.codes[: self.rows], drawn.codes[self.rows :]
        return Rows(drawn.table, *parts, 3, drawn)

    def score(self, result: FoundTree, data: Rows) -> Mapping[str, float]:
        truth = data.truth
        assert truth is not None
        own, true = (one.log_probabilities(data.held_out) for one in (result.tree, truth.tree))
        found = {"excess": float((true - own).mean())}
        if result.model is not None:
            found["splits"] = robinson_foulds(result.model.structure, truth.structure)
        return found


@dataclass(frozen=True)
class RealTable:
    """A table that a package brings, real numbers in three levels; a quarter is held out.

    "digits", "cancer", "wine" and "diabetes" are of scikit-learn; "affairs", "election" and
    "insurance" (RAND) of statsmodels.
    """

    which: str
    states: int
    seed: int = 0
    figures = (Figure("score", "nats a row, held out", 3),)

    @property
    def name(self) -> str:
        return f"table {self.which}, k = {self.states}"

    def load(self) -> Rows:
        names, values = _read(self.which)
        codes = np.stack([_levels(column) for column in values.T], axis=1)
        kept = [place for place in range(codes.shape[1]) if codes[:, place].max() > 0]
        codes = codes[np.random.default_rng(self.seed).permutation(len(codes))][:, kept]
        terms = tuple(tuple(map(str, range(int(c.max()) + 1))) for c in codes.T)
        table = TableColumns(tuple(names[place] for place in kept), terms)
        cut = len(codes) * 3 // 4
        return Rows(table, codes[:cut], codes[cut:], self.states)

    def score(self, result: FoundTree, data: Rows) -> Mapping[str, float]:
        return {"score": float(result.tree.log_probabilities(data.held_out).mean())}


@dataclass(frozen=True)
class OurTree:
    """LatentTree of the counts of pairs and triples; or Chow-Liu's tree of the same pairs."""

    which: Literal["ours", "Chow-Liu", "independent columns"] = "ours"
    seed: None = None

    @property
    def name(self) -> str:
        return f"{OURS}, defaults" if self.which == "ours" else self.which

    def prepare(self, data: Rows) -> Rows:
        planted = latent_tree_table(500, n_columns=4, n_states=2, n_categories=2, seed=1)
        _fitted(planted.table, planted.codes, 2)  # kernels are compiled once and kept
        return data

    def fit(self, prepared: Rows) -> FoundTree:
        if self.which == "independent columns":
            return FoundTree(_independent(prepared))
        model = _fitted(prepared.table, prepared.training, prepared.states)
        return (
            FoundTree(model.dependence)
            if self.which == "Chow-Liu"
            else FoundTree(model.tree, model)
        )

    def result(self, fitted: FoundTree, prepared: Rows) -> tuple[FoundTree, float]:
        return fitted, float(fitted.tree.log_probabilities(prepared.training).mean())


@dataclass(frozen=True)
class TreeEm:
    """Expectation maximisation over the rows, own: on the true tree, or on that which ours found.

    Parameters
    ----------
    start : str
        "random", drawn by the seed, or "ours": the tables that ours found.
    rounds : int
        At most.
    tolerance : float
        Nats a row below which a round ends it.
    """

    start: Literal["random", "ours"] = "random"
    rounds: int = 1000
    tolerance: float = 1e-5
    seed: int | None = 1

    @property
    def name(self) -> str:
        how = f"{self.rounds} rounds" if self.rounds < 100 else "to convergence"
        return f"EM, {self.start} start, {how}"

    def prepare(self, data: Rows) -> Any:
        return data, None if self.start == "ours" else _skeleton(data)

    def fit(self, prepared: Any) -> tuple[DirectedTree, float]:
        data, skeleton = prepared
        if skeleton is None:
            begun = _fitted(data.table, data.training, data.states).tree
        else:
            begun = random_tables(skeleton, np.random.default_rng(self.seed))
        return likelier_tree(begun, data.training, self.rounds, self.tolerance)

    def result(self, fitted: Any, prepared: Any) -> tuple[FoundTree, float]:
        tree, likelihood = fitted
        return FoundTree(tree), likelihood


def _fitted(table: TableColumns, codes: NDArray[np.int64], states: int) -> LatentTree:
    statistics = MomentStatistics.of(table.batch(codes), Basis.of_table(table))
    return LatentTree.fit(InMemory((statistics,)), LatentTree.Options(topics=states))


def _skeleton(data: Rows) -> DirectedTree:
    """The true tree, or that which ours found."""
    if data.truth is not None:
        return data.truth.tree
    return _fitted(data.table, data.training, data.states).tree


def _independent(data: Rows) -> DirectedTree:
    """A tree whose edges tell nothing."""
    sizes = [len(own) for own in data.table.categories]
    shares = [
        np.bincount(column, minlength=size) + 1.0
        for column, size in zip(data.training.T, sizes, strict=True)
    ]
    tables = [
        np.tile(own / own.sum(), (sizes[0] if place else 1, 1)) for place, own in enumerate(shares)
    ]
    return DirectedTree((-1, *[0] * (len(sizes) - 1)), tuple(range(len(sizes))), tuple(tables))


def _read(which: str) -> tuple[list[str], NDArray[np.float64]]:
    import sklearn.datasets

    if which in ("affairs", "election", "insurance"):
        import statsmodels.api as sm

        names = {"affairs": "fair", "election": "anes96", "insurance": "randhie"}
        data = getattr(sm.datasets, names[which]).load_pandas().data
        return [str(name) for name in data.columns], data.to_numpy(dtype=np.float64)
    found = getattr(sklearn.datasets, f"load_{_LOADED.get(which, which)}")()
    if which == "digits":
        # means of squares of four points
        values = found.data.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
        return [f"p{place}" for place in range(16)], values
    most = 10 if which == "cancer" else found.data.shape[1]
    return [str(name) for name in found.feature_names[:most]], found.data[:, :most]


def _levels(column: NDArray[np.float64]) -> NDArray[np.int64]:
    """Values of few, as they are; of more three levels of as many rows."""
    values, codes = np.unique(column, return_inverse=True)
    if values.size > 10:
        edges = np.unique(np.quantile(column, np.arange(1, _LEVELS) / _LEVELS))
        codes = np.unique(np.searchsorted(edges, column), return_inverse=True)[1]
    return codes.astype(np.int64)
