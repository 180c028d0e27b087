"""Rows of numbers added up in a second, beside MiniBatchKMeans of as many components.

Run as `OMP_NUM_THREADS=1 python tests/benchmarks/vector_rows.py`: seconds of processor time, the
best of some runs that take turns, K-means from its second batch on. The statistics hold all that a
mixture is fitted from, K-means its means. Beside them the floor: BLAS's symmetric product of the
rows as they come, in single precision, of which nothing is added up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ssyrk
from sklearn.cluster import MiniBatchKMeans

from streaming_moments.statistics.vectors import VectorBatch, VectorsFoundation, foundation_of


def batches(rows: NDArray[np.float32], size: int) -> Iterator[NDArray[np.float32]]:
    """The rows, some at a time."""
    return (rows[start : start + size] for start in range(0, len(rows), size))


def add_up(foundation: VectorsFoundation, rows: NDArray[np.float32], size: int) -> None:
    """Statistics of all rows."""
    prepared = (foundation.prepared(VectorBatch.of(part)) for part in batches(rows, size))
    foundation.of(foundation.joined(prepared, 32 << 20))


def cluster(model: MiniBatchKMeans, rows: NDArray[Any], size: int) -> None:
    """One pass of K-means by batches."""
    for part in batches(rows, size):
        model.partial_fit(part)


def multiply(rows: NDArray[np.float32], size: int) -> None:
    """One triangle of the products of all pairs of columns, and no more."""
    for part in batches(rows, size):
        ssyrk(1.0, part.T)


def rows_a_second(work: Callable[[], None], rows: int) -> float:
    """Of processor time."""
    begun = time.process_time()
    work()
    return rows / (time.process_time() - begun)


@click.command()
@click.option("--dimensions", default="384,768")
@click.option("--components", default=50)
@click.option("--rows", "number", default=40_000)
@click.option("--size", default=4096, help="Rows of a batch.")
@click.option("--runs", default=3)
def main(dimensions: str, components: int, number: int, size: int, runs: int) -> None:
    """Print rows a second."""
    for d in map(int, dimensions.split(",")):
        rng = np.random.default_rng(0)
        means = rng.normal(size=(components, d)).astype(np.float32)
        rows = means[rng.integers(0, components, number)]
        rows += rng.standard_normal(rows.shape, dtype=np.float32)
        columns = -(-3 * components // 2) + 2
        foundation = foundation_of(rows[:2_000], columns)
        add_up(foundation, rows[:size], size)
        found: dict[str, list[float]] = {}
        for _ in range(runs):
            begun = MiniBatchKMeans(components, batch_size=size, n_init=1, random_state=0)
            ways: dict[str, tuple[Callable[..., None], object]] = {
                "statistics": (add_up, foundation),
                "MiniBatchKMeans": (cluster, begun.partial_fit(rows[:size])),
            }
            calls = {name: partial(work, given, rows, size) for name, (work, given) in ways.items()}
            calls["one float32 product alone"] = partial(multiply, rows, size)
            for name, call in calls.items():
                speed = rows_a_second(call, number)
                found.setdefault(name, []).append(speed)
        said = ", ".join(f"{name} {max(speeds):,.0f}" for name, speeds in found.items())
        print(f"d {d}, {components} components, batches of {size:,}: rows a second: {said}")


if __name__ == "__main__":
    main()
