"""Figure 1: errors of the estimated second and third moments against the number of documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from drawn import N_TOPICS, N_WORDS, VARIED_LENGTHS, authors_draw
from matplotlib.figure import Figure
from outcome import Lines, Outcome

from streaming_moments.decompositions.moments import Moments
from streaming_moments.statistics.counts.estimators import ESTIMATORS, estimate
from streaming_moments.statistics.counts.lengths.bounds import error_radius
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram

DELTA = 0.05
NAMES = {
    "even": "length weights",
    "pooled": "pooled (Theorem 1)",
    "per-document": "Zou et al. 2013",
    "three-words": "three words a document",
}
BOUND = f"radius of Theorem 2, our constants, delta {DELTA}"


def moments_figure(documents: tuple[int, ...], repetitions: int) -> Outcome:
    """Frobenius errors of three estimators on the same documents, of 3 to 99 words."""
    records: list[dict[str, Any]] = []
    for number in documents:
        for seed in range(repetitions):
            drawn = authors_draw(number, seed, VARIED_LENGTHS)
            truth = Moments.of_mixture(drawn.topics, drawn.weights)
            lengths = LengthHistogram.of(drawn.batch.lengths)
            for name in ESTIMATORS:
                found = estimate(drawn.batch, name, seed)
                errors = (found.M2 - truth.M2, found.M3 - truth.M3)
                records += [
                    {
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
        "lengths": VARIED_LENGTHS,
        "draw": "the authors'",
        "delta": DELTA,
    }

    def draw(figure: Figure) -> None:
        for place, order in enumerate((2, 3)):
            axis = figure.add_subplot(1, 2, place + 1)
            for name, marker in zip(ESTIMATORS, "Dos^", strict=True):
                values = [_mean(records, number, order, name, "error") for number in documents]
                axis.plot(documents, values, marker=marker, markersize=4, label=NAMES[name])
            radii = [_mean(records, number, order, "pooled", "radius") for number in documents]
            axis.plot(documents, radii, "k--", linewidth=1, label=BOUND)
            axis.set(xscale="log", yscale="log", xlabel="documents N", title=f"error of M{order}")
            axis.set_ylabel("Frobenius norm, mean")
            axis.grid(which="both", alpha=0.2)
            if not place:
                handles = axis.get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=2, fontsize=9)

    return Outcome("fig1", parameters, tuple(records), (_table(records),), draw, (10, 5))


def _table(records: list[dict[str, Any]]) -> Lines:
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
        "Figure 1: mean Frobenius error of the moments",
        ("documents", *columns, "M2 radius", "M3 radius"),
        tuple(rows),
    )


def _mean(
    records: list[dict[str, Any]], number: int, order: int, estimator: str, field: str
) -> float:
    def wanted(record: Mapping[str, Any]) -> bool:
        place = record["documents"], record["order"], record["estimator"]
        return place == (number, order, estimator)

    return float(np.mean([record[field] for record in records if wanted(record)]))
