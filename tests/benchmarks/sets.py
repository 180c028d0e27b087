"""`python tests/benchmarks/sets.py`: planted mixtures of Bernoullis beside their likelihood.

Of each case the root mean square error of the matched probabilities, the adjusted Rand index, the
log likelihood of rows held out and the processor seconds of ours after one pass, after two
polishing passes, of expectation maximisation from the truth, of the likeliest of several random
starts, and of stepmix (latent class analysis), which has such starts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from streaming_moments.sklearn import MomentBernoulliMixture
from streaming_moments.synthetic.sets import probability_error

STARTS = 10
MOST_STEPS = 1000
SETTLED = 1e-6  # nats a row that a step adds
HELD_OUT = 5000


@dataclass(frozen=True)
class Case:
    """A planted mixture; `spread` says what its probabilities are."""

    name: str
    rows: int
    features: int
    components: int
    spread: str = "beta"

    def probabilities(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """(d, k)."""
        shape = self.features, self.components
        if self.spread == "items":
            return np.where(rng.random(shape) < 0.4, 0.75, 0.2) * rng.uniform(0.7, 1.2, shape)
        if self.spread == "codes":
            rare = np.arange(1, self.features + 1)[:, None] ** -0.8
            return rng.beta(0.5, 1.0, shape) * rare
        return rng.beta(0.2, 0.8, shape)


CASES = [
    Case("20 items, 4 classes, 5,000 rows", 5_000, 20, 4, "items"),
    Case("40 items, 4 classes, 2,000 rows", 2_000, 40, 4, "items"),
    Case("100 codes of falling frequency, 5 classes, 20,000 rows", 20_000, 100, 5, "codes"),
    Case("60 features, 10 classes, 20,000 rows", 20_000, 60, 10),
    Case("120 features, 20 classes, 20,000 rows", 20_000, 120, 20),
]
# What moments are not for: few features, and few rows.
LOSING = [
    Case("10 items, 3 classes, 20,000 rows", 20_000, 10, 3, "items"),
    Case("8 items, 3 classes, 2,000 rows", 2_000, 8, 3, "items"),
    Case("40 items, 4 classes, 200 rows", 200, 40, 4, "items"),
]


@dataclass(frozen=True)
class Fit:
    """(d, k) probabilities and (k,) weights."""

    probabilities: NDArray[np.float64]
    weights: NDArray[np.float64]

    def logs(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, k)."""
        P = np.clip(self.probabilities, 1e-9, 1 - 1e-9)
        constant = np.log(np.maximum(self.weights, 1e-300)) + np.log1p(-P).sum(axis=0)
        return constant + X @ (np.log(P) - np.log1p(-P))

    def step(self, X: NDArray[np.float64]) -> tuple[Fit, float]:
        """After one step of expectation maximisation, and how likely a row was before."""
        logs = self.logs(X)
        sums = np.logaddexp.reduce(logs, axis=1)
        shares = np.exp(logs - sums[:, None])
        own = shares.sum(axis=0)
        return Fit((X.T @ shares) / np.maximum(own, 1e-300), own / len(X)), float(sums.mean())

    def settled(self, X: NDArray[np.float64]) -> tuple[Fit, float]:
        """After steps until they help no more."""
        fit, before = self, -np.inf
        for _ in range(MOST_STEPS):
            fit, likelihood = fit.step(X)
            if likelihood - before < SETTLED:
                break
            before = likelihood
        return fit, likelihood


@click.command()
@click.option("--only", default="", help="Cases whose name holds this.")
@click.option("--seeds", default=1, show_default=True, help="Corpora drawn of each case.")
@click.option("--losing", is_flag=True, help="Few features, few rows.")
@click.option("--no-peers", is_flag=True, help="Ours alone.")
def main(only: str, seeds: int, losing: bool, no_peers: bool) -> None:
    """Print a table in Markdown."""
    click.echo("| planted | method | error | ARI | held out | CPU s |")
    click.echo("| --- | --- | ---: | ---: | ---: | ---: |")
    for case in LOSING if losing else CASES:
        for seed in range(1, 1 + seeds if only in case.name else 1):
            for line in measured(case, seed, peers=not no_peers):
                click.echo(f"| {case.name} | {line} |")


def measured(case: Case, seed: int, peers: bool) -> Iterator[str]:
    """A line for each method."""
    rng = np.random.default_rng(seed)
    truth = Fit(case.probabilities(rng), rng.dirichlet(np.full(case.components, 10.0)))

    def drawn(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        labels = rng.choice(case.components, size=rows, p=truth.weights)
        has = rng.random((rows, case.features)) < truth.probabilities.T[labels]
        return has.astype(np.float64), labels

    (X, labels), (held, _) = drawn(case.rows), drawn(HELD_OUT)

    def line(name: str, fit: Fit, seconds: float) -> str:
        error = probability_error(fit.probabilities, truth.probabilities)
        ari = adjusted_rand_score(labels, fit.logs(X).argmax(axis=1))
        likely = np.logaddexp.reduce(fit.logs(held), axis=1).mean()
        return f"{name} | {error:.4f} | {ari:.3f} | {likely:.3f} | {seconds:.2f}"

    def ours(passes: int) -> Fit:
        found = MomentBernoulliMixture(case.components, polish=passes).fit(X)
        return Fit(found.probabilities_.T, found.weights_)

    ours(1)  # kernels are compiled once and kept
    for name, passes in (("one pass", 0), ("and 2 polishing passes", 2)):
        yield line(name, *clocked(lambda passes=passes: ours(passes)))
    yield line("EM from the truth", *clocked(lambda: truth.settled(X)[0]))
    if not peers:
        return
    name = f"EM, likeliest of {STARTS} starts"
    yield line(name, *clocked(lambda: likeliest(X, case.components, seed)))
    yield line(f"stepmix, n_init {STARTS}", *clocked(lambda: stepmix(X, case.components, seed)))


def likeliest(X: NDArray[np.float64], k: int, seed: int) -> Fit:
    """The likeliest of several random starts, as estimators of scikit-learn begin."""
    rng = np.random.default_rng([seed, 1])
    found = []
    for _ in range(STARTS):
        shares = rng.dirichlet(np.ones(k), size=len(X))
        begun = Fit((X.T @ shares) / shares.sum(axis=0), shares.mean(axis=0))
        found.append(begun.settled(X))
    return max(found, key=lambda one: one[1])[0]


def stepmix(X: NDArray[np.float64], k: int, seed: int) -> Fit:
    """StepMix with a binary measurement model, as its documentation has it."""
    from stepmix.stepmix import StepMix

    model = StepMix(
        n_components=k,
        measurement="binary",
        n_init=STARTS,
        max_iter=MOST_STEPS,
        random_state=seed,
        verbose=0,
        progress_bar=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what did not converge
        model.fit(X)
    found = model.get_parameters()
    return Fit(np.asarray(found["measurement"]["pis"]).T, np.asarray(found["weights"]))


def clocked(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and its processor seconds on all threads."""
    begun = time.process_time()
    found = work()
    return found, time.process_time() - begun


if __name__ == "__main__":
    main()
