"""The corpora of the benchmark: planted LDA in Parquet, made once, and two real ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streaming_moments import CountBatch, Vocabulary
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.command_line.demo import write_decades
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.synthetic.corpora import lda_corpus

N_WORDS = 10_000
MEAN_LENGTH = 150
ALPHA0 = 1.0
# Topics are Dirichlet(CONCENTRATION * zipf): their mean parameter is what peers are told as eta.
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
    """

    cache: str
    documents: int
    n_topics: int
    seed: int = 0

    @property
    def name(self) -> str:
        return f"planted-{self.documents}-k{self.n_topics}"

    @property
    def folder(self) -> Path:
        return Path(self.cache) / f"{self.name}-seed{self.seed}"

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


@dataclass(frozen=True, eq=False)
class RealCorpus:
    """A real corpus in two parts, words by falling frequency in the first.

    Parameters
    ----------
    name : str
        For the tables.
    training, held_out : CountBatch
        Four fifths of the documents, and the others.
    """

    name: str
    training: CountBatch
    held_out: CountBatch


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
) -> CountBatch:
    """Documents of the model of `lda_corpus` with given topics.

    Each document's tokens are shared out over topics first, so the memory is that of the tokens
    and not k times as much.
    """
    n_words, k = topics.shape
    proportions = rng.dirichlet(np.full(k, ALPHA0 / k), size=documents)
    # a proportion may exceed what is left of 1 by rounding, which the multinomial refuses
    proportions = np.clip(proportions / (proportions.sum(axis=1, keepdims=True) + 1e-12), 0, 1)
    shares = rng.multinomial(rng.poisson(mean_length, size=documents), proportions)
    rows, words = [], []
    for topic in range(k):
        rows.append(np.repeat(np.arange(documents), shares[:, topic]))
        draws = rng.random(rows[-1].size)
        found = np.searchsorted(np.cumsum(topics[:, topic]), draws, side="right")
        words.append(np.minimum(found, n_words - 1))
    entries = np.concatenate(rows), np.concatenate(words)
    return CountBatch.from_entries(*entries, None, (documents, n_words))


def load_reuters(seed: int = 0) -> RealCorpus:
    """Reuters as the package `lda` ships it: 395 documents, 4258 words; split by the seed."""
    import lda.datasets

    return _split("reuters", CountBatch.from_csr(lda.datasets.load_reuters()), seed)


def load_sotu(cache: str, seed: int = 0) -> RealCorpus:
    """State of the Union addresses in 200-word passages, tokenised as the demo does."""
    kept = Path(cache) / "sotu.npz"
    if not kept.exists():
        _count_sotu(Path(cache), kept)
    with np.load(kept) as arrays:
        batch = CountBatch(
            arrays["indptr"], arrays["words"], arrays["counts"], int(arrays["n_words"])
        )
    return _split("sotu", batch, seed)


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
        batch = draw_documents(topics, int(documents), rng)
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


def _count_sotu(cache: Path, kept: Path) -> None:
    form = ShardFormat("parquet")
    policy = TokenPolicy.for_languages(["english"], min_length=3, passage_words=200)
    options = PilotOptions(vocabulary_size=8000, core=2048, max_topics=20)
    cache.mkdir(parents=True, exist_ok=True)
    scratch = cache / f".sotu-{os.getpid()}"
    try:
        shards = list_shards(write_decades(scratch / "shards"))
        with connect() as cluster:
            store = create(str(scratch / "store"), shards, form, policy, options, Run(cluster))
        vocabulary: Vocabulary = store.vocabulary
        batches = [
            read.batch for shard in shards for read in read_shard(shard, form, vocabulary, policy)
        ]
        _save(concatenate(batches), kept)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _save(batch: CountBatch, path: Path) -> None:
    np.savez(
        path,
        indptr=batch.indptr,
        words=batch.words,
        counts=batch.counts,
        n_words=np.array(batch.n_words),
    )


def _split(name: str, batch: CountBatch, seed: int) -> RealCorpus:
    matrix = batch.to_csr()
    matrix = matrix[matrix.sum(axis=1) > 1]
    order = np.random.default_rng(seed).permutation(matrix.shape[0])
    held_out = np.sort(order[: matrix.shape[0] // 5])
    training = np.sort(order[matrix.shape[0] // 5 :])
    frequent = np.argsort(-matrix[training].sum(axis=0), kind="stable")
    return RealCorpus(
        name,
        _columns(matrix[training], frequent),
        _columns(matrix[held_out], frequent),
    )


def _columns(matrix: object, order: Sequence[int] | NDArray[np.int64]) -> CountBatch:
    return CountBatch.from_csr(matrix[:, order])  # type: ignore[index]
