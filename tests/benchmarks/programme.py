"""Which measurements there are, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from comparing import ComparingFiles, ComparingMany, ListingS3
from corpora import Addresses, Planted
from jobs import PlantedFit, PlantedPipelines, RealFit
from many import ManyDocuments
from measure import Job
from methods import Method
from ours import FromCounts
from rivals import GensimLda, SklearnLda, TomotopyLda
from scaling import TIGHT_MEMORY, StoreCosts, TextReading, TripleKernel, UpdateScaling
from tensors import Parafac, PowerMethod
from traffic import Killed, SmallShards, Traffic

PEERS: tuple[Method, ...] = (
    GensimLda(1),
    SklearnLda(1),
    TomotopyLda(50),
    GensimLda(5),
    SklearnLda(5),
    TomotopyLda(200),
    TomotopyLda(300),
    TomotopyLda(1500),
)
TENSORS: tuple[Method, ...] = (Parafac(), PowerMethod())
JOINT, FEATURE = FromCounts("joint"), FromCounts("feature")
REAL_TOPICS = 20
_TURNS = 3
MANY = 10_000_000
LONG_REASON = "an hour's run has no room for it; --all measures it"


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
    """

    cache: str
    documents: tuple[int, ...]
    topics: tuple[int, ...]
    everything: bool = False

    def planted(self) -> list[Planted]:
        return [Planted(self.cache, d, k) for d in self.documents for k in self.topics]

    def jobs(self) -> list[Job]:
        """All measurements: the real corpora, scaling, and the planted corpora by size."""
        return [
            *(job for name in ("reuters", "sotu") for job in self._real(name)),
            *self._scaling(),
            *(job for corpus in self.planted() for job in self._beside(corpus)),
        ]

    def texts(self) -> Addresses:
        """Texts in proportion to the planted corpora: 25 million tokens beside 20,000 documents."""
        return Addresses(self.cache, max(1, min(12, 12 * self.documents[0] // 20_000)))

    def left_out(self) -> list[LeftOut]:
        return [
            LeftOut(f"{corpus.name}: {method.name}", LONG_REASON)
            for corpus in self.planted()
            for method in PEERS
            if not self._measured(corpus, method)
        ]

    def _beside(self, corpus: Planted) -> list[Job]:
        """Ours between the peers, the first once more at the end, so that drift shows."""
        ours: list[Job] = [
            PlantedFit(JOINT, corpus),
            PlantedPipelines(0, corpus),
            PlantedPipelines(1, corpus),
            PlantedPipelines(2, corpus),
            PlantedFit(FEATURE, corpus),
            PlantedFit(TENSORS[0], corpus),
            PlantedFit(TENSORS[1], corpus),
        ]
        peers: list[Job] = [PlantedFit(m, corpus) for m in PEERS if self._measured(corpus, m)]
        between = [job for pair in zip_longest(ours, peers) for job in pair if job is not None]
        return [*between, PlantedFit(JOINT, corpus, again=True)]

    def _measured(self, corpus: Planted, method: Method) -> bool:
        return self.everything or not _too_long(corpus, method)

    def _real(self, corpus: str) -> list[Job]:
        methods = (JOINT, *PEERS[:3], FEATURE, *PEERS[3:], *TENSORS)
        return [RealFit(method, corpus, REAL_TOPICS, self.cache) for method in methods]

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


# Documents and topics from which on a setting is left out, so that the run fits in an hour.
_LONG: tuple[tuple[int, int, Method], ...] = (
    (200_000, 20, SklearnLda(5)),
    (200_000, 20, GensimLda(5)),
    (200_000, 20, TomotopyLda(200)),
    (200_000, 20, TomotopyLda(1500)),
)


def _too_long(corpus: Planted, method: Method) -> bool:
    return any(
        corpus.documents >= documents and corpus.n_topics >= topics and method == one
        for documents, topics, one in _LONG
    )
