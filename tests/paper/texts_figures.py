"""Figures 3 and 4 and Table 1: topics of real texts, by moments and by Gibbs sampling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from inference import COHERENCE_WORDS, GIBBS_ETA, GIBBS_SEED, Counted, Inferred, record
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from outcome import Lines, Outcome
from texts import PASSAGE_WORDS, Texts

from streaming_moments.numerics.relevance import relevance, top_words

LAMBDA = 0.7
SHOWN_WORDS = 10
COMMEDIA_ALPHA0, AREA_TOPICS = 0.2, 3
ADDRESS_ALPHA0, ADDRESS_TOPICS = 0.2, 18

Records = list[dict[str, Any]]

SINGLE, LDA, GIBBS = "SVTD, single topic", "SVTD, LDA", "Gibbs sampling, LDA"
PASSAGES = f"SVTD, LDA on passages of {PASSAGE_WORDS} words"
STYLES = {SINGLE: "C0s-", LDA: "C3o-", PASSAGES: "C1D-", GIBBS: "C7^-"}


def commedia_figure(texts: Texts, topics: tuple[int, ...], iterations: int) -> Outcome:
    """Figure 3: coherence and seconds by k, and the areas of three topics over the cantos."""
    cantos = Counted.of(texts.batch, texts.batch, max(topics))
    short = Counted.of(texts.batch, texts.passages, max(topics))
    a0 = COMMEDIA_ALPHA0
    records: Records = []
    for k in topics:
        records += [
            record(SINGLE, k, cantos.by_moments(k, 0.0), cantos),
            record(LDA, k, cantos.by_moments(k, a0), cantos),
            record(PASSAGES, k, short.by_moments(k, a0), short),
            record(GIBBS, k, cantos.by_gibbs(k, a0, iterations), cantos),
        ]
    shown = {
        LDA: cantos.by_moments(AREA_TOPICS, a0),
        GIBBS: cantos.by_gibbs(AREA_TOPICS, a0, iterations),
    }
    found = {name: inferred for name, inferred in shown.items() if inferred is not None}
    tables = (
        _by_topics(f"Figure 3: {texts.name}", records, topics, (cantos, short)),
        *(_words(f"Figure 3: {name}, k = 3", texts, found[name]) for name in found),
    )

    def draw(figure: Figure) -> None:
        grid = figure.add_gridspec(2, 2)
        coherence, seconds = (figure.add_subplot(grid[0, place]) for place in range(2))
        _curves(coherence, seconds, records)
        for place, (name, inferred) in enumerate(found.items()):
            axis = figure.add_subplot(grid[1, place])
            _areas(axis, np.arange(1, texts.batch.documents + 1), inferred, _names(texts, inferred))
            axis.set(title=f"{name}, k = {AREA_TOPICS}", xlabel="canto", ylabel="share of topics")
            for edge in _changes([label.split()[0] for label in texts.labels]):
                axis.axvline(edge + 0.5, color="k", linewidth=0.8)

    parameters = _parameters(texts, a0, topics, iterations)
    return Outcome("fig3", parameters, tuple(records), tables, draw, (13, 9))


def addresses_figure(texts: Texts, iterations: int) -> Outcome:
    """Figure 4 and Table 1: words of 18 topics and their shares over the years."""
    k, a0 = ADDRESS_TOPICS, ADDRESS_ALPHA0
    whole = Counted.of(texts.batch, texts.batch, k)
    short = Counted.of(texts.batch, texts.passages, k)
    runs = {
        LDA: (whole, whole.by_moments(k, a0)),
        PASSAGES: (short, short.by_moments(k, a0)),
        GIBBS: (whole, whole.by_gibbs(k, a0, iterations)),
    }
    records = [record(name, k, inferred, counted) for name, (counted, inferred) in runs.items()]
    found = {name: inferred for name, (_, inferred) in runs.items() if inferred is not None}
    tables = (
        _by_topics(f"Figure 4: {texts.name}", records, (k,), (whole, short)),
        *(_words(f"Table 1: {name}, k = {k}", texts, found[name]) for name in found),
    )
    years = np.array([int(label) for label in texts.labels])

    def draw(figure: Figure) -> None:
        axes = figure.subplots(len(found), 1, sharex=True, squeeze=False)
        for axis, (name, inferred) in zip(axes[:, 0], found.items(), strict=True):
            distinct, mean = _by_year(years, inferred.proportions)
            turned = Inferred(inferred.topics, mean, inferred.seconds)
            _areas(axis, distinct, turned, _names(texts, inferred))
            axis.set(title=name, ylabel="share of topics")
        axes[-1, 0].set_xlabel("year")

    parameters = _parameters(texts, a0, (k,), iterations)
    return Outcome("fig4", parameters, tuple(records), tables, draw, (12, 12))


def _parameters(
    texts: Texts, alpha0: float, topics: tuple[int, ...], iterations: int
) -> dict[str, Any]:
    return {
        "documents": texts.batch.documents,
        "tokens": texts.batch.tokens,
        "words": texts.rule,
        "alpha0": alpha0,
        "topics": topics,
        "gibbs": {"iterations": iterations, "seed": GIBBS_SEED, "eta": GIBBS_ETA},
        "coherence": f"UMass, {COHERENCE_WORDS} words, over whole documents",
        "relevance lambda": LAMBDA,
    }


def _by_topics(
    title: str, records: Records, topics: Sequence[int], counted: tuple[Counted, Counted]
) -> Lines:
    names = list(dict.fromkeys(entry["method"] for entry in records))
    rows = []
    for k in topics:
        some = {entry["method"]: entry for entry in records if entry["topics"] == k}
        cells = [_cell(some[name].get("umass"), 1) for name in names]
        cells += [_cell(some[name].get("seconds"), 3) for name in names]
        rows.append((str(k), *cells))
    columns = tuple(f"{what}, {name}" for what in ("UMass", "s") for name in names)
    whole, short = counted
    effective = [c.statistics.length_histogram.effective_documents for c in counted]
    caption = (
        "Mean UMass coherence over whole documents; nearer to 0 is better. CPU seconds, one thread;"
        f" the statistics are gathered once for all k: {whole.seconds:.2f} s, of passages "
        f"{short.seconds:.2f} s. Effective documents {effective[0]:.0f} of "
        f"{whole.documents.documents}, passages {effective[1]:.0f}. No number: fewer positive "
        "eigenvalues than k."
    )
    return Lines(title, ("k", *columns), tuple(rows), caption)


def _words(title: str, texts: Texts, inferred: Inferred) -> Lines:
    shares = inferred.proportions.mean(axis=0)
    ranked = _ranked(texts, inferred, SHOWN_WORDS)
    order = np.argsort(-shares, kind="stable")
    rows = tuple(
        (str(place + 1), f"{shares[topic]:.3f}", ", ".join(ranked[topic]))
        for place, topic in enumerate(order)
    )
    return Lines(title, ("topic", "share", "words"), rows, f"Words by relevance, lambda {LAMBDA}.")


def _ranked(texts: Texts, inferred: Inferred, number: int) -> list[list[str]]:
    totals = texts.batch.to_csr().sum(axis=0)
    scores = relevance(inferred.topics, totals / totals.sum(), LAMBDA)
    return [[texts.terms[word] for word in row] for row in top_words(scores, number)]


def _names(texts: Texts, inferred: Inferred) -> list[str]:
    return [", ".join(words) for words in _ranked(texts, inferred, 4)]


def _curves(coherence: Axes, seconds: Axes, records: Records) -> None:
    for name in dict.fromkeys(entry["method"] for entry in records):
        some = [entry for entry in records if entry["method"] == name and "umass" in entry]
        k = [entry["topics"] for entry in some]
        style = {"markersize": 4, "label": name}
        coherence.plot(k, [entry["umass"] for entry in some], STYLES[name], **style)
        seconds.plot(k, [entry["seconds"] for entry in some], STYLES[name], **style)
    coherence.set(xlabel="topics k", ylabel=f"UMass coherence, L = {COHERENCE_WORDS}")
    seconds.set(xlabel="topics k", ylabel="seconds (CPU)", yscale="log")
    coherence.legend(fontsize=8)
    for axis in (coherence, seconds):
        axis.grid(alpha=0.2)


def _areas(axis: Axes, places: NDArray[np.int64], inferred: Inferred, names: Sequence[str]) -> None:
    order = np.argsort(-inferred.proportions.mean(axis=0), kind="stable")
    colours = colormaps["tab20"].colors[: len(order)]
    shares = inferred.proportions[:, order].T
    axis.stackplot(places, shares, labels=[names[topic] for topic in order], colors=colours)
    axis.set(xlim=(places[0], places[-1]), ylim=(0, 1))
    if len(order) > 6:
        axis.legend(fontsize=6.5, loc="center left", bbox_to_anchor=(1, 0.5))
    else:
        axis.legend(fontsize=8, loc="lower left")


def _by_year(
    years: NDArray[np.int64], proportions: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Years that have an address, and the mean shares in each."""
    distinct = np.unique(years)
    return distinct, np.stack([proportions[years == year].mean(axis=0) for year in distinct])


def _changes(labels: Iterable[str]) -> list[int]:
    """Places, from 1, after which the label changes."""
    listed = list(labels)
    return [place for place in range(1, len(listed)) if listed[place] != listed[place - 1]]


def _cell(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
