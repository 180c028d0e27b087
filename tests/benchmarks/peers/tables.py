"""Categorical tables: the shape of tree that ours takes, Chow-Liu, and stepmix."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from hidden.tables import PlantedTable, RealTable, Rows
from hidden.tree_em import likelier_tree

from peers.cases import OURS, TRUTH, Case, best
from streaming_moments.sklearn import MomentLatentTree

CLASSES = (2, 4, 8, 12)


def _ours(told: dict[str, Any], data: Rows, seed: int) -> float:
    way = MomentLatentTree(**{"n_components": data.states, **told})
    return float(way.fit(data.training).score(data.held_out))


def _classes(data: Rows, seed: int) -> float:
    """Latent classes, as many as BIC says, from three starts each."""
    from stepmix.stepmix import StepMix

    told = {"measurement": "categorical", "n_init": 3, "random_state": seed, "progress_bar": 0}
    tried = [StepMix(number, **told).fit(data.training) for number in CLASSES]
    return float(best(tried, lambda one: -one.bic(data.training)).score(data.held_out))


def _truth(data: Rows, seed: int) -> float:
    assert data.truth is not None
    tree, _ = likelier_tree(data.truth.tree, data.training, 1000, 1e-5)
    return float(tree.log_probabilities(data.held_out).mean())


def planted() -> Iterator[Case]:
    """15 columns of 4 categories at the leaves of a random tree of hidden nodes of 3 states."""
    ways = {
        f"{OURS}, by moments": partial(_ours, {}),
        f"{OURS}, polish auto": partial(_ours, {"polish": "auto"}),
        "Chow-Liu": partial(_ours, {"shape": "chow_liu"}),
        TRUTH: _truth,
    }
    for rows in (1000, 5000, 20_000):
        yield Case(f"{rows:,} rows", partial(_drawn, rows), ways, _excess)


def real() -> Iterator[Case]:
    """Tables of scikit-learn and statsmodels, a quarter of the rows held out."""
    predict = {"n_components": "predict"}
    ways = {
        f"{OURS}, predict": partial(_ours, predict),
        f"{OURS}, predict, polish auto": partial(_ours, {**predict, "polish": "auto"}),
        "Chow-Liu": partial(_ours, {"shape": "chow_liu"}),
        "stepmix, by BIC": _classes,
    }
    for which in ("cancer", "wine", "diabetes", "digits", "affairs", "election", "insurance"):
        yield Case(which, partial(_read, which), ways, _nats)


def _drawn(rows: int, seed: int) -> Rows:
    return PlantedTable(rows, seed).load()


def _read(which: str, seed: int) -> Rows:
    return RealTable(which, 2, seed).load()


def _excess(found: float, data: Rows) -> dict[str, float]:
    assert data.truth is not None
    return {"excess nats": float(data.truth.tree.log_probabilities(data.held_out).mean()) - found}


def _nats(found: float, data: Rows) -> dict[str, float]:
    return {"nats": found}
