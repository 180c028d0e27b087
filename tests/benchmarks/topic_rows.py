"""Topics by slice rows, by second-moment rows and by the mean of both, of the same fit.

Run as `python tests/benchmarks/topic_rows.py`: real corpora by coherence and
completion perplexity over several splits, planted ones by the L1 error of their topics.
"""

from __future__ import annotations

import click
import numpy as np
from methods import Fitted
from numpy.typing import NDArray
from ours import gather
from real_corpora import Reuters, Speeches
from scores import score

from streaming_moments import MomentStatistics
from streaming_moments.decompositions.forms import form_of
from streaming_moments.decompositions.svtd import recover
from streaming_moments.models.rows import InMemory
from streaming_moments.models.sweeps import both_rows, mean_columns, sweep
from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus, topic_error


def three_ways(
    statistics: MomentStatistics, k: int, alpha0: float
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Topics and weights by each kind of row: `A W O` has the topics but for a factor."""
    held = InMemory((statistics,))
    whitening, directions, parts = sweep(held, k, form_of(alpha0), "joint", 0, last=both_rows)
    rows = parts[0][0]
    third, second = np.hsplit(rows, 2)
    shares = (directions.vectors.T @ whitening.first) ** 2
    # scaled as the topics are, so that what is clipped of them is alike
    scaled = second / second.sum(axis=0)
    ways = {"third": third, "second": scaled, "mean": mean_columns(rows)}
    found = {name: recover(way, shares) for name, way in ways.items()}
    return {name: (one.topics, one.weights) for name, one in found.items()}


def print_row(name: str, k: int, alpha0: float, scores: dict[str, list[tuple[float, ...]]]) -> None:
    """Means over the seeds, and how often the mean of the rows was better than the slice rows."""
    means = {way: np.mean(values, axis=0) for way, values in scores.items()}
    shown = "  ".join(f"{way} {' '.join(f'{value:.4g}' for value in means[way])}" for way in means)
    better = np.sum(np.array(scores["mean"]) < np.array(scores["third"]), axis=0)
    print(
        f"{name} k {k} alpha0 {alpha0:g}: {shown}  lower by the mean {better.tolist()}", flush=True
    )


def real(name: str, k: int, alpha0: float, seeds: int) -> None:
    """NPMI and perplexity of a real corpus, over some splits of it."""
    scores: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(seeds):
        corpus = (Reuters(seed) if name == "reuters" else Speeches("passages", seed)).load()
        statistics = gather(corpus.training, k)
        for way, (topics, weights) in three_ways(statistics, k, alpha0).items():
            one = score(Fitted(topics, alpha0 * weights), corpus)
            scores.setdefault(way, []).append((one.npmi, one.perplexity))
    print_row(name, k, alpha0, scores)


def planted(documents: int, k: int, alpha0: float, seeds: int) -> None:
    """L1 error of the topics of a planted corpus of 2,000 words."""
    scores: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(seeds):
        if alpha0:
            corpus = lda_corpus(documents, 2000, k, alpha0, seed=seed)
        else:
            corpus = single_topic_corpus(documents, 2000, k, (20, 100), seed=seed)
        for way, (topics, _) in three_ways(gather(corpus.batch, k), k, alpha0).items():
            scores.setdefault(way, []).append((topic_error(topics, corpus.topics),))
    print_row(f"planted {documents}", k, alpha0, scores)


@click.command()
@click.option("--seeds", default=3, show_default=True, help="Splits, or planted corpora.")
@click.option("--only", type=click.Choice(["reuters", "sotu", "planted"]))
def main(seeds: int, only: str | None) -> None:
    """Measure the three kinds of rows; of each: NPMI and perplexity, or the L1 error."""
    for name, numbers in (("reuters", (8, 14, 20)), ("sotu", (10, 20))):
        for k in numbers if only in (None, name) else ():
            for alpha0 in (0.1, 0.5):
                real(name, k, alpha0, seeds)
    if only in (None, "planted"):
        for documents in (1000, 4000, 16_000):
            for k, alpha0 in ((6, 1.0), (20, 1.0), (20, 5.0), (6, 0.0)):
                planted(documents, k, alpha0, seeds)


if __name__ == "__main__":
    main()
