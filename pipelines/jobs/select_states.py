"""Select states: compare numbers of states, components or communities by held-out records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from streaming_moments.errors import (
    BoundExceeded,
    InvalidInput,
    NotIdentifiable,
    StreamingMomentsError,
)
from streaming_moments.models.base import FitOptions, Model
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.numbers.number_search import trial_by
from streaming_moments.models.registry import MODELS, models_of
from streaming_moments.models.states import compares_states
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.candidates import Candidate, Selection, needs_single
from streaming_moments.pipelines.jobs.refit import refit_rows, require_kind_of
from streaming_moments.printing.remedies import Spell, of_commands, remedy
from streaming_moments.storage.operations.windows import StatisticsSource

M = TypeVar("M", bound=Model)


def model_selected(store: StatisticsSource) -> Any | None:
    """Return the model whose numbers of states the store can compare; None for a topic model.

    Raises InvalidInput if no model for the kind of the store can be compared.
    """
    foundation = store.layout.foundation
    own = models_of(foundation.kind)
    table = getattr(getattr(foundation, "basis", None), "table", None)
    if table is not None:
        return LatentTree
    if any(one.finds_topics for one in own):
        return None
    compared = [one for one in own if compares_states(one)]
    if not compared:
        names = " or ".join(one.name for one in own)
        raise InvalidInput(
            f"held-out data cannot choose the number of states of {names}",
            remedy(
                "fit several numbers of states by {refit.model} with {names}, and compare the "
                "scores",
                names=names,
            ),
        )
    return compared[0]


def select_states(
    store: StatisticsSource,
    model: Any,
    tried: Sequence[FitOptions],
    run: Run,
    spell: Spell = of_commands,
) -> Selection:
    """Score each half of the records under models fitted to the other half; store no model.

    Each of `tried` is a candidate: `Options` of a model with `compares_states`. A candidate that
    cannot be fitted contains the reason, in which `spell` writes the options.

    Raises InvalidInput if there are no candidates, or if the numbers of states of the model cannot
    be compared. Also if the store is of another kind, has no halves, or has only sketches. Raises
    NotIdentifiable or BoundExceeded if no candidate can be fitted.
    """
    started = time.perf_counter()
    require_kind_of(model, store)
    if not compares_states(model):
        *others, last = (one.name for one in MODELS.values() if compares_states(one))
        known = f"{', '.join(others)} and {last}"
        raise InvalidInput(
            f"numbers of states of model {model.name} cannot be compared, but those of {known} can",
            "for topics use {select}, for other models compare the scores of several fits",
        )
    if not store.halves:
        raise InvalidInput(
            "the store has no halves of the records, so nothing can be held out",
            "create it without {create.no_halves}, or compare the results of {transform} for "
            "uncounted shards",
        )
    if not tried:
        raise InvalidInput("give at least one number of states")
    found: list[Candidate] = []
    refused: list[StreamingMomentsError] = []
    for options in tried:
        begun = time.perf_counter()
        number, alpha0 = options.topics, float(getattr(options, "alpha0", 0.0))
        try:
            rows = refit_rows(store, model, options, run)
            trial = trial_by(model, rows, options)
        except (NotIdentifiable, BoundExceeded) as error:
            refused.append(error)
            found.append(Candidate(number, alpha0, refusal=error.said(spell)))
            continue
        seconds = time.perf_counter() - begun
        rounds = getattr(options, "refine", None)
        found.append(
            Candidate(
                number,
                alpha0,
                seconds=seconds,
                held_out=trial.held_out,
                refined=rounds,
                apart=trial.apart,
            )
        )
    if len(refused) == len(found):
        raise refused[0]
    single = _single(store, model, tried, run) if all(one.apart is None for one in found) else None
    seconds = time.perf_counter() - started
    return Selection(tuple(found), seconds, model.holds_out, model.numbered, single=single)


def _single(
    store: StatisticsSource, model: Any, tried: Sequence[FitOptions], run: Run
) -> HeldOut | None:
    """Return the held-out score of a model with one state; None if not needed or not computable.

    The score is needed only to show how many of the tried states are separable.
    """
    alphas = [getattr(one, "alpha0", 0.0) for one in tried]
    if not needs_single([one.topics for one in tried], alphas):
        return None
    options = replace(tried[0], topics=1)
    try:
        return trial_by(model, refit_rows(store, model, options, run), options).held_out
    except (NotIdentifiable, BoundExceeded):
        return None


def with_held_out(store: StatisticsSource, model: M, options: FitOptions, run: Run) -> M:
    """Return the model with held-out scores, or unchanged if these cannot be computed."""
    kept: Any = model
    if getattr(kept, "held_out", True) is not None:
        return model
    try:
        rows = refit_rows(store, type(model), options, run)
        held_out = trial_by(type(model), rows, options).held_out
    except (InvalidInput, NotIdentifiable) as error:
        run.tell(f"no held-out scores: {error}")
        return model
    told: M = replace(kept, held_out=held_out)
    return told
