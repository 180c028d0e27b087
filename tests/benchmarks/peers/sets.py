"""Sets of features: latent classes of ours, of own expectation maximisation, and of stepmix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sets
from numpy.typing import NDArray

from peers.cases import OURS, TRUTH, Case
from streaming_moments.sklearn import MomentBernoulliMixture
from streaming_moments.synthetic.sets import probability_error

_FEW = 100  # rows of which a chance of 0 or 1 is not known better


@dataclass(frozen=True, eq=False)
class Marks:
    """Rows of 0 and 1, the number of classes, and the truth or rows held out."""

    rows: NDArray[np.float64]
    classes: int
    truth: sets.Fit | None = None
    held_out: NDArray[np.float64] | None = None


def _ours(polish: int | str, data: Marks, seed: int) -> sets.Fit:
    found = MomentBernoulliMixture(data.classes, polish=polish).fit(data.rows)
    return sets.Fit(found.probabilities_.T, found.weights_)


def _random(data: Marks, seed: int) -> sets.Fit:
    return sets.likeliest(data.rows, data.classes, seed)


def _stepmix(data: Marks, seed: int) -> sets.Fit:
    return sets.stepmix(data.rows, data.classes, seed)


def _truth(data: Marks, seed: int) -> sets.Fit:
    assert data.truth is not None
    return data.truth.settled(data.rows)[0]


WAYS = {
    f"{OURS}, by moments": partial(_ours, 0),
    f"{OURS}, polish auto": partial(_ours, "auto"),
    f"EM, likeliest of {sets.STARTS}": _random,
}


def planted() -> Iterator[Case]:
    """The cases of `sets.py` but the two largest."""
    for case in (*sets.CASES[:3], *sets.LOSING):
        ways = {**WAYS, TRUTH: _truth}
        yield Case(case.name, partial(_drawn, case), ways, _error)


def real() -> Iterator[Case]:
    """Tables whose numbers are above their median or not, a quarter of the rows held out."""
    for which, classes in (("digits", 10), ("breast_cancer", 4), ("wine", 3)):
        ways: dict[str, Any] = {**WAYS, f"stepmix, {sets.STARTS} starts": _stepmix}
        yield Case(f"{which}, {classes} classes", partial(_read, which, classes), ways, _nats)


def _drawn(case: sets.Case, seed: int) -> Marks:
    rng = np.random.default_rng(seed)
    truth = sets.Fit(case.probabilities(rng), rng.dirichlet(np.full(case.components, 10.0)))
    labels = rng.choice(case.components, size=case.rows, p=truth.weights)
    rows = rng.random((case.rows, case.features)) < truth.probabilities.T[labels]
    return Marks(rows.astype(np.float64), case.components, truth)


def _read(which: str, classes: int, seed: int) -> Marks:
    import sklearn.datasets

    rows = getattr(sklearn.datasets, f"load_{which}")().data
    marks = (rows > np.median(rows, axis=0)).astype(np.float64)
    marks = marks[:, marks.any(axis=0)]
    marks = marks[np.random.default_rng(seed).permutation(len(marks))]
    cut = len(marks) * 3 // 4
    return Marks(marks[:cut], classes, held_out=marks[cut:])


def _error(found: sets.Fit, data: Marks) -> dict[str, float]:
    assert data.truth is not None
    return {"error": float(probability_error(found.probabilities, data.truth.probabilities))}


def _nats(found: sets.Fit, data: Marks) -> dict[str, float]:
    assert data.held_out is not None
    bounded = np.clip(found.probabilities, 1 / _FEW, 1 - 1 / _FEW)
    logs = sets.Fit(bounded, found.weights).logs(data.held_out)
    return {"nats": float(np.logaddexp.reduce(logs, axis=1).mean())}
