"""Which measurements there are, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from comparing import ComparingFiles, ComparingMany, ListingS3
from corpora import Addresses, Planted
from hidden.listing import HiddenProgramme
from jobs import PlantedFit, PlantedPipelines, RealFit, real_name
from many import ManyDocuments
from measure import Job
from methods import Method
from other_rivals import Biterm, Nmf
from ours import FromCounts
from real_corpora import Labelled, Reuters, Source, Speeches
from rivals import GensimLda, SklearnLda, TomotopyLda
from scaling import TIGHT_MEMORY, StoreCosts, TextReading, TripleKernel, UpdateScaling
from tensors import Parafac, PowerMethod
from traffic import Killed, SmallShards, Traffic

# Of planted corpora, each with several seeds.
PEERS: tuple[Method, ...] = (
    TomotopyLda(100),
    GensimLda(10),
    TomotopyLda(300),
    SklearnLda(10),
    TomotopyLda(1000),
    SklearnLda(5, "online"),
)
TENSORS: tuple[Method, ...] = (Parafac(), PowerMethod())
JOINT = FromCounts()
OURS: tuple[Method, ...] = (
    JOINT,
    FromCounts(refine=0),
    FromCounts(passes=2),
    FromCounts(passes=10),
    FromCounts(passes="auto"),
    FromCounts(passes="auto", alpha0="auto"),
)
WEIGHTS: tuple[Method, ...] = tuple(
    FromCounts(refine, 0, weights) for weights in ("even", "pooled") for refine in (0, JOINT.refine)
)
SPREADS = (0.0, 1.0, 1.5)
REAL_OURS: tuple[Method, ...] = (
    JOINT,
    FromCounts(passes="auto"),
    FromCounts(passes=2),
    FromCounts(refine=0),
    FromCounts(refine=40),
    FromCounts(alpha="auto"),
    # the default before it was found
    FromCounts(alpha0=0.1),
    FromCounts(passes="auto", alpha0=0.1),
)
REAL_PEERS: tuple[Method, ...] = (
    Nmf(),
    # the most coherent words on documents that were learned from
    Nmf("frobenius", 200),
    GensimLda(10),
    GensimLda(10, whole=True),
    SklearnLda(50),
    Biterm(),
    TomotopyLda(1000),
)
# What users of scikit-learn would try first, on lengths that differ.
MIXED_PEERS: tuple[Method, ...] = (SklearnLda(10),)
# Spread of the number of titles or abstracts that are joined to one document.
_MIXED = 1.25
_TURNS = 3
MANY = 10_000_000
LONG_REASON = "a run has no room for it; --all measures it"


@dataclass(frozen=True)
class LeftOut:
    """A measurement that is not made, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Programme:
    """The measurements of a run.

    Parameters
    ----------
    cache : str
        Folder of the corpora.
    documents, topics : tuple of int
        Sizes of the planted corpora, rising; each pair is one corpus.
    everything : bool
        Also what is left out otherwise, as it takes too long.
    labelled : tuple of str
        Paths of labelled corpora.
    real_topics : tuple of int
        Numbers of topics asked of real corpora.
    seeds : int
        Runs of each setting of Gibbs sampling.
    starts : int
        Runs of each other peer whose start is random; 0 leaves them out.
    corpora : int
        Corpora drawn anew of the first size.
    know_eta : bool
        Whether peers are told the parameters of the topics.
    hidden : HiddenProgramme
        Of sequences, views, graphs, tables and embeddings.
    """

    cache: str
    documents: tuple[int, ...]
    topics: tuple[int, ...]
    everything: bool = False
    labelled: tuple[str, ...] = ()
    real_topics: tuple[int, ...] = (20,)
    seeds: int = 5
    starts: int = 2
    corpora: int = 1
    know_eta: bool = False
    hidden: HiddenProgramme = field(default_factory=HiddenProgramme)

    def planted(self) -> list[Planted]:
        """Those beside peers: of the first size several drawn anew, and one of each other."""
        sizes = [(d, k) for d in self.documents for k in self.topics]
        first = [Planted(self.cache, *sizes[0], seed) for seed in range(self.corpora)]
        return [*first, *(Planted(self.cache, *size) for size in sizes[1:])]

    def spreads(self) -> list[Planted]:
        """Those of unlike lengths, of the first size."""
        first = self.documents[0], self.topics[0]
        return [
            Planted(self.cache, *first, seed, spread)
            for spread in SPREADS
            for seed in range(self.corpora)
        ]

    def real(self) -> list[tuple[Source, int]]:
        """Real corpora, each with its numbers of topics."""
        labelled = [Labelled(path) for path in self.labelled]
        sources: list[Source] = [Reuters(), Speeches("whole"), Speeches("passages"), *labelled]
        # of unlike lengths: as many topics as labels
        mixed: list[Source] = [Speeches("mixed"), *(replace(s, mixed=_MIXED) for s in labelled)]
        return [
            *((source, source.n_labels) for source in mixed),
            *((source, k) for k in self.real_topics for source in sources),
        ]

    def jobs(self) -> list[Job]:
        """All measurements: the real corpora, scaling, planted corpora by size, and other kinds."""
        return [
            *(job for source, k in self.real() for job in self._real(source, k)),
            *self._scaling(),
            *(job for corpus in self.planted() for job in self._beside(corpus)),
            *self._lengths(),
            *self.hidden.jobs(),
        ]

    def texts(self) -> Addresses:
        """Texts in proportion to the planted corpora: 25 million tokens beside 20,000 documents."""
        return Addresses(self.cache, max(1, min(12, 12 * self.documents[0] // 20_000)))

    def real_names(self) -> list[str]:
        return [real_name(source, k) for source, k in self.real()]

    def left_out(self) -> list[LeftOut]:
        return [
            LeftOut(f"{corpus.name}: {method.name}", LONG_REASON)
            for corpus in self.planted()
            for method in PEERS
            if not self._measured(corpus, method)
        ]

    def _beside(self, corpus: Planted) -> list[Job]:
        """Ours between the peers, the first once more at the end, so that drift shows.

        Of all but the smallest corpora one run of each peer.
        """
        smallest = self.documents[0]
        ours: list[Job] = [
            *(PlantedFit(method, corpus) for method in OURS),
            *(PlantedPipelines(workers, corpus) for workers in (0, 1, 2)),
            *(PlantedFit(method, corpus) for method in TENSORS),
        ]
        peers: list[Job] = [
            PlantedFit(one, corpus, self.know_eta)
            for method in PEERS
            if self._measured(corpus, method)
            for one in self._seeded(method)[: None if corpus.documents == smallest else 1]
        ]
        between = [job for pair in zip_longest(ours, peers) for job in pair if job is not None]
        return [*between, PlantedFit(JOINT, corpus, again=True)]

    def _lengths(self) -> list[Job]:
        """Length weights beside pooled moments, where lengths are alike and where they are not."""
        beside = {corpus.name for corpus in self.planted()}
        return [
            PlantedFit(method, corpus)
            for corpus in self.spreads()
            for method in WEIGHTS
            if not (corpus.name in beside and method in OURS)
        ]

    def _seeded(self, method: Method) -> list[Method]:
        """The method with each seed; one that does not draw, once."""
        if method.seed is None:
            return [method]
        given: Any = method
        runs = self.seeds if isinstance(method, TomotopyLda) else self.starts
        return [replace(given, seed=seed) for seed in range(1, runs + 1)]

    def _measured(self, corpus: Planted, method: Method) -> bool:
        return self.everything or not _too_long(corpus, method)

    def _real(self, source: Source, k: int) -> list[Job]:
        peers = REAL_PEERS if not source.n_labels or source.short else REAL_PEERS + MIXED_PEERS
        measured = [m for m in peers if source.short or not isinstance(m, Biterm)]
        methods = (*REAL_OURS, *(one for method in measured for one in self._seeded(method)))
        return [RealFit(method, source, k) for method in methods]

    def _scaling(self) -> list[Job]:
        k, most = self.topics[0], self.topics[-1]
        sizes = sorted({self.documents[0], self.documents[-1]})
        some = [Planted(self.cache, size, k) for size in sizes]
        # 32 topics are asked of these: the corpus must have as many, where there is one
        stores = [Planted(self.cache, size, most) for size in sizes]
        return [
            *(TripleKernel(self.planted()[0], threads) for threads in (1, 2)),
            *_in_turns(TextReading(self.texts(), whole) for whole in (False, True)),
            *_in_turns(UpdateScaling(c, processes) for c in some for processes in (1, 2)),
            *_in_turns(UpdateScaling(c, 1, TIGHT_MEMORY) for c in some),
            *(StoreCosts(corpus) for corpus in stores),
            *(ComparingMany(known) for known in (1.0, 0.5, 0.0)),
            ComparingFiles(),
            ListingS3(),
            *(Traffic(processes, shards) for processes in (2, 4, 8) for shards in (20, 40)),
            Traffic(2, 40, threads=4),
            *(SmallShards(shards) for shards in (400, 1000)),
            *(Killed(4, in_close=in_close) for in_close in (False, True)),
            ManyDocuments(self.cache, self._many()),
        ]

    def _many(self) -> int:
        return MANY if self.everything else min(MANY // 10, 50 * self.documents[0])


def _in_turns(jobs: Iterable[Job]) -> list[Job]:
    """Several times over, for the median: the machine's noise is as large as what is compared."""
    return list(jobs) * _TURNS


# Documents and topics from which on a setting is left out, so that the run ends.
_LONG: tuple[tuple[int, int, Method], ...] = (
    (200_000, 20, SklearnLda(10)),
    (200_000, 20, SklearnLda(5, "online")),
    (200_000, 20, GensimLda(10)),
    (200_000, 20, TomotopyLda(300)),
    (200_000, 20, TomotopyLda(1000)),
)


def _too_long(corpus: Planted, method: Method) -> bool:
    return any(
        corpus.documents >= documents and corpus.n_topics >= topics and method == one
        for documents, topics, one in _LONG
    )
