"""Select states: which number of hidden states predicts the triples of records held out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from streaming_moments.errors import (
    BoundExceeded,
    InvalidInput,
    NotIdentifiable,
    StreamingMomentsError,
)
from streaming_moments.models.base import FitOptions, Model
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.registry import MODELS, models_of
from streaming_moments.models.rows import Rows
from streaming_moments.models.states import FITS_HALVES, compares_states
from streaming_moments.models.three_view.held_out import held_out_triples, require_told_apart
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.candidates import Candidate, Selection
from streaming_moments.pipelines.jobs.refit import refit_rows, require_kind_of
from streaming_moments.storage.operations.windows import StatisticsSource

M = TypeVar("M", bound=Model)


def model_selected(store: StatisticsSource) -> Any | None:
    """The model whose numbers of states are compared on a store; None where these are topics.

    Raises
    ------
    InvalidInput
        The store is of a table, or of a kind of which no model can be compared.
    """
    foundation = store.layout.foundation
    own = models_of(foundation.kind)
    if any(map(compares_states, own)):
        return next(one for one in own if compares_states(one))
    table = getattr(getattr(foundation, "basis", None), "table", None)
    if table is not None or not any(one.finds_topics for one in own):
        names = " or ".join(one.name for one in own if table is None or one.name == "latent_tree")
        raise InvalidInput(
            f"no halves tell how many states {names} should have; refit some (`--model {names} "
            "--topics K`) and compare what each says of itself"
        )
    return None


def select_states(
    store: StatisticsSource, model: Any, tried: Sequence[FitOptions], run: Run
) -> Selection:
    """Hold the triples of each half of the records against models of the other; keep none.

    Each of `tried`, `Options` of a model that `compares_states`, is a candidate, and one that
    cannot be fitted says why. InvalidInput with nothing to try, for a model that is not compared
    so, or for a store of another kind, without halves or with sketches alone; NotIdentifiable or
    BoundExceeded where none can be fitted.
    """
    started = time.perf_counter()
    require_kind_of(model, store)
    if not compares_states(model):
        *others, last = (one.name for one in MODELS.values() if compares_states(one))
        known = f"{', '.join(others)} and {last}"
        raise InvalidInput(
            f"numbers of states are compared of models {known}, not of {model.name}; of topics use "
            "`select`, of others refit some and compare what each says of itself"
        )
    require_told_apart(store.layout.foundation)
    if not tried:
        raise InvalidInput("nothing to fit; give numbers of states")
    found: list[Candidate] = []
    refused: list[StreamingMomentsError] = []
    for options in tried:
        begun = time.perf_counter()
        number, alpha0 = options.topics, float(getattr(options, "alpha0", 0.0))
        try:
            rows = refit_rows(store, model, options, run)
            held_out = _held_out(rows, model, options)
        except (NotIdentifiable, BoundExceeded) as error:
            refused.append(error)
            found.append(Candidate(number, alpha0, refusal=str(error)))
            continue
        seconds = time.perf_counter() - begun
        rounds = getattr(options, "refine", None)
        found.append(Candidate(number, alpha0, seconds=seconds, held_out=held_out, refined=rounds))
    if len(refused) == len(found):
        raise refused[0]
    held = "triples" if model.name in FITS_HALVES else "pairs"
    return Selection(tuple(found), time.perf_counter() - started, held, "states")


def _held_out(rows: Rows, model: Any, options: FitOptions) -> HeldOut:
    """Of a model that says it itself, or of models of both halves."""
    if model.name in FITS_HALVES:
        return held_out_triples(rows, model, options)
    found: HeldOut | None = model.fit(rows, options).held_out
    if found is None:
        raise InvalidInput("a half of the records has no pair to be held out; count more records")
    return found


def with_held_out(store: StatisticsSource, model: M, options: FitOptions, run: Run) -> M:
    """A model of a store with what halves say of it, where they say anything."""
    if model.name not in FITS_HALVES:
        return model
    try:
        rows = refit_rows(store, type(model), options, run)
        held_out = held_out_triples(rows, type(model), options)
    except (InvalidInput, NotIdentifiable) as error:
        run.tell(f"nothing is held out: {error}")
        return model
    told: M = replace(cast("Any", model), held_out=held_out)
    return told
