"""Made corpora of the benchmark: planted LDA in Parquet, and texts, each made once."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streaming_moments import CountBatch
from streaming_moments.pipelines.command_line.demo import write_decades
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.synthetic.corpora import lda_corpus

N_WORDS = 10_000
MEAN_LENGTH = 150
ALPHA0 = 1.0
# Topics are Dirichlet(CONCENTRATION * zipf).
CONCENTRATION = 200.0
SHARDS = 8
_COPIES = 3


@dataclass(frozen=True)
class Planted:
    """A planted corpus: where it lies and what drew it.

    Parameters
    ----------
    cache : str
        Folder of all corpora.
    documents, n_topics, seed : int
        Sizes, and the seed of topics and documents.
    spread : float
        Standard deviation of the logarithm of lengths that are lognormal; 0: they are Poisson.
    """

    cache: str
    documents: int
    n_topics: int
    seed: int = 0
    spread: float = 0.0

    @property
    def name(self) -> str:
        drawn = f"-seed{self.seed}" if self.seed else ""
        lengths = f"-sigma{self.spread:g}" if self.spread else ""
        return f"planted-{self.documents}-k{self.n_topics}{lengths}{drawn}"

    @property
    def title(self) -> str:
        drawn = f", drawn with seed {self.seed}" if self.seed else ""
        lengths = f", lengths lognormal, sigma {self.spread:g}" if self.spread else ""
        return (
            f"{self.documents:,} documents, {N_WORDS:,} words, {self.n_topics} topics"
            f"{lengths}{drawn}"
        )

    @property
    def folder(self) -> Path:
        return Path(self.cache) / (self.name if self.seed else f"{self.name}-seed0")

    @property
    def shards(self) -> Path:
        return self.folder / "shards"

    def topics(self) -> NDArray[np.float64]:
        """(n, k) true topics."""
        return planted_topics(self.n_topics, self.seed)

    def counts(self) -> CountBatch:
        """All documents."""
        with np.load(self.folder / "counts.npz") as arrays:
            return CountBatch(arrays["indptr"], arrays["words"], arrays["counts"], N_WORDS)


@dataclass(frozen=True)
class Addresses:
    """The State of the Union addresses as texts, several times over: enough to be measured.

    Parameters
    ----------
    cache : str
        Folder of all corpora.
    shards : int
        Parquet shards, each with three copies of every address.
    """

    cache: str
    shards: int

    @property
    def name(self) -> str:
        return f"addresses x {_COPIES * self.shards}"

    @property
    def folder(self) -> Path:
        return Path(self.cache) / f"addresses-{self.shards}"


def known_eta(n_topics: int, seed: int) -> NDArray[np.float64]:
    """(n,) parameters of the Dirichlet of the `planted_topics`, whose words were put in order."""
    zipf = 1 / np.arange(1, N_WORDS + 1)
    zipf /= zipf.sum()
    topics = np.random.default_rng(seed).dirichlet(CONCENTRATION * zipf, size=n_topics).T
    order = np.argsort(-(topics @ np.full(n_topics, 1 / n_topics)), kind="stable")
    assert np.array_equal(topics[order], planted_topics(n_topics, seed))
    return CONCENTRATION * zipf[order]


def planted_topics(n_topics: int, seed: int) -> NDArray[np.float64]:
    """(n, k) topics of every planted corpus of that number of topics and seed."""
    corpus = lda_corpus(
        1, N_WORDS, n_topics, ALPHA0, MEAN_LENGTH, concentration=CONCENTRATION, seed=seed
    )
    return corpus.topics


def make_planted(corpus: Planted) -> None:
    """Write shards of token ids and counts of a planted corpus, unless they are there."""
    if not corpus.folder.exists():
        making = corpus.folder.with_name(f".{corpus.folder.name}-{os.getpid()}")
        _write_counts(corpus, making)
        making.rename(corpus.folder)


def make_addresses(corpus: Addresses) -> None:
    """Write the shards of texts, unless they are there."""
    if corpus.folder.exists():
        return
    making = corpus.folder.with_name(f".{corpus.folder.name}-{os.getpid()}")
    (making / "shards").mkdir(parents=True)
    decades = write_decades(making / "decades")
    texts = pa.concat_tables([pq.read_table(path, columns=["text"]) for path in decades])
    for shard in range(corpus.shards):
        path = making / "shards" / f"{shard}.parquet"
        pq.write_table(pa.concat_tables([texts] * _COPIES), path)
    shutil.rmtree(making / "decades")
    making.rename(corpus.folder)


def draw_documents(
    topics: NDArray[np.float64],
    documents: int,
    rng: np.random.Generator,
    mean_length: float = MEAN_LENGTH,
    spread: float = 0.0,
) -> CountBatch:
    """Documents of the model of `lda_corpus` with given topics.

    Each document's tokens are shared out over topics first, so the memory is that of the tokens
    and not k times as much.
    """
    n_words, k = topics.shape
    proportions = rng.dirichlet(np.full(k, ALPHA0 / k), size=documents)
    # a proportion may exceed what is left of 1 by rounding, which the multinomial refuses
    proportions = np.clip(proportions / (proportions.sum(axis=1, keepdims=True) + 1e-12), 0, 1)
    if spread:
        middle = np.log(mean_length) - spread**2 / 2
        lengths = np.rint(rng.lognormal(middle, spread, size=documents)).astype(np.int64)
    else:
        lengths = rng.poisson(mean_length, size=documents)
    shares = rng.multinomial(lengths, proportions)
    rows, words = [], []
    for topic in range(k):
        rows.append(np.repeat(np.arange(documents), shares[:, topic]))
        draws = rng.random(rows[-1].size)
        found = np.searchsorted(np.cumsum(topics[:, topic]), draws, side="right")
        words.append(np.minimum(found, n_words - 1))
    entries = np.concatenate(rows), np.concatenate(words)
    return CountBatch.from_entries(*entries, None, (documents, n_words))


def write_counts(batch: CountBatch, path: Path) -> None:
    """A Parquet shard of token ids and their counts."""
    offsets = pa.array(batch.indptr, pa.int32())
    columns = {
        "ids": pa.ListArray.from_arrays(offsets, pa.array(batch.words)),
        "counts": pa.ListArray.from_arrays(offsets, pa.array(batch.counts)),
    }
    pq.write_table(pa.table(columns), path, row_group_size=4096)


def _write_counts(corpus: Planted, folder: Path) -> None:
    (folder / "shards").mkdir(parents=True)
    topics = corpus.topics()
    edges = np.linspace(0, corpus.documents, SHARDS + 1).astype(int)
    batches = []
    for shard, documents in enumerate(np.diff(edges)):
        rng = np.random.default_rng([corpus.seed, corpus.n_topics, shard])
        batch = draw_documents(topics, int(documents), rng, spread=corpus.spread)
        write_counts(batch, folder / "shards" / f"{shard}.parquet")
        batches.append(batch)
    _save(concatenate(batches), folder / "counts.npz")


def shuffled_tokens(
    batch: CountBatch, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Document and word of each token, documents in order, their tokens in random order."""
    rows = np.repeat(np.arange(batch.documents), batch.lengths)
    words = np.repeat(batch.words, batch.counts)
    order = np.lexsort((rng.random(rows.size), rows))
    return rows[order], words[order]


def _save(batch: CountBatch, path: Path) -> None:
    np.savez(
        path,
        indptr=batch.indptr,
        words=batch.words,
        counts=batch.counts,
        n_words=np.array(batch.n_words),
    )
