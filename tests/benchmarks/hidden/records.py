"""Records in three views: planted mixtures; ours and expectation maximisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from hidden.beside import Figure
from numpy.typing import NDArray
from ours import OURS
from scipy.optimize import linear_sum_assignment

from streaming_moments.sklearn import MomentViews
from streaming_moments.synthetic.hidden import SyntheticViews, view_records

_LEAST = 1e-12


@dataclass(frozen=True)
class PlantedViews:
    """Views of 30, 40 and 50 words, four states; `mean` words a view, or one each."""

    number: int
    mean: float | None
    draw: int = 0
    figures = (Figure("error", "rows view", 3), Figure("others_error", "other views", 3))

    @property
    def name(self) -> str:
        words = "one word" if self.mean is None else f"Poisson({self.mean:g}) words"
        drawn = f", draw {self.draw}" if self.draw else ""
        return f"views planted {self.number}, {words} a view{drawn}"

    def load(self) -> SyntheticViews:
        return view_records(self.number, mean=self.mean, seed=self.draw)

    def score(self, result: list[NDArray[np.float64]], data: SyntheticViews) -> Mapping[str, float]:
        """Columns of all views are matched by those of the rows view."""
        apart = [
            np.abs(true[:, :, None] - own[:, None, :]).sum(axis=0)
            for true, own in zip(data.tables, result, strict=True)
        ]
        places = linear_sum_assignment(apart[0])
        errors = [float(one[places].mean()) for one in apart]
        return {"error": errors[0], "others_error": float(np.mean(errors[1:]))}


@dataclass(frozen=True)
class OurViews:
    """MomentViews."""

    columns: int | None = None
    refine: int = 50
    seed: None = None

    @property
    def name(self) -> str:
        if self.columns:
            return f"{OURS}, {self.columns} columns"
        return f"{OURS}, {'defaults' if self.refine == 50 else f'refine {self.refine}'}"

    def prepare(self, data: SyntheticViews) -> Any:
        matrices = [view.to_csr() for view in data.batch.views]
        k = data.weights.size
        # kernels are compiled once and kept
        self._asked(2).fit([one[:500] for one in matrices])
        return k, matrices

    def fit(self, prepared: Any) -> MomentViews:
        k, matrices = prepared
        return self._asked(k).fit(matrices)

    def _asked(self, k: int) -> MomentViews:
        return MomentViews(k, sketch_columns=self.columns, refine=self.refine)

    def result(self, fitted: MomentViews, prepared: Any) -> tuple[Any, float]:
        return [one.T for one in fitted.components_], float("nan")


@dataclass(frozen=True)
class ViewsEm:
    """Expectation maximisation of a mixture of multinomials in each view, own, to convergence."""

    rounds: int = 2000
    tolerance: float = 1e-7  # nats a record and round
    seed: int = 1

    @property
    def name(self) -> str:
        return "EM over the records, one random start"

    def prepare(self, data: SyntheticViews) -> Any:
        matrices = [view.to_csr().astype(np.float64) for view in data.batch.views]
        return data.weights.size, sp.hstack(matrices, format="csr"), [m.shape[1] for m in matrices]

    def fit(self, prepared: Any) -> Any:
        k, _, sizes = prepared
        rng = np.random.default_rng(self.seed)
        tables = np.vstack([rng.dirichlet(np.ones(n), k).T for n in sizes])
        found, _, likelihood = self.fit_from(prepared, tables, np.full(k, 1 / k))
        return found, likelihood

    def fit_from(
        self, prepared: Any, tables: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> tuple[list[NDArray[np.float64]], NDArray[np.float64], float]:
        """Tables of the views, weights and nats a record, from a start."""
        _, counts, sizes = prepared
        cuts, before = np.cumsum(sizes)[:-1], -np.inf
        for _ in range(self.rounds):
            logs = counts @ np.log(np.maximum(tables, _LEAST)) + np.log(weights)
            most = logs.max(axis=1, keepdims=True)
            shares = np.exp(logs - most)
            totals = shares.sum(axis=1, keepdims=True)
            likelihood = float((most + np.log(totals)).mean())
            shares /= totals
            sums = np.split(counts.T @ shares, cuts)
            tables = np.vstack([one / one.sum(axis=0) for one in sums])
            weights = shares.mean(axis=0)
            if likelihood - before < self.tolerance:
                break
            before = likelihood
        return np.split(tables, cuts), weights, likelihood

    def result(self, fitted: Any, prepared: Any) -> tuple[Any, float]:
        return fitted
