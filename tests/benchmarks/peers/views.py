"""Mixtures of three views: ours, and expectation maximisation from five random starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from hidden.records import PlantedViews, ViewsEm
from hidden.tables import RealTable
from numpy.typing import NDArray

from peers.cases import STARTS, TRUTH, Case, best
from streaming_moments.sklearn import MomentViews

_LEAST = 1e-6  # chance of a word that no training record has


@dataclass(frozen=True, eq=False)
class Records:
    """Training records of three views, the number of states, and the truth or held-out records."""

    views: list[Any]
    states: int
    truth: Any = None
    held_out: list[Any] | None = None


def _ours(polish: int | str, data: Records, seed: int) -> Any:
    fitted = MomentViews(data.states, polish=polish).fit(data.views)
    return [one.T for one in fitted.components_], fitted.model_.weights


def _em(data: Records, begun: Any) -> Any:
    """Tables, weights and log-likelihood at convergence of a mixture of multinomials."""
    counts = sp.hstack([one.astype(np.float64) for one in data.views], format="csr")
    prepared = data.states, counts, [one.shape[1] for one in data.views]
    return ViewsEm(rounds=1000).fit_from(prepared, *begun)


def _peer(data: Records, seed: int) -> Any:
    k, tried = data.states, []
    for start in range(STARTS):
        rng = np.random.default_rng([seed, start])
        tables = np.vstack([rng.dirichlet(np.ones(one.shape[1]), k).T for one in data.views])
        tried.append(_em(data, (tables, np.full(k, 1 / k))))
    tables, weights, _ = best(tried, lambda one: one[2])
    return tables, weights


def _truth(data: Records, seed: int) -> Any:
    begun = np.vstack(data.truth.tables), data.truth.weights
    return _em(data, begun)[:2]


WAYS = {
    "ours, by moments": partial(_ours, 0),
    "ours, polish auto": partial(_ours, "auto"),
    f"EM, likeliest of {STARTS}": _peer,
}
# rows, words a view (None: one each)
PLANTED = ((3000, None), (30_000, None), (3000, 5.0), (30_000, 5.0), (300, 5.0))
# table, columns
REAL = (
    ("affairs", ("rate_marriage", "religious", "educ")),
    ("affairs", ("age", "yrs_married", "children")),
    ("election", ("TVnews", "selfLR", "educ")),
    ("digits", ("p5", "p6", "p9")),
)


def planted() -> Iterator[Case]:
    """Views of 30, 40 and 50 words, four states."""
    for number, mean in PLANTED:
        words = "one word" if mean is None else f"Poisson({mean:g}) words"
        name = f"{number:,} records, {words} a view"
        yield Case(name, partial(_drawn, number, mean), {**WAYS, TRUTH: _truth}, _error)


def real() -> Iterator[Case]:
    """Three columns of a table, four states."""
    for which, columns in REAL:
        load = partial(_read, which, columns)
        yield Case(f"{which}: {', '.join(columns)}", load, WAYS, _nats)


def _drawn(number: int, mean: float | None, seed: int) -> Records:
    drawn = PlantedViews(number, mean, draw=seed).load()
    return Records([one.to_csr() for one in drawn.batch.views], drawn.weights.size, drawn)


def _read(which: str, columns: tuple[str, ...], seed: int) -> Records:
    rows = RealTable(which, 4, seed).load()
    places = [rows.table.names.index(name) for name in columns]
    sizes = [len(rows.table.categories[place]) for place in places]
    parts = [
        [
            sp.csr_matrix(np.eye(size, dtype=np.int64)[codes[:, place]])
            for place, size in zip(places, sizes, strict=True)
        ]
        for codes in (rows.training, rows.held_out)
    ]
    return Records(parts[0], 4, held_out=parts[1])


def _error(found: Any, data: Records) -> dict[str, float]:
    told = PlantedViews.score(None, found[0], data.truth)  # type: ignore[arg-type]
    return {"error": (told["error"] + 2 * told["others_error"]) / 3}


def _nats(found: Any, data: Records) -> dict[str, float]:
    tables, weights = found
    logs: NDArray[np.float64] = np.log(np.maximum(weights, 1e-300))
    for view, table in zip(data.held_out or [], tables, strict=True):
        logs = logs + view @ np.log(np.maximum(table, _LEAST))
    return {"nats": float(np.logaddexp.reduce(logs, axis=1).mean())}
