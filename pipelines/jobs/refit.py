"""Refit: fit topics to the stored statistics, row block by row block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.alpha0 import AUTO
from streaming_moments.models.base import FitOptions, Model
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.registry import models_of
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.relevance import top_words
from streaming_moments.pipelines.cluster.refit_memory import RefitPlan, plan_refit
from streaming_moments.pipelines.cluster.rows_on_cluster import OnCluster, rows_for
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.printing.remedies import remedy
from streaming_moments.quality.coherences.base import COHERENCE_WORDS, Coherence, TopWords
from streaming_moments.quality.coherences.registry import COHERENCES
from streaming_moments.statistics.counts.lengths.histogram import Lengths, WeightedLengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.statistics.counts.whitening import require_columns
from streaming_moments.storage.operations.windows import StatisticsSource, WindowedStore
from streaming_moments.storage.segments.blocks import joining_bytes

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, eq=False)
class TopicCoherences:
    """Coherences of each topic over its top 10 words, from stored co-document counts.

    by_key : for each kind of coherence, by its key in `COHERENCES`: (k,) float64, a value for each
        topic
    """

    by_key: Mapping[str, NDArray[np.float64]]

    @property
    def umass(self) -> NDArray[np.float64]:
        """(k,) UMass coherence; nearer to 0 is better."""
        return self.by_key["umass"]

    @property
    def npmi(self) -> NDArray[np.float64]:
        """(k,) mean NPMI, from -1 to 1."""
        return self.by_key["npmi"]


@dataclass(frozen=True, eq=False)
class WordPairs:
    """Numbers of documents that contain some words, alone and in pairs.

    words : (m,) int64 core words, increasing
    frequencies : (m,) float64, documents with the word
    together : (m, m) float64, documents with both words of a pair
    documents : number of all documents

    If documents have weights, each number is a sum of weights.
    """

    words: NDArray[np.int64]
    frequencies: NDArray[np.float64]
    together: NDArray[np.float64]
    documents: float

    def coherence(
        self,
        each: Coherence,
        words: NDArray[np.int64],
        topics: NDArray[np.float64],
        number: int,
    ) -> NDArray[np.float64]:
        """Return (k,) coherences of topics; `topics` contains only the rows of `words`."""
        places = np.searchsorted(self.words, words)
        together = self.together[np.ix_(places, places)]
        top = TopWords.of(topics, self.frequencies[places], together, self.documents, number)
        return each.of(top)


def refit(
    store: StatisticsSource,
    n_topics: int,
    alpha0: float,
    run: Run,
    method: str = "joint",
    seed: int = 0,
    refine: int = ROUNDS,
) -> TopicModel:
    """Fit a model to a version of a store without reading documents.

    Sweeps over the row blocks three times, as `streaming_moments.fit_by` does. The first sweep
    reads the co-occurrences of core words, from which the whitening follows. The second sums up the
    third moments after whitening, as slices or as one tensor, and these give the rotation. The
    third makes the rows of the topics. Refinement rounds over the pair counts follow. If the counts
    fit into memory, they are read only once.

    Parameters
    ----------
    store : MomentStore or WindowedStore
        The version to fit, or a window of it.
    n_topics : int
        Number of topics, k.
    alpha0 : float
        Sum of the Dirichlet parameters; 0 is the single-topic model.
    run : Run
        Cluster and options.
    method : str
        Decomposition, as in `streaming_moments.fit_by`.
    seed : int
        Seed of random directions and starts of some methods.
    refine : int
        Rounds of refinement, as in `streaming_moments.fit_by`.

    Raises
    ------
    NotIdentifiable
        The store is empty, there are fewer than k columns or positive eigenvalues, or the method
        cannot separate the topics.
    BoundExceeded
        The work does not fit into the memory budget.
    """
    options = TopicOptions(topics=n_topics, alpha0=alpha0, method=method, seed=seed, refine=refine)
    return refit_by(store, TopicModel, options, run)


def refit_by(store: StatisticsSource, model: type[M], options: FitOptions, run: Run) -> M:
    """Fit any model of the registry to a version or window of a store; errors as in `refit`."""
    require_kind_of(model, store)
    return _fitted(store, model, options, refit_rows(store, model, options, run))


def scored_refit(store: StatisticsSource, model: type[M], options: FitOptions, run: Run) -> M:
    """Fit as `refit_by` does, and add the coherence of the topics if it can be computed.

    If the row blocks are held in memory, both the fit and the coherence use them.
    """
    require_kind_of(model, store)
    rows = refit_rows(store, model, options, run)
    fitted = _fitted(store, model, options, rows)
    return with_coherence(store, fitted, run, rows if rows.in_memory else None)


def _fitted(store: StatisticsSource, model: type[M], options: FitOptions, rows: OnCluster) -> M:
    fitted = model.fit(rows, options)
    if not isinstance(store, WindowedStore):
        return fitted
    dated: M = replace(cast("Any", fitted), **store.window.attributes)
    return dated


def require_kind_of(model: type[Model], store: StatisticsSource) -> None:
    """Raise an error if the model needs statistics of another kind than those of the store.

    The message names models for the kind of the store.
    """
    foundation = store.layout.foundation
    if model.kind != foundation.kind:
        own = " or ".join(f"{{refit.model:{one.name}}}" for one in models_of(foundation.kind))
        raise InvalidInput(
            f"model {model.name} needs statistics of kind {model.kind}, but the store holds "
            f"{foundation.kind}",
            f"fit a model of this kind: {own}",
        )


def refit_rows(
    store: StatisticsSource, model: type[Model], options: FitOptions, run: Run
) -> OnCluster:
    """Return the row blocks of the statistics for a refit, which is planned to fit into memory.

    Arguments and errors as in `refit_by`.
    """
    foundation, cluster = store.layout.foundation, run.cluster
    totals: Any
    held, joining = 2, 0
    if foundation.by_length:
        if isinstance(options, TopicOptions):
            # first check whether the basis has enough columns; if not, a larger memory budget
            # would not help
            require_columns(options.topics, cast("Any", foundation).basis)
        totals = counted_lengths(store)
        held = blocks_held(totals.whole)
    else:
        if isinstance(store, WindowedStore) and store.window.half_life is not None:
            raise InvalidInput(
                f"statistics of kind {foundation.kind} are whole numbers, so documents cannot have "
                "a half-life",
                "leave out {option.half_life}, and choose days with {option.since} and "
                "{option.until}",
            )
        totals = store.totals()
        own = store if isinstance(store, WindowedStore) else store.commit
        joining = joining_bytes(own.segments, store.layout)
    plan = plan_refit(
        store.layout,
        model,
        options,
        workers=cluster.workers,
        threads=cluster.threads,
        memory=cluster.memory,
        held=held,
        joining=joining,
    )
    # Every fit to statistics that are not of documents needs the halves of the records: each step
    # of the fit reads a row block together with its two halves.
    halves = model.compares_halves or not foundation.by_length
    return rows_by(plan, store, totals, run, kept=2, halves=halves)


def rows_by(
    plan: RefitPlan, store: StatisticsSource, totals: Any, run: Run, kept: int, halves: bool = True
) -> OnCluster:
    """Return the row blocks of a version's statistics; `plan` says which of them stay in memory.

    They include the pair counts of each half of the documents, if these fit into memory.
    """
    return rows_for(plan.work_bytes).of(
        store,
        totals,
        run,
        plan.in_flight,
        plan.keep_blocks,
        whole_core=plan.whole_core,
        keep_prepared=plan.keep_pairs,
        keeps_halves=plan.kept_pairs >= kept,
        halves=halves,
    )


def known_alpha0(rows: OnCluster, options: TopicOptions, run: Run) -> float:
    """Return the alpha0 of the options.

    For "auto", search for the best alpha0 on the given row blocks, and report it.
    """
    if options.alpha0 != AUTO:
        return float(options.alpha0)
    search = TopicModel.likeliest_alpha0(rows, options)
    # report this alpha0 only as a detail, because the fit that follows searches again, with its
    # own number of topics
    run.detail(search.sentence)
    return search.alpha0


def counted_lengths(store: StatisticsSource) -> RowLengths[Lengths]:
    """Return the lengths of the documents that are counted in each row of the statistics.

    `store` is a version or a window of it. Raises NotIdentifiable if no document has three words.
    """
    lengths = store.row_lengths()
    if not lengths.whole.C3:
        counted = lengths.whole.n_documents
        short = (
            "count longer documents, or create a store with {create.language:none}, which counts "
            "stop words"
        )
        raise NotIdentifiable(
            f"version {store.version} of the store has no document with three vocabulary words",
            remedy(short if counted else "run {update} first"),
        )
    return lengths


def blocks_held(histogram: Lengths) -> int:
    """Return how many row blocks are in memory while one is read; more if documents have weights.

    Examples
    --------
    >>> blocks_held(WeightedLengths(()))
    3
    """
    return 3 if isinstance(histogram, WeightedLengths) else 2


def coherence(
    store: StatisticsSource, model: TopicModel, run: Run, rows: OnCluster | None = None
) -> TopicCoherences | None:
    """Return the coherences of a model's topics, computed from the statistics of a version.

    Returns None if the store has no co-document counts. `rows` are the row blocks of the version;
    by default they are read from the store.
    """
    if not store.codocuments:
        return None
    number = min(COHERENCE_WORDS, store.basis.core)
    if number < 2:
        return None
    words = np.unique(top_words(model.topics[: store.basis.core], number))
    if rows is None:
        lengths = store.row_lengths()
        rows = rows_for(store.layout.state_bytes).of(store, lengths, run, run.cluster.threads)
    pairs = count_pairs(rows, words)
    topics = model.topics[words]
    return TopicCoherences(
        {key: pairs.coherence(one, words, topics, number) for key, one in COHERENCES.items()}
    )


def with_coherence(store: StatisticsSource, model: M, run: Run, rows: OnCluster | None = None) -> M:
    """Return the model with the coherence of its topics, if it can be computed; see `coherence`."""
    topical: Any = model
    scores = None if model.scored is None else coherence(store, topical, run, rows)
    scored: M = topical.with_coherence(**scores.by_key) if scores is not None else model
    return scored


def count_pairs(rows: OnCluster, words: NDArray[np.int64]) -> WordPairs:
    """Return document and co-document counts of core words; `words` are in increasing order."""
    frequencies = np.zeros(words.size)
    together = np.zeros((words.size, words.size))
    parts = rows.gathered("coherence", word_codocuments, words)
    for places, block_frequencies, block_together in parts:
        frequencies[places], together[places] = block_frequencies, block_together
    return WordPairs(words, frequencies, together, rows.lengths.whole.aged_documents)


def word_codocuments(
    statistics: Statistics, words: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
    """Find those of `words` that a row block holds; return their places and counts.

    The counts are document counts, and co-document counts with all `words`.

    A place is an index into `words`.
    """
    step = statistics.block.step
    places = np.flatnonzero(words % step == statistics.block.index)
    rows = words[places] // step
    if statistics.codocuments is None:
        raise NotIdentifiable("the statistics have no co-document counts")
    return places, statistics.document_frequencies[rows], statistics.codocuments[rows][:, words]
