"""Cases: data drawn by a seed, ways to fit a model to it, and figures of what they find."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming_moments.errors import InvalidInput, NotIdentifiable

TRUTH = "EM from the truth"
OURS = "ours"  # names of our ways begin so
_NONE = 1e-9  # an error of rounding alone
STARTS = 5  # of peers that draw their start

Way = Callable[[Any, int], Any]
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Case:
    """Data of one shape or source.

    name : what is drawn or read
    load : `load(seed)` draws data, or splits real data
    ways : `way(data, seed)` is what a way finds, by name
    figures : `figures(found, data)`; the first is the error of planted data
    """

    name: str
    load: Callable[[int], Any]
    ways: Mapping[str, Way]
    figures: Callable[[Any, Any], Figures]


def measured(case: Case, draws: int) -> Iterator[tuple[str, ...]]:
    """A line for each way: figures as median and worst, ratio to the truth, CPU seconds."""
    found: dict[str, list[Figures]] = {name: [] for name in case.ways}
    spent: dict[str, list[float]] = {name: [] for name in case.ways}
    ratios: dict[str, list[float]] = {name: [] for name in case.ways}
    warm = case.load(draws)
    for name, way in case.ways.items():
        if name.startswith(OURS):
            _tried(way, warm, draws)  # kernels are compiled once and kept
    for seed in range(draws):
        data = case.load(seed)
        scored: dict[str, Figures] = {}
        for name, way in case.ways.items():
            begun = time.process_time()
            result = _tried(way, data, seed)
            seconds = time.process_time() - begun
            if result is not None:
                scored[name] = case.figures(result, data)
                found[name].append(scored[name])
                spent[name].append(seconds)
        if TRUTH in scored:
            least = _first(scored[TRUTH])
            for name, figures in scored.items():
                own = _first(figures)
                ratios[name].append(
                    own / least if least > _NONE else 1.0 if own <= _NONE else np.inf
                )
    for name in case.ways:
        if not found[name]:
            yield case.name, name, "refused"
            continue
        told = [
            f"{key} {_median_and_worst([one[key] for one in found[name]])}"
            for key in found[name][0]
        ]
        over = _median_and_worst(ratios[name], 2) if ratios[name] else ""
        refused = f", {draws - len(found[name])} refused" if len(found[name]) < draws else ""
        yield case.name, name, "; ".join(told) + refused, over, f"{np.median(spent[name]):.2f}"


def best(tried: list[Any], score: Callable[[Any], float]) -> Any:
    """What says itself that it is the likeliest."""
    return max(tried, key=score)


def _tried(way: Way, data: Any, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what did not converge, or is near 0
        try:
            return way(data, seed)
        except (NotIdentifiable, InvalidInput):
            return None


def _first(figures: Figures) -> float:
    return next(iter(figures.values()))


def _median_and_worst(values: list[float], digits: int = 4) -> str:
    """Median, and the furthest from the best: the least where values are log-likelihoods."""
    worst = max(values) if min(values) >= 0 else min(values)
    return f"{np.median(values):.{digits}f} ({worst:.{digits}f})"
