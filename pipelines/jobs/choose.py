"""Choose numbers for `auto` options of a refit, by held-out data or by coherence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from streaming_moments.errors import (
    BoundExceeded,
    InvalidInput,
    NotIdentifiable,
    StreamingMomentsError,
)
from streaming_moments.models.base import FitOptions
from streaming_moments.models.halves import HalfRows, predicting_rounds
from streaming_moments.models.numbers.number_search import (
    TRIED,
    NumberSearch,
    Trial,
    numbers_of_topics,
    one_of,
    searched,
)
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.candidates import Selection
from streaming_moments.pipelines.jobs.refit import known_alpha0, refit_rows
from streaming_moments.pipelines.jobs.select import require_halves, select
from streaming_moments.pipelines.jobs.select_states import select_states
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.operations.windows import StatisticsSource
from streaming_moments.storage.store.store import MomentStore

_TRIED = 10  # a choice by coherence compares about this many numbers of topics


def chosen_options(
    store: StatisticsSource,
    options: Any,
    auto: Mapping[str, str],
    run: Run,
    model: Any = TopicModel,
) -> Any:
    """Choose values for the options in `auto`, and report why each was chosen.

    First `searched` chooses "topics". Then "refine" of topics is the number of rounds among 5, 10,
    20, 40 and 80 after which more rounds predict no better. A store without halves raises
    InvalidInput with the remedy. Other errors as in `select`, `select_states` and `refit`.
    """
    require_halves(store, tuple(auto), model)
    if "topics" in auto:
        search = _topics if model.finds_topics else _states
        options = replace(options, topics=search(store, options, auto["topics"], run, model))
    if "refine" in auto:
        rows = refit_rows(store, TopicModel, options, run)
        alpha0 = known_alpha0(rows, options, run)
        as_decomposed = replace(options, alpha0=alpha0, refine=0, alpha="given")
        start = TopicModel.fit(replace(rows, halves=False), as_decomposed)
        rounds = predicting_rounds(HalfRows.of(rows), start.pair_topics(store.basis.core))
        run.tell(
            f"Chose {of_number(rounds, 'round')} of refinement: more do not predict held-out "
            "pairs better."
        )
        options = replace(options, refine=rounds)
    return options


def _topics(store: StatisticsSource, options: TopicOptions, how: str, run: Run, model: Any) -> int:
    """Choose the number of topics; work that the first candidates share is done once."""

    def compared(numbers: Sequence[int], alpha0: float | Literal["auto"]) -> Selection:
        method, seed, refine = options.method, options.seed, options.refine
        return select(store, numbers, [alpha0], run, method=method, seed=seed, refine=refine)

    numbers = numbers_of_topics(store.basis, store.length_histogram().n_documents)
    selection = compared(numbers, options.alpha0)
    if not selection.likely:
        raise InvalidInput(
            "one of the two halves of the documents has no pair of vocabulary words, so nothing "
            "can be held out",
            "give a number to {option.topics}",
        )
    [alpha0] = {one.alpha0 for one in selection.candidates}
    known = {one.n_topics: one for one in selection.candidates}

    def trial_of(number: int) -> Trial | None:
        found = known.get(number)
        try:
            found = compared([number], alpha0).candidates[0] if found is None else found
        except (NotIdentifiable, BoundExceeded):
            return None
        return None if found.held_out is None else Trial(found.held_out)

    found = searched(numbers, trial_of, how, worse=0)
    return _reported(replace(found, more=selection.more), how, run)


def _states(store: StatisticsSource, options: FitOptions, how: str, run: Run, model: Any) -> int:
    """Choose the number of states, components or communities."""
    refused: list[StreamingMomentsError] = []

    def trial_of(number: int) -> Trial | None:
        try:
            compared = select_states(store, model, [replace(options, topics=number)], run)
        except (NotIdentifiable, BoundExceeded) as error:
            refused.append(error)
            return None
        [found] = compared.candidates
        return None if found.held_out is None else Trial(found.held_out, found.apart)

    found = searched(TRIED, trial_of, how, model.numbered)
    if not found.curve:
        raise refused[0]
    if TRIED[-1] in found.curve:
        found = replace(found, more=f"compare {TRIED[-1]} to {2 * TRIED[-1]}")
    return _reported(found, how, run)


def _reported(search: NumberSearch, how: str, run: Run) -> int:
    """Print the chosen number with the reason, and return it; print the gains as details."""
    chosen, best = search.found(how), search.predicting
    fewest, most = min(search.curve), max(search.curve)
    what = search.of if chosen != 1 else one_of(search.of)
    if how == "predict":
        why = "the fewest with the best held-out log-likelihood"
    elif search.apart:
        why = "the largest number found in both halves of the data"
    else:
        why = "one more would gain less than a quarter of the mean gain in held-out log-likelihood"
    also = "" if chosen == best else f" {best} {search.of} predict best."
    edge = f" More may predict better: {search.more}." if best == most and search.more else ""
    run.tell(f"Chose {chosen} {what} (tried {fewest} to {most}): {why}.{also}{edge}")
    if search.gains:
        run.detail(
            f"gain in held-out log-likelihood of each of the {search.of} added: {search.gains}"
        )
    return chosen


def most_coherent(
    store: MomentStore,
    alpha0: float | Literal["auto"],
    run: Run,
    method: str,
    seed: int,
    refine: int | Literal["auto"],
) -> int:
    """Return the number of topics of the most coherent model; arguments and errors as in `select`.

    Raises NotIdentifiable if the store has no co-document counts.
    """
    pilot = store.commit.lineage.pilot or {}
    asked = pilot.get("max_topics") or pilot.get("drawn", {}).get("max_topics")
    most = int(asked or store.basis.columns)
    step = max(1, -(-(most - 1) // _TRIED))
    tried = range(min(2, most), most + 1, step)
    best = select(store, tried, [alpha0], run, method, seed, refine).best
    if best is None:
        raise NotIdentifiable(
            "the store has no co-document counts, so coherence cannot choose the number of "
            "topics; give a number"
        )
    return best.n_topics
