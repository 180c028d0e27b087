"""Jobs that fit topics: one method on one corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from corpora import ALPHA0, N_WORDS, Planted, known_eta
from measure import Clock
from methods import Method, Prior, run_name
from ours import OURS, from_parquet
from real_corpora import Source
from scores import agreement, score, topic_errors

REAL = "real"


@dataclass(frozen=True)
class PlantedFit:
    """A method on the counts of a planted corpus, already in memory in its own format.

    Parameters
    ----------
    method : Method
        Told the true alpha0.
    corpus : Planted
        What it counts.
    know_eta : bool
        Whether the method is told the parameters of the topics as well, which ours has no use for.
    again : bool
        Whether it is measured for the second time.
    """

    method: Method
    corpus: Planted
    know_eta: bool = False
    again: bool = False

    @property
    def name(self) -> str:
        return run_name(self.corpus.name, self.method) + (" (again)" if self.again else "")

    def run(self, clock: Clock) -> Mapping[str, float]:
        k = self.corpus.n_topics
        prior = Prior(ALPHA0, known_eta(k, self.corpus.seed) if self.know_eta else None)
        prepared = self.method.prepare(self.corpus.counts(), k, prior)
        with clock.running("fit"):
            fitted = self.method.fit(prepared)
        found = self.method.result(fitted, prepared)
        assert found.topics.shape == (N_WORDS, k)
        figures = {"likelihood": found.likelihood} | errors_of(found.topics, self.corpus)
        return figures if found.alpha is None else figures | {"alpha0": float(found.alpha.sum())}


def errors_of(topics: object, corpus: Planted) -> dict[str, float]:
    """Mean, median and worst of the matched topics."""
    errors = sorted(topic_errors(topics, corpus.topics()))  # type: ignore[arg-type]
    return {
        "error": sum(errors) / len(errors),
        "median_error": (errors[(len(errors) - 1) // 2] + errors[len(errors) // 2]) / 2,
        "worst_error": errors[-1],
    }


@dataclass(frozen=True)
class PlantedPipelines:
    """This project from the Parquet shards of a planted corpus to its topics."""

    workers: int
    corpus: Planted

    @property
    def name(self) -> str:
        kind = f"{self.workers} worker processes" if self.workers > 1 else "one worker process"
        return f"{self.corpus.name}: {OURS} from Parquet, " + (kind if self.workers else "embedded")

    def run(self, clock: Clock) -> Mapping[str, float]:
        ran = from_parquet(self.corpus, self.workers, clock)
        return errors_of(ran.topics, self.corpus) | {"projected_bytes": ran.projected_bytes}


@dataclass(frozen=True)
class RealFit:
    """A method on a real corpus, of which it is told nothing but the number of topics."""

    method: Method
    source: Source
    n_topics: int

    @property
    def corpus(self) -> str:
        return real_name(self.source, self.n_topics)

    @property
    def name(self) -> str:
        return run_name(self.corpus, self.method)

    def run(self, clock: Clock) -> Mapping[str, float]:
        corpus = self.source.load()
        prepared = self.method.prepare(corpus.training, self.n_topics, Prior())
        with clock.running("fit"):
            fitted = self.method.fit(prepared)
        found = self.method.result(fitted, prepared)
        figures = asdict(score(found, corpus)) | {
            "likelihood": found.likelihood,
            "documents": corpus.training.documents,
            "words": corpus.training.n_words,
            "tokens": corpus.training.tokens,
            "longest": int(corpus.training.lengths.max()),
        }
        if found.alpha is not None:
            figures["alpha0"] = float(found.alpha.sum())
        if corpus.labels is not None:
            shares = self.method.proportions(fitted, prepared)
            figures["agreement"] = agreement(shares, corpus.labels)
        return figures


def real_name(source: Source, n_topics: int) -> str:
    return f"{REAL} {source.name}, k = {n_topics}"
