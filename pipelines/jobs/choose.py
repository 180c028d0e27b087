"""Choose: numbers that a refit was told to find, by pairs held out or by coherence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from streaming_moments.errors import BoundExceeded, InvalidInput, NotIdentifiable
from streaming_moments.models.halves import (
    HalfRows,
    HeldOut,
    numbers_of_topics,
    predicting_rounds,
    telling_number,
)
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.candidates import Candidate, Selection
from streaming_moments.pipelines.jobs.refit import known_alpha0, refit_rows
from streaming_moments.pipelines.jobs.select import require_halves, select
from streaming_moments.storage.operations.windows import StatisticsSource
from streaming_moments.storage.store.store import MomentStore

_TRIED = 10  # numbers of topics that are compared by coherence


def chosen_options(
    store: StatisticsSource, options: TopicOptions, auto: Mapping[str, str], run: Run
) -> TopicOptions:
    """Choose values for the options in `auto`, and report why each was chosen.

    First "topics" among 1, 2, 3, 5, 7, 10, 15 and so on, as far as the basis serves: those that
    predict best for "predict", for "auto" those that are told apart, between these too. With these,
    "refine": the number of rounds among 5, 10, 20, 40 and 80 after which more rounds predict no
    better. A store without halves raises InvalidInput, which says what to give instead; other
    errors as of `select` and `refit`.
    """
    require_halves(store, tuple(auto))
    if "topics" in auto:
        selection = select(
            store,
            numbers_of_topics(store.basis),
            [options.alpha0],
            run,
            method=options.method,
            seed=options.seed,
            refine=options.refine,
        )
        if not selection.likely:
            raise InvalidInput(
                "a half of the documents has no pair of words; give a number to --topics"
            )
        if auto["topics"] == "auto":
            selection = with_numbers_between(store, selection, options, run)
            run.tell(selection.why_separable)
            number = (selection.separable or selection.likely[0]).n_topics
        else:
            run.tell(selection.why)
            number = selection.likely[0].n_topics
        options = replace(options, topics=number)
    if "refine" in auto:
        rows = refit_rows(store, TopicModel, options, run)
        alpha0 = known_alpha0(rows, options, run)
        as_decomposed = replace(options, alpha0=alpha0, refine=0, alpha="given")
        start = TopicModel.fit(replace(rows, halves=False), as_decomposed)
        rounds = predicting_rounds(HalfRows.of(rows), start.pair_topics(store.basis.core))
        run.tell(f"pairs held out take {rounds} rounds of refinement: more predict no better")
        options = replace(options, refine=rounds)
    return options


def with_numbers_between(
    store: StatisticsSource, selection: Selection, options: TopicOptions, run: Run
) -> Selection:
    """The selection with numbers between those compared, as many as tell which are told apart."""
    [alpha0] = {one.alpha0 for one in selection.candidates}
    more: dict[int, Candidate] = {}

    def held_out_of(number: int) -> HeldOut | None:
        try:
            selected = select(
                store,
                [number],
                [alpha0],
                run,
                method=options.method,
                seed=options.seed,
                refine=options.refine,
            )
            [more[number]] = selected.candidates
        except (NotIdentifiable, BoundExceeded):
            return None
        return more[number].held_out

    telling_number(selection.curve, held_out_of)
    every = sorted((*selection.candidates, *more.values()), key=lambda one: one.n_topics)
    return replace(selection, candidates=tuple(every))


def most_coherent(
    store: MomentStore,
    alpha0: float | Literal["auto"],
    run: Run,
    method: str,
    seed: int,
    refine: int | Literal["auto"],
) -> int:
    """Return the number of topics of the most coherent model; arguments and errors as of `select`.

    A store without co-document counts raises NotIdentifiable.
    """
    pilot = store.commit.lineage.pilot or {}
    most = int(pilot.get("max_topics", store.basis.columns))
    step = max(1, -(-(most - 1) // _TRIED))
    tried = range(min(2, most), most + 1, step)
    best = select(store, tried, [alpha0], run, method, seed, refine).best
    if best is None:
        raise NotIdentifiable(
            "the store keeps no co-document counts, by which topics are chosen; give their number"
        )
    return best.n_topics
