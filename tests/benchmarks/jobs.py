"""Jobs that fit topics: one method on one corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from corpora import ALPHA0, CONCENTRATION, N_WORDS, Planted, load_reuters, load_sotu
from measure import Clock
from methods import Method, Prior
from ours import from_parquet
from scores import score

from streaming_moments.synthetic.corpora import topic_error

# On real corpora methods of moments need some alpha0: that of the demo.
REAL_ALPHA0 = 0.3
TRUTH = Prior(ALPHA0, CONCENTRATION / N_WORDS, known=True)
UNKNOWN = Prior(REAL_ALPHA0, 0.0, known=False)


@dataclass(frozen=True)
class PlantedFit:
    """A method on the counts of a planted corpus, already in memory in its own format."""

    method: Method
    corpus: Planted
    again: bool = False

    @property
    def name(self) -> str:
        return f"{self.corpus.name}: {self.method.name}{' (again)' if self.again else ''}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        prepared = self.method.prepare(self.corpus.counts(), self.corpus.n_topics, TRUTH)
        with clock.running("fit"):
            fitted = self.method.fit(prepared)
        found = self.method.result(fitted, N_WORDS)
        return {"error": topic_error(found.topics, self.corpus.topics())}


@dataclass(frozen=True)
class PlantedPipelines:
    """This project from the Parquet shards of a planted corpus to its topics."""

    workers: int
    corpus: Planted

    @property
    def name(self) -> str:
        kind = f"{self.workers} worker processes" if self.workers > 1 else "one worker process"
        return f"{self.corpus.name}: this project from Parquet, " + (
            kind if self.workers else "embedded"
        )

    def run(self, clock: Clock) -> Mapping[str, float]:
        ran = from_parquet(self.corpus, self.workers, clock)
        return {
            "error": topic_error(ran.topics, self.corpus.topics()),
            "projected_bytes": ran.projected_bytes,
        }


@dataclass(frozen=True)
class RealFit:
    """A method on a real corpus."""

    method: Method
    corpus: str
    n_topics: int
    cache: str

    @property
    def name(self) -> str:
        return f"{self.corpus}: {self.method.name}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        corpus = load_reuters() if self.corpus == "reuters" else load_sotu(self.cache)
        prepared = self.method.prepare(corpus.training, self.n_topics, UNKNOWN)
        with clock.running("fit"):
            fitted = self.method.fit(prepared)
        found = self.method.result(fitted, corpus.training.n_words)
        scores = score(found, corpus.training, corpus.held_out)
        return {
            "npmi": scores.npmi,
            "umass": scores.umass,
            "perplexity": scores.perplexity,
            "documents": corpus.training.documents,
        }
