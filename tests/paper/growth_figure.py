"""Growth: seconds and error of each method with the topics k and the words n, from statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from drawn import frobenius_error
from matplotlib.figure import Figure
from outcome import Clock, Lines, Outcome
from rivals import ALL_METHODS, COLOURS, LABELS, MARKERS, by_statistics, core_moments

from streaming_moments import Basis, MomentStatistics
from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import NotIdentifiable
from streaming_moments.statistics.counts.whitening import whiten
from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus, topic_error

DOCUMENTS, PILOT_DOCUMENTS, SEED = 10_000, 4000, 1
ALPHA0, MEAN_LENGTH = 1.0, 150
MODELS = ("single topic", "LDA")
RIVALS = ("power", "als", "parafac")
CAPTION = (
    f"{DOCUMENTS:,} documents. Seconds: CPU, one thread, from the statistics to the topics, median "
    "of the turns; 'whitening' is the part of them that all methods share. Error: mean L1 distance "
    "and Frobenius norm of matched topics."
)


@dataclass(frozen=True)
class Setting:
    """A planted corpus: its model, words n and topics k."""

    model: str
    words: int
    topics: int

    @property
    def alpha0(self) -> float:
        return ALPHA0 if self.model == "LDA" else 0.0

    def __str__(self) -> str:
        return f"{self.model}, n = {self.words:,}, k = {self.topics}"


def growth_figure(words: tuple[int, ...], topics: tuple[int, ...], turns: int) -> Outcome:
    """All methods on the same statistics of planted corpora."""
    settings = [Setting(m, n, k) for m in MODELS for n in words for k in topics if k < n / 2]
    records = [record for setting in settings for record in _measured(setting, turns)]
    parameters = {
        "documents": DOCUMENTS,
        "words": words,
        "topics": topics,
        "alpha0": ALPHA0,
        "mean length (LDA)": MEAN_LENGTH,
        "lengths (single topic)": (3, 100),
        "seed": SEED,
        "turns": turns,
    }

    def draw(figure: Figure) -> None:
        _draw(figure, records, words, topics)

    tables = (_ratios(records, settings), *_tables(records))
    size = (3.6 * len(words) + 1, 12)
    return Outcome("growth", parameters, tuple(records), tables, draw, size)


def _measured(setting: Setting, turns: int) -> list[dict[str, Any]]:
    n, k = setting.words, setting.topics
    if setting.model == "LDA":
        corpus = lda_corpus(DOCUMENTS, n, k, ALPHA0, MEAN_LENGTH, seed=SEED)
    else:
        corpus = single_topic_corpus(DOCUMENTS, n, k, seed=SEED)
    basis = Basis.from_pilot(corpus.batch.select(0, PILOT_DOCUMENTS), max_topics=k)
    clock = Clock()
    with clock.running():
        statistics = MomentStatistics.of(corpus.batch, basis, codocuments=False)
    base = {"model": setting.model, "words": n, "topics": k, "statistics_seconds": clock.seconds}
    seconds: dict[str, list[float]] = {method: [] for method in (*ALL_METHODS, "whitening")}
    found: dict[str, Any] = {}
    for turn in range(turns):
        # all methods in each turn: a busy minute of the machine meets them all
        with clock.running():
            whiten(core_moments(statistics), basis, k, form_of(setting.alpha0))
        seconds["whitening"].append(clock.seconds)
        for method in ALL_METHODS:
            try:
                with clock.running():
                    found[method] = by_statistics(statistics, k, setting.alpha0, method, turn)
                seconds[method].append(clock.seconds)
            except NotIdentifiable as error:
                found.setdefault(method, str(error))
    records = [{**base, "method": "whitening", "seconds": float(np.median(seconds["whitening"]))}]
    for method in ALL_METHODS:
        topics = found[method]
        if isinstance(topics, str):
            records.append({**base, "method": method, "failure": topics})
            continue
        records.append(
            {
                **base,
                "method": method,
                "seconds": float(np.median(seconds[method])),
                "l1": topic_error(topics, corpus.topics),
                "frobenius": frobenius_error(topics, corpus.topics),
            }
        )
    return records


def _value(records: list[dict[str, Any]], setting: Setting, method: str, field: str) -> float:
    wanted = (setting.model, setting.words, setting.topics, method)
    for record in records:
        if (record["model"], record["words"], record["topics"], record["method"]) == wanted:
            return float(record.get(field, np.nan))
    return float("nan")


def _tables(records: list[dict[str, Any]]) -> list[Lines]:
    rows = []
    for record in records:
        setting = Setting(record["model"], record["words"], record["topics"])
        method = record["method"]
        cells = [_cell(record.get(field), 4) for field in ("l1", "frobenius")]
        if "failure" in record:
            cells = ["fails", "fails"]
        seconds = _cell(record.get("seconds"), 3)
        rows.append((str(setting), LABELS.get(method, method), seconds, *cells))
    columns = ("corpus", "method", "seconds", "L1", "Frobenius")
    return [Lines("Growth: every method", columns, tuple(rows), CAPTION)]


def _ratios(records: list[dict[str, Any]], settings: list[Setting]) -> Lines:
    rows = []
    for setting in settings:
        cells = []
        for rival in RIVALS:
            for ours in ("joint", "feature"):
                one, other = (_value(records, setting, m, "seconds") for m in (rival, ours))
                cells.append(f"{one / other:.2f}")
        shared = _value(records, setting, "whitening", "seconds")
        own = [_value(records, setting, m, "seconds") - shared for m in ("power", "joint")]
        cells.append(f"{own[0] / own[1]:.1f}" if own[1] > 0 else "")
        for rival in ("power", "als"):
            errors = [_value(records, setting, m, "l1") for m in (rival, "joint")]
            cells.append(f"{errors[0] / errors[1]:.3f}")
        rows.append((str(setting), *cells))
    times = tuple(f"{rival} / {ours}" for rival in RIVALS for ours in ("joint", "feature"))
    return Lines(
        "Growth: ratios of seconds, and of L1 errors",
        ("corpus", *times, "power / joint, own", "L1 power / joint", "L1 als / joint"),
        tuple(rows),
        "Above 1 the rival takes longer, or errs more. 'own': without the whitening, which both "
        "share.",
    )


def _cell(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _draw(
    figure: Figure, records: list[dict[str, Any]], words: tuple[int, ...], topics: tuple[int, ...]
) -> None:
    fields = [(m, f) for m in MODELS for f in ("seconds", "l1")]
    names = {"seconds": "seconds", "l1": "topic error (L1)"}
    axes = figure.subplots(len(fields), len(words), squeeze=False, sharex=True, sharey="row")
    for row, (model, field) in zip(axes, fields, strict=True):
        for axis, n in zip(row, words, strict=True):
            for method in ALL_METHODS:
                values = [_value(records, Setting(model, n, k), method, field) for k in topics]
                style = {"color": COLOURS[method], "marker": MARKERS[method], "markersize": 4}
                width = 2.2 if method == "joint" else 1.1
                axis.plot(topics, values, label=LABELS[method], linewidth=width, **style)
            axis.set(xscale="log", yscale="log", title=f"{model}, n = {n:,}")
            axis.set_xticks(topics, [str(k) for k in topics])
            axis.minorticks_off()
            axis.grid(alpha=0.2)
        row[0].set_ylabel(names[field])
    for axis in axes[-1]:
        axis.set_xlabel("topics k")
    handles = axes[0][-1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, fontsize=9)
