"""Which measurements of sequences, views, graphs, tables and embeddings there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from hidden.beside import Beside, Source, Way
from hidden.edges import CountEdges
from hidden.embeddings import BUNDLED, BundledRows, EmbeddedTexts
from hidden.graphs import AdjacencyNmf, OurCommunities, Partition, PlantedGraph, RealGraph
from hidden.records import OurViews, PlantedViews, ViewsEm
from hidden.sequence_ways import Hmmlearn, OurMarkov, Pass, Pomegranate, Race
from hidden.sequences import PlantedSequences, TextSymbols
from hidden.tables import OurTree, PlantedTable, RealTable, TreeEm
from hidden.vector_ways import OurMixture, SklearnMeans, SklearnMixture
from measure import Job

# What is timed alone, or in turns, stands with the scaling.
TIMED = ("race on ", "pass over ", "graph of ")

LETTER_STATES = (6, 10)
SVD_DIMENSIONS = (32, 256)
# It brings PyTorch, so it is no part of the extra; of 10,000 symbols alone, as it is slow.
_TORCH: tuple[Way, ...] = (Pomegranate(),) if find_spec("pomegranate") else ()
MARKOV: tuple[Way, ...] = (
    OurMarkov(),
    OurMarkov(refine=0),
    OurMarkov(polish="auto"),
    Hmmlearn(),
)
VIEWS: tuple[Way, ...] = (OurViews(), OurViews(refine=0), OurViews(columns=8), ViewsEm())
GRAPHS: tuple[Way, ...] = (
    OurCommunities(),
    OurCommunities(refine=0),
    AdjacencyNmf(),
    AdjacencyNmf("kullback-leibler"),
    Partition("Louvain, networkx"),
    Partition("Louvain, igraph"),
    Partition("Leiden, igraph"),
)
TABLES: tuple[Way, ...] = (
    OurTree(),
    OurTree("Chow-Liu"),
    OurTree("independent columns"),
    TreeEm("ours", rounds=5, seed=None),
    TreeEm("ours", seed=None),
    TreeEm(),
)
CLUSTERS: tuple[Way, ...] = (
    *(OurMixture("spherical", passes) for passes in (0, 2)),
    *(OurMixture("tied-spherical", passes) for passes in (0, 2, 10)),
    *(OurMixture("tied-diag", passes) for passes in (0, 2)),
    *(SklearnMixture(covariance) for covariance in ("spherical", "diag")),
    SklearnMeans(),
    SklearnMeans("MiniBatchKMeans"),
)
_FIRST_WORDS = 100_000  # of which hmmlearn ends in a run


@dataclass(frozen=True)
class HiddenProgramme:
    """Sources with the ways beside one another.

    Parameters
    ----------
    texts : tuple of str
        Paths of JSON Lines with a column `text`; the State of the Union addresses come of
        themselves.
    seeds : int
        Runs of each peer that draws.
    draws : int
        Planted data drawn anew.
    quick : bool
        The smallest of each kind alone.
    labelled : tuple of str
        Paths of labelled texts, which are embedded.
    """

    texts: tuple[str, ...] = ()
    seeds: int = 5
    draws: int = 1
    quick: bool = False
    labelled: tuple[str, ...] = ()

    def sources(self) -> list[Source]:
        return [source for source, _ in self._beside()]

    def jobs(self) -> Iterator[Job]:
        """What is beside one another, then what is timed."""
        for source, ways in self._beside():
            yield from (Beside(source, one) for way in ways for one in self._seeded(way))
        if self.quick:
            return
        for path in self.texts:
            yield from (Race(TextSymbols(6, path), seed) for seed in range(1, self.seeds + 1))
            yield Pass(TextSymbols(10, path))
        yield Pass(PlantedSequences(1_000_000))
        yield Pass(TextSymbols(10))
        yield Pass(TextSymbols(10, words=127))
        yield Pass(TextSymbols(10, words=9_999))
        yield CountEdges()
        yield CountEdges(lists=False)

    def _beside(self) -> list[tuple[Source, Sequence[Way]]]:
        draws = range(self.draws)
        planted = [PlantedSequences(n, draw=d) for n in (10_000, 100_000) for d in draws]
        views = [PlantedViews(n, m, d) for m in (None, 5.0) for n in (3000, 30_000) for d in draws]
        graphs = [
            PlantedGraph(*shape, d)
            for shape in ((600, 0.2, 0.03, 0.0), (600, 0.2, 0.03, 0.5), (2000, 0.1, 0.02, 0.5))
            for d in draws
        ]
        tables = [PlantedTable(n, d) for n in (1000, 5000, 20_000) for d in draws]
        if self.quick:
            pairs = (
                (planted[0], MARKOV),
                (views[0], VIEWS),
                (graphs[0], GRAPHS),
                (tables[0], TABLES),
                (BundledRows("iris"), CLUSTERS),
            )
            return list(pairs)
        letters = [TextSymbols(k, path) for path in self.texts for k in LETTER_STATES]
        words = TextSymbols(10, words=999, most=_FIRST_WORDS)
        real = [RealGraph("karate", 2), RealGraph("karate", 4), RealGraph("miserables", 6)]
        known = [RealTable(name, 2) for name in ("digits", "cancer", "affairs", "election")]
        return [
            (planted[0], (*MARKOV, *_TORCH)),
            *((source, MARKOV) for source in (*planted[1:], *letters, words)),
            *((source, VIEWS) for source in views),
            *((source, GRAPHS) for source in (*graphs, *real)),
            *((source, TABLES) for source in (*tables, *known)),
            *((source, CLUSTERS) for source in self._embedded()),
        ]

    def _embedded(self) -> list[Source]:
        """Texts by their leading directions and by random ones, and what scikit-learn brings."""
        return [
            *(EmbeddedTexts(path, "svd", d) for path in self.labelled for d in SVD_DIMENSIONS),
            *(EmbeddedTexts(path, "projection", 256) for path in self.labelled),
            *(BundledRows(which) for which in BUNDLED),
        ]

    def _seeded(self, way: Way) -> list[Way]:
        """The way with each seed; one that does not draw, once."""
        if way.seed is None:
            return [way]
        given: Any = way
        return [replace(given, seed=seed) for seed in range(1, self.seeds + 1)]
