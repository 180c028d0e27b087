"""Figure 2: seconds, error and adjusted Rand index of the decompositions, n = 100, k = 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from drawn import (
    FIXED_LENGTH,
    N_TOPICS,
    N_WORDS,
    Drawn,
    authors_draw,
    frobenius_error,
    simplex_draw,
)
from matplotlib.figure import Figure
from outcome import Clock, Lines, Outcome
from rivals import ALL_METHODS, COLOURS, LABELS, MARKERS, by_moments

from streaming_moments import TopicModel
from streaming_moments.errors import NotIdentifiable
from streaming_moments.quality.agreement import adjusted_rand_index
from streaming_moments.statistics.counts.estimators import pooled_moments

Records = list[dict[str, Any]]

AUTHORS, SIMPLEX = "the authors'", "simplex"
DRAWS: Mapping[str, Callable[[int, int], Drawn]] = {
    AUTHORS: lambda documents, seed: authors_draw(documents, seed, (FIXED_LENGTH, FIXED_LENGTH)),
    SIMPLEX: simplex_draw,
}
TITLES = {
    AUTHORS: f"the authors' draw, {FIXED_LENGTH} words a document",
    SIMPLEX: "topics uniform on the simplex, 3 to 100 words",
}
CAPTION = (
    "Error: Frobenius norm of the matched topic matrix's difference; ARI: adjusted Rand index of "
    "MAP assignments. Means over the repetitions in which a method gives topics; 'failures' are "
    "the others, where it says that it cannot (NotIdentifiable). Milliseconds: median, CPU, one "
    "thread, moments to topics; the estimation of the moments, the same for all, is outside. A "
    "method decides on the directions; rows of topics are read alike for all."
)


def methods_figure(documents: tuple[int, ...], repetitions: int) -> Outcome:
    """All methods on the same pooled moments, for two ways to draw the parameters."""
    records: Records = []
    for draw_name, drawn_by in DRAWS.items():
        for number in documents:
            for repetition in range(repetitions):
                # other documents and another model each time
                seed = 100_000 * repetition + number
                records += [
                    {"draw": draw_name, "documents": number, "seed": seed, **found}
                    for found in _measured(drawn_by(number, seed), seed)
                ]
    parameters = {
        "documents": documents,
        "repetitions": repetitions,
        "words": N_WORDS,
        "topics": N_TOPICS,
        "draws": TITLES,
        "restarts of the power method": 25,
        "iterations of the power method": 20,
    }
    largest = documents[-1]
    tables = (
        *(_at(records, draw_name, largest) for draw_name in DRAWS),
        _beside_joint(records, documents),
    )

    def draw(figure: Figure) -> None:
        _draw(figure, records, documents)

    return Outcome("fig2", parameters, tuple(records), tables, draw, (13, 8))


def _measured(drawn: Drawn, seed: int) -> Records:
    moments = pooled_moments(drawn.batch)
    found: Records = []
    for method in ALL_METHODS:
        clock = Clock()
        try:
            with clock.running():
                recovered = by_moments(moments, N_TOPICS, method, seed)
        except NotIdentifiable as error:
            found.append({"method": method, "failure": str(error)})
            continue
        model = TopicModel.from_topics(recovered.topics, recovered.weights)
        found.append(
            {
                "method": method,
                "seconds": clock.seconds,
                "error": frobenius_error(recovered.topics, drawn.topics),
                "rand": adjusted_rand_index(model.assign(drawn.batch), drawn.labels),
            }
        )
    return found


def _some(records: Records, draw: str, documents: int, method: str) -> Records:
    wanted = (draw, documents, method)
    return [r for r in records if (r["draw"], r["documents"], r["method"]) == wanted]


def _values(records: Records, draw: str, documents: int, method: str, field: str) -> list[float]:
    return [r[field] for r in _some(records, draw, documents, method) if field in r]


def _mean(records: Records, draw: str, documents: int, method: str, field: str) -> float:
    """NaN where the method always failed."""
    values = _values(records, draw, documents, method, field)
    return float(np.mean(values)) if values else float("nan")


def _failures(records: Records, draw: str, documents: int, method: str) -> int:
    return sum("failure" in r for r in _some(records, draw, documents, method))


def _at(records: Records, draw: str, documents: int) -> Lines:
    base = _median_ms(records, draw, documents, "joint")
    rows = []
    for method in ALL_METHODS:
        milliseconds = _median_ms(records, draw, documents, method)
        rows.append(
            (
                LABELS[method],
                f"{milliseconds:.1f}",
                f"{milliseconds / base:.2f}",
                f"{_mean(records, draw, documents, method, 'error'):.4f}",
                f"{_mean(records, draw, documents, method, 'rand'):.3f}",
                str(_failures(records, draw, documents, method)),
            )
        )
    columns = ("method", "ms", "ms / joint", "error", "ARI", "failures")
    return Lines(f"Figure 2 at N = {documents:,}: {TITLES[draw]}", columns, tuple(rows), CAPTION)


def _median_ms(records: Records, draw: str, documents: int, method: str) -> float:
    values = _values(records, draw, documents, method, "seconds")
    return 1000 * float(np.median(values)) if values else float("nan")


def _beside_joint(records: Records, documents: tuple[int, ...]) -> Lines:
    """Mean error of each method over that of joint, by N, and whether joint is the lowest."""
    rows = []
    for draw in DRAWS:
        for number in documents:
            means = {m: _mean(records, draw, number, m, "error") for m in ALL_METHODS}
            least = min(means, key=lambda m: (np.isnan(means[m]), means[m]))
            ratios = [f"{means[m] / means['joint']:.3f}" for m in ALL_METHODS[1:]]
            failed = sum(_failures(records, draw, number, m) for m in ALL_METHODS)
            cells = (f"{number:,}", f"{means['joint']:.4f}", *ratios, LABELS[least], str(failed))
            rows.append((draw, *cells))
    columns = ("draw", "N", "joint", *(f"{m} / joint" for m in ALL_METHODS[1:]))
    return Lines(
        "Figure 2: mean error of joint, and of the others over it",
        (*columns, "lowest", "failures"),
        tuple(rows),
        "Above 1 a method errs more than joint does.",
    )


def _draw(figure: Figure, records: Records, documents: tuple[int, ...]) -> None:
    fields = (
        ("seconds", "milliseconds, median"),
        ("error", "error (Frobenius), mean"),
        ("rand", "adjusted Rand index, mean"),
    )
    axes = figure.subplots(len(DRAWS), len(fields), squeeze=False)
    for row, draw in zip(axes, DRAWS, strict=True):
        for axis, (field, label) in zip(row, fields, strict=True):
            for method in ALL_METHODS:
                values = [
                    _median_ms(records, draw, number, method)
                    if field == "seconds"
                    else _mean(records, draw, number, method, field)
                    for number in documents
                ]
                style = {"color": COLOURS[method], "marker": MARKERS[method], "markersize": 3}
                width = 2.2 if method == "joint" else 1.1
                axis.plot(documents, values, label=LABELS[method], linewidth=width, **style)
            axis.set(xlabel="documents N", ylabel=label)
            axis.grid(alpha=0.2)
            if field != "rand":
                axis.set_yscale("log")
        row[1].set_title(TITLES[draw], fontsize=10)
    handles = axes[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=len(ALL_METHODS), fontsize=9)
