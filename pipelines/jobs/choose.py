"""Choose: numbers that a refit was told to find, by the likelihood of pairs held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streaming_moments.errors import InvalidInput
from streaming_moments.models.halves import HalfRows, predicting_rounds
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.refit import refit_rows
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.storage.operations.windows import StatisticsSource

_NUMBERS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300)


def chosen_options(
    store: StatisticsSource, options: TopicOptions, auto: Sequence[str], run: Run
) -> TopicOptions:
    """Options with numbers for those that are to be found; tells why each was taken.

    Parameters
    ----------
    store : MomentStore or WindowedStore
        The version to fit, or a window of it.
    options : TopicOptions
        What else the fit is told.
    auto : sequence of {"topics", "refine"}
        What is to be found: first the number of topics among 2, 3, 5, 7, 10, 15 and so on, as far
        as the basis serves; then, with these, the rounds of 5, 10, 20, 40 and 80 after which more
        predict no better.
    run : Run
        Where to run, and what its steps are told.

    Raises
    ------
    InvalidInput
        The store keeps no halves: says what to give instead.
    NotIdentifiable, BoundExceeded
        As `select` and `refit`.
    """
    if auto and not store.halves:
        flags = " and ".join(f"--{name}" for name in auto)
        raise InvalidInput(
            f"the store keeps no halves of the documents, by which auto chooses; give a number to "
            f"{flags} (`streaming-moments select` compares some by coherence), or rebase the store "
            "with halves"
        )
    if "topics" in auto:
        method = options.method, options.seed, options.refine
        selection = select(store, numbers_of_topics(store.basis), [options.alpha0], run, *method)
        if not selection.likely:
            raise InvalidInput(
                "a half of the documents, every other one of a shard, has no pair of words; give a "
                "number to --topics"
            )
        run.tell(selection.why)
        options = replace(options, topics=selection.likely[0].n_topics)
    if "refine" in auto:
        rows = refit_rows(store, TopicModel, options, run)
        start = TopicModel.fit(replace(rows, halves=False), replace(options, refine=0))
        rounds = predicting_rounds(HalfRows.of(rows), start.pair_topics(store.basis.core))
        run.tell(f"pairs held out take {rounds} rounds of refinement: more predict no better")
        options = replace(options, refine=rounds)
    return options


def numbers_of_topics(basis: Basis) -> tuple[int, ...]:
    """Numbers of topics that are tried: as many as the basis was made for.

    Examples
    --------
    >>> import numpy as np
    >>> numbers_of_topics(Basis(np.eye(40, 17, dtype=np.int8), 40))
    (2, 3, 5, 7, 10)
    """
    # three columns for two topics, and a few besides
    most = basis.columns / 1.5
    return tuple(number for number in _NUMBERS if number <= most) or (1,)
