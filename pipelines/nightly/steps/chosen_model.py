"""Choose the model of a nightly run among candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import product
from typing import Any, cast

from streaming_moments.errors import InvalidInput
from streaming_moments.models.alpha0 import AUTO
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.candidates import Candidate
from streaming_moments.pipelines.jobs.choose import chosen_options
from streaming_moments.pipelines.jobs.refit import refit_by, scored_refit
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.pipelines.jobs.select_states import select_states, with_held_out
from streaming_moments.pipelines.model_options import finds_number
from streaming_moments.pipelines.nightly.refit_config import RefitSection
from streaming_moments.storage.operations.windows import StatisticsSource, Window, windowed
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True, eq=False)
class Chosen:
    """The model of a nightly run, and how it was chosen.

    model : topics with their coherence, or states with their held-out log-likelihood
    tried : all candidates that were compared
    why : reason for the choice; empty if nothing was compared
    single : as in `Selection`
    """

    model: Any
    tried: tuple[Candidate, ...]
    why: str = ""
    single: HeldOut | None = None


def source_of(store: MomentStore, section: RefitSection) -> StatisticsSource:
    """Return the whole store, or the last days that the configuration selects."""
    since = None
    if section.window_days is not None:
        days = [part.dates.last for part in store.commit.segments if part.dates is not None]
        # without dates, any day will do, because `windowed` raises an error with the reason
        if days:
            since = date.fromordinal(max(1, max(days).toordinal() - section.window_days + 1))
        else:
            since = datetime.now(UTC).date()
    window = Window(since, None, section.half_life_days)
    return windowed(store, window)


def chosen_model(source: StatisticsSource, section: RefitSection, run: Run) -> Chosen:
    """Compare models for all pairs of number of topics and alpha0, and fit the best one.

    Also chooses the values of options that are "auto".

    If the statistics have halves of the documents, the models are compared by the held-out
    log-likelihood of word pairs, or of triples for states. Otherwise they are compared by the mean
    NPMI. Raises InvalidInput if several models are given but the store has no co-document counts,
    or if an option is "auto" but the store has no halves. Raises NotIdentifiable or BoundExceeded
    if no model can be fitted.
    """
    if not section.topical:
        return _chosen_states(source, section, run)
    if section.auto and not source.halves:
        keys = " and ".join(section.auto)
        raise InvalidInput(
            "the store has no halves of the documents, which `auto` needs; give a number for "
            f"{keys} in [refit], or rebase the store with halves"
        )
    pairs = list(product(section.topics, section.alpha0))
    tried: tuple[Candidate, ...] = ()
    why, single = "", None
    if len(pairs) > 1:
        if not source.codocuments:
            raise InvalidInput(
                f"{len(pairs)} models cannot be compared, because the store has no co-document "
                "counts; give one number of topics and one alpha0, or create a store with "
                "these counts"
            )
        selection = select(
            source,
            section.topics,
            section.alpha0,
            run,
            method=section.method,
            seed=section.seed,
            refine=section.further.get("refine", ROUNDS),
        )
        tried, single = selection.candidates, selection.single
        best = selection.taken or next(one for one in tried if not one.refusal)
        why = selection.why or (
            "the most coherent model, because there are no held-out word pairs: "
            f"{best.n_topics} topics, alpha0 {best.alpha0:g}"
        )
        run.tell(why)
        # Let the fit of the chosen model search for alpha0 again, because this search also finds
        # the alpha with which the model reads documents.
        searched = section.alpha0 == (AUTO,)
        pairs = [(best.n_topics, AUTO if searched else best.alpha0)]
    options = section.options(*pairs[0])
    if section.auto:
        options = chosen_options(source, options, section.auto, run)
    model = scored_refit(source, section.family, options, run)
    means = {key: mean for key, mean in model.mean_coherences.items() if mean is not None}
    npmi, held_out = means.pop("npmi", None), model.held_out
    number, alpha0 = model.moments
    only = Candidate(number, alpha0, npmi, held_out=held_out, coherences=means)
    return Chosen(model, tried or (only,), why, single)


def _chosen_states(source: StatisticsSource, section: RefitSection, run: Run) -> Chosen:
    pairs = list(product(section.topics, section.alpha0))
    tried = [section.options(*pair) for pair in pairs]
    if finds_number(section.family, "topics") and "topics" in section.auto:
        tried = [chosen_options(source, tried[0], section.auto, run, section.family)]
    if len(tried) == 1:
        model = refit_by(source, section.family, tried[0], run)
        model = with_held_out(source, model, tried[0], run)
        known = getattr(model, "held_out", None)
        number, alpha0 = pairs[0]
        number = model.n_topics if "topics" in section.auto else number
        alpha0 = cast("float", getattr(model, "alpha0", alpha0))
        only = Candidate(number, alpha0, held_out=known)
        return Chosen(model, (only,))
    selection = select_states(source, section.family, tried, run)
    run.tell(selection.why)
    best = selection.likely[0]
    options = tried[selection.candidates.index(best)]
    model = refit_by(source, section.family, options, run)
    model = replace(model, held_out=best.held_out)
    return Chosen(model, selection.candidates, selection.why, selection.single)
