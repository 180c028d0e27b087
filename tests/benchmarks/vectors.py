"""`python tests/benchmarks/vectors.py`: planted mixtures and factors beside scikit-learn.

Of each case the error of the matched means (mean distance), the adjusted Rand index, the log
likelihood of rows held out and the processor seconds of ours after one pass, after two polishing
passes, of expectation maximisation from the truth, and of scikit-learn.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import ceil
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.decomposition import FastICA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture as Peer

from streaming_moments.errors import NotIdentifiable, StreamingMomentsError
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture, MixtureOptions
from streaming_moments.models.mixtures.passes import polished
from streaming_moments.models.rows import InMemory
from streaming_moments.sklearn import MomentFactors, MomentGaussianMixture
from streaming_moments.statistics.vectors.pilot import foundation_of, grid_of
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic.mixtures import (
    MixtureRows,
    amari_distance,
    factor_rows,
    matched_means,
    mixture_rows,
)

PASSES = 2
TO_CONVERGENCE = 15
HELD_OUT = 5000


@dataclass(frozen=True)
class Case:
    """A planted mixture.

    Parameters
    ----------
    rows, dimensions, components : int
        n, d, k.
    separation : float
        Length of the means, in standard deviations of a component.
    variances : str
        As of `mixture_rows`; so the next two.
    uneven, outliers : float
    asked : int
        Components that are fitted; 0: as many as there are.
    in_line : bool
        Whether the means lie on a line, in even steps of `separation`.
    """

    rows: int
    dimensions: int
    components: int
    separation: float
    variances: str = "tied-spherical"
    uneven: float = 1.0
    outliers: float = 0.0
    asked: int = 0
    in_line: bool = False

    @property
    def name(self) -> str:
        """As the table has it."""
        told = f"d {self.dimensions} k {self.components} sep {self.separation:g}"
        told += f" n {self.rows:,}"
        if self.variances != "tied-spherical":
            told += f", {self.variances}"
        if self.uneven > 1:
            told += f", weights 1:{self.uneven:g}"
        told += f", {self.asked} asked" if self.asked else ""
        told += ", in line" if self.in_line else ""
        return told + (f", {self.outliers:.0%} outliers" if self.outliers else "")

    def drawn(self, seed: int, rows: int | None = None) -> MixtureRows:
        """Its rows."""
        shape = rows or self.rows, self.dimensions, self.components, self.separation
        drawn = mixture_rows(*shape, self.variances, self.uneven, self.outliers, seed)
        if not self.in_line:
            return drawn
        direction = drawn.means[0] / np.linalg.norm(drawn.means[0])
        means = self.separation * np.outer(np.arange(self.components), direction)
        moved = drawn.rows + (means - drawn.means)[drawn.labels]
        return replace(drawn, rows=moved, means=means)


SMALL = [Case(20_000, 50, 10, separation) for separation in (2, 3, 5)] + [
    Case(20_000, 50, 10, 3, "spherical", 4),
    Case(20_000, 50, 10, 3, "diag"),
    Case(20_000, 50, 10, 3, outliers=0.01),
]
LARGE = [
    *(Case(20_000, 256, 30, separation) for separation in (3, 5)),
    Case(20_000, 256, 30, 5, "spherical", 4),
    *(Case(20_000, 768, 50, separation) for separation in (3, 5)),
]


# What moments are not for.
LOSING = [
    *(Case(rows, 50, 10, 5) for rows in (300, 1_000, 3_000)),
    *(Case(rows, 10, 3, 3, in_line=True) for rows in (20_000, 320_000)),
    *(Case(20_000, 50, 10, 5, asked=asked) for asked in (8, 12)),
]
BLOCK = 20_000


@click.command()
@click.option("--large", is_flag=True, help="Also 256 and 768 dimensions.")
@click.option("--only", default="", help="Cases whose name holds this.")
@click.option("--seeds", default=1, show_default=True, help="Corpora drawn of each case.")
@click.option("--no-peers", is_flag=True, help="Ours alone.")
@click.option("--losing", is_flag=True, help="Few rows, means in line, another number asked.")
@click.option("--times", default="", help="Ours alone, of so many times the rows: 1,2,4.")
@click.option("--pilot", default=BLOCK, show_default=True, help="Rows of its pilot.")
@click.option("--passes", default=f"{PASSES}", show_default=True, help="Of ours there: 2,3,4.")
@click.option("--factors", is_flag=True, help="Independent factors in place of mixtures.")
def main(
    large: bool,
    only: str,
    seeds: int,
    no_peers: bool,
    losing: bool,
    times: str,
    pilot: int,
    passes: str,
    factors: bool,
) -> None:
    """Print a table in Markdown."""
    if factors:
        factors_table()
        return
    click.echo("| planted | method | error | ARI | held out | CPU s |")
    click.echo("| --- | --- | ---: | ---: | ---: | ---: |")
    for case in LOSING if losing else SMALL + (LARGE if large else []):
        if only not in case.name:
            continue
        larger = [replace(case, rows=int(one) * case.rows) for one in times.split(",") if one]
        for seed in range(1, 1 + seeds):
            for one in larger:
                for line in of_blocks(one, seed, pilot, [*map(int, passes.split(","))]):
                    click.echo(f"| {one.name} | {line} |")
            for line in () if larger else measured(case, seed, peers=not no_peers):
                click.echo(f"| {case.name} | {line} |")


def measured(case: Case, seed: int, peers: bool) -> Iterator[str]:
    """A line for each method."""
    drawn = case.drawn(seed)
    kept = drawn.labels >= 0
    # of the same components: others would be drawn of another seed
    held = held_out_rows(drawn, HELD_OUT, [seed, 1])

    def line(name: str, means: Any, labels: Any, score: float | None, seconds: float) -> str:
        error = matched_means(means, drawn.means)[0].mean()
        ari = adjusted_rand_score(drawn.labels[kept], labels[kept])
        likely = "" if score is None else f"{score:.3f}"
        return f"{name} | {error:.3f} | {ari:.3f} | {likely} | {seconds:.1f}"

    def ours(name: str, model: GaussianMixture, seconds: float) -> str:
        score = float(model.log_likelihoods(held).mean())
        return line(name, model.means, model.assign(drawn.rows), score, seconds)

    kind = "diag" if case.variances == "diag" else "spherical"
    k = case.asked or case.components
    estimator = MomentGaussianMixture(k, covariance_type=kind)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of variances near 0
            fitted, seconds = clocked(partial(estimator.fit, drawn.rows))
    except NotIdentifiable as error:
        yield f"one pass | {error} | | |"
        grid = grid_of(drawn.rows)
    else:
        grid = fitted._foundation.grid
        yield ours("one pass", fitted.model_, seconds)
        better, more = clocked(lambda: polished(fitted.model_, [drawn.rows], grid, PASSES))
        yield ours(f"and {PASSES} polishing passes", better, seconds + more)
    truth = truth_of(drawn, kind)
    oracle, more = clocked(lambda: polished(truth, [drawn.rows], grid, TO_CONVERGENCE))
    yield ours("EM from the truth", oracle, more)
    if not peers:
        return
    for name, peer in {
        "KMeans, n_init 10": KMeans(k, n_init=10, random_state=seed),
        "MiniBatchKMeans": MiniBatchKMeans(k, n_init=3, random_state=seed),
        "GaussianMixture, n_init 5": Peer(k, covariance_type=kind, n_init=5, random_state=seed),
    }.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, seconds = clocked(partial(peer.fit, drawn.rows))
        mixture = isinstance(found, Peer)
        means = found.means_ if mixture else found.cluster_centers_
        score = found.score(held) if mixture else None
        yield line(name, means, found.predict(drawn.rows), score, seconds)


def of_blocks(case: Case, seed: int, pilot: int, asked: list[int]) -> Iterator[str]:
    """A line for each of ours, of rows that are drawn in blocks and never held at once."""
    drawn = case.drawn(seed, rows=2)

    def blocks() -> Iterator[NDArray[np.float64]]:
        sizes = [min(BLOCK, case.rows - start) for start in range(0, case.rows, BLOCK)]
        return (held_out_rows(drawn, size, [seed, n, 2]) for n, size in enumerate(sizes))

    held = held_out_rows(drawn, HELD_OUT, [seed, 1])
    columns = ceil(1.5 * case.components) + 2
    # no more rows are seen than are counted
    first = np.concatenate(list(islice(blocks(), -(-pilot // BLOCK))))[:pilot]
    foundation = foundation_of(first, columns)
    del first
    statistics = foundation.of(foundation.prepared(VectorBatch.of(one)) for one in blocks())
    fitted = GaussianMixture.fit(InMemory((statistics,)), MixtureOptions(topics=case.components))
    for name, begun, passes in (
        ("one pass", fitted, 0),
        *((f"and {passes} polishing passes", fitted, passes) for passes in asked),
        ("EM from the truth", truth_of(drawn, "spherical"), TO_CONVERGENCE),
    ):
        model = polished(begun, blocks(), foundation.grid, passes)
        error = matched_means(model.means, drawn.means)[0].mean()
        yield f"{name} | {error:.3f} | | {float(model.log_likelihoods(held).mean()):.3f} |"


def truth_of(drawn: MixtureRows, kind: str) -> GaussianMixture:
    """What drew the rows."""
    variances = drawn.variances if kind == "diag" else drawn.variances[:, :1]
    return GaussianMixture(drawn.means, drawn.weights, variances, kind)


def held_out_rows(drawn: MixtureRows, number: int, seed: list[int]) -> NDArray[np.float64]:
    """Rows of the same components, none of them strange."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(drawn.weights), size=number, p=drawn.weights)
    noise = rng.normal(size=(number, drawn.means.shape[1])) * np.sqrt(drawn.variances[labels])
    return np.asarray(drawn.means[labels] + noise)


def factors_table() -> None:
    """Amari distance of sources and noises, beside FastICA."""
    d, k, n = 20, 8, 20_000
    root = np.random.default_rng(0).normal(size=(d, d)) / 4
    noises: dict[str, Any] = {"none": 1e-6, "spherical": 1.0, "full": root @ root.T}
    click.echo(
        "| sources, noise | third | fourth | third, full noise | FastICA | CPU s: third, FastICA |"
    )
    click.echo("| --- | ---: | ---: | ---: | ---: | ---: |")
    for source in ("exponential", "laplace"):
        for name, noise in noises.items():
            drawn = factor_rows(n, d, k, source, noise, seed=1)
            cells, seconds = [], []
            for options in ({}, {"order": "fourth"}, {"noise": "full"}):
                value, spent = clocked(partial(amari_of, drawn, k, options))
                cells.append(value)
                seconds.append(spent)
            peer = FastICA(k, whiten="unit-variance", random_state=0, max_iter=500)
            found, spent = clocked(partial(peer.fit, drawn.rows))
            cells.append(f"{amari_distance(drawn.mixing, found.components_.T):.4f}")
            said = f"{seconds[0]:.1f}, {spent:.1f}"
            click.echo(f"| {source}, {name} | {' | '.join(cells)} | {said} |")


def amari_of(drawn: Any, k: int, options: dict[str, str]) -> str:
    """Of ours; or that it was refused, or that no cumulant tells some from noise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            found = MomentFactors(k, **options).fit(drawn.rows)
    except UserWarning:
        return "weak"
    except StreamingMomentsError:
        return "refused"
    return f"{amari_distance(drawn.mixing, found.components_.T):.4f}"


def clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and its processor seconds on all threads."""
    begun = time.process_time()
    found = work()
    return found, time.process_time() - begun


if __name__ == "__main__":
    main()
