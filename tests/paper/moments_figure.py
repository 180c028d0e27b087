"""Figure 1: errors of the estimated second and third moments against the number of documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from drawn import (
    MEAN_LENGTH,
    N_TOPICS,
    N_WORDS,
    SPREAD,
    VARIED_LENGTHS,
    authors_draw,
    lognormal_lda,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from outcome import Lines, Outcome

from streaming_moments import CountBatch
from streaming_moments.decompositions.moments import Moments
from streaming_moments.statistics.counts.estimators import ESTIMATORS, estimate
from streaming_moments.statistics.counts.lengths.bounds import error_radius
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram

Records = list[dict[str, Any]]

DELTA = 0.05
NAMES = {
    "even": "length weights",
    "pooled": "pooled (Theorem 1)",
    "per-document": "Zou et al. 2013",
    "three-words": "three words a document",
}
BOUND = f"radius of Theorem 2, our constants, delta {DELTA}"


AUTHORS, LOGNORMAL = "the authors'", "LDA"
TITLES = {
    AUTHORS: f"the authors' draw, {VARIED_LENGTHS[0]} to {VARIED_LENGTHS[1]} words a document",
    LOGNORMAL: f"LDA, lengths lognormal, mean {MEAN_LENGTH}, sigma {SPREAD:g}",
}


def moments_figure(documents: tuple[int, ...], repetitions: int) -> Outcome:
    """Frobenius errors of all estimators on the same documents, in the paper's way and of LDA."""
    records: list[dict[str, Any]] = []
    for draw_name in TITLES:
        for number in documents:
            for seed in range(repetitions):
                batch, truth = _drawn(draw_name, number, seed)
                lengths = LengthHistogram.of(batch.lengths)
                for name in ESTIMATORS:
                    found = estimate(batch, name, seed)
                    errors = (found.M2 - truth.M2, found.M3 - truth.M3)
                    records += [
                        {
                            "draw": draw_name,
                            "documents": number,
                            "seed": seed,
                            "estimator": name,
                            "order": order,
                            "error": float(np.linalg.norm(error)),
                            "radius": error_radius(lengths, DELTA, order),
                        }
                        for order, error in zip((2, 3), errors, strict=True)
                    ]
    parameters = {
        "documents": documents,
        "repetitions": repetitions,
        "words": N_WORDS,
        "topics": N_TOPICS,
        "draws": TITLES,
        "delta": DELTA,
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(TITLES), 2, squeeze=False)
        for row, draw_name in zip(axes, TITLES, strict=True):
            for axis, order in zip(row, (2, 3), strict=True):
                _curves(axis, _of(records, draw_name), documents, order)
                axis.set_title(f"error of M{order}: {TITLES[draw_name]}", fontsize=9)
        handles = axes[0][0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=2, fontsize=9)

    tables = tuple(_table(name, _of(records, name)) for name in TITLES)
    return Outcome("fig1", parameters, tuple(records), tables, draw, (11, 9))


def _drawn(name: str, documents: int, seed: int) -> tuple[CountBatch, Moments]:
    if name == LOGNORMAL:
        return lognormal_lda(documents, seed)
    drawn = authors_draw(documents, seed, VARIED_LENGTHS)
    return drawn.batch, Moments.of_mixture(drawn.topics, drawn.weights)


def _of(records: Records, name: str) -> Records:
    return [record for record in records if record["draw"] == name]


def _curves(axis: Axes, records: Records, documents: tuple[int, ...], order: int) -> None:
    for name, marker in zip(ESTIMATORS, "Dos^", strict=True):
        values = [_mean(records, number, order, name, "error") for number in documents]
        axis.plot(documents, values, marker=marker, markersize=4, label=NAMES[name])
    radii = [_mean(records, number, order, "pooled", "radius") for number in documents]
    axis.plot(documents, radii, "k--", linewidth=1, label=BOUND)
    axis.set(xscale="log", yscale="log", xlabel="documents N", ylabel="Frobenius norm, mean")
    axis.grid(which="both", alpha=0.2)


def _table(draw_name: str, records: Records) -> Lines:
    numbers = sorted({record["documents"] for record in records})
    rows = []
    for number in numbers:
        cells = [
            f"{_mean(records, number, order, name, 'error'):.5f}"
            for order in (2, 3)
            for name in ESTIMATORS
        ]
        radii = [_mean(records, number, order, "pooled", "radius") for order in (2, 3)]
        rows.append((f"{number:,}", *cells, *(f"{radius:.3f}" for radius in radii)))
    columns = tuple(f"M{order} {name}" for order in (2, 3) for name in ESTIMATORS)
    return Lines(
        f"Figure 1: mean Frobenius error of the moments, {TITLES[draw_name]}",
        ("documents", *columns, "M2 radius", "M3 radius"),
        tuple(rows),
    )


def _mean(records: Records, number: int, order: int, estimator: str, field: str) -> float:
    def wanted(record: Mapping[str, Any]) -> bool:
        place = record["documents"], record["order"], record["estimator"]
        return place == (number, order, estimator)

    return float(np.mean([record[field] for record in records if wanted(record)]))
