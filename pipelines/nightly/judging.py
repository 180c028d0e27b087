"""Judging: the most coherent of some models, and whether it may be published."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.candidates import Candidate
from streaming_moments.pipelines.jobs.refit import refit_by, with_coherence
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.pipelines.nightly.config import GatesSection, RefitSection
from streaming_moments.pipelines.reports.page import Gate
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.operations.windows import StatisticsSource


def most_coherent(
    source: StatisticsSource, section: RefitSection, run: Run
) -> tuple[TopicModel, tuple[Candidate, ...]]:
    """The model of the highest mean NPMI among all pairs of k and alpha0, as `select` finds it.

    Parameters
    ----------
    source : MomentStore or WindowedStore
        The statistics.
    section : RefitSection
        Values of k and of alpha0, and the method.
    run : Run
        Where to run, and what its steps are told.

    Returns
    -------
    TopicModel, tuple of Candidate
        The model with its coherence, and all that were tried.

    Raises
    ------
    InvalidInput
        Several are to be compared and the store keeps no co-document counts.
    NotIdentifiable, BoundExceeded
        The statistics hold none of them, or the memory budget does: says why.
    """
    pairs = list(product(section.topics, section.alpha0))
    tried: tuple[Candidate, ...] = ()
    if len(pairs) > 1:
        if not source.codocuments:
            raise InvalidInput(
                f"{len(pairs)} models cannot be compared, as the store keeps no co-document "
                "counts; give one number of topics and one alpha0, or create a store with them"
            )
        how = (run, section.method, section.seed, section.further.get("refine", ROUNDS))
        selection = select(source, section.topics, section.alpha0, *how)
        tried = selection.candidates
        best = selection.best or next(one for one in tried if not one.refusal)
        pairs = [(best.n_topics, best.alpha0)]
    k, alpha0 = pairs[0]
    model = refit_by(source, section.family, section.options(k, alpha0), run)
    model = with_coherence(source, model, run)
    return model, tried or (Candidate(k, model.alpha0, mean_npmi(model)),)


def mean_npmi(model: TopicModel) -> float | None:
    """Mean NPMI of the topics; None where it was not computed.

    Examples
    --------
    >>> model = TopicModel.from_topics(np.eye(2), np.array([0.5, 0.5]))
    >>> mean_npmi(model) is None
    True
    """
    return float(model.npmi.mean()) if np.isfinite(model.npmi).all() else None


def judged(
    model: TopicModel, published: TopicModel | None, drift: Drift, gates: GatesSection
) -> tuple[Gate, ...]:
    """Each condition that was asked for; one whose value is not known holds.

    Parameters
    ----------
    model : TopicModel
        The night's, with its coherence.
    published : TopicModel, optional
        Yesterday's.
    drift : Drift
        Of the night.
    gates : GatesSection
        The bounds.
    """
    drop = None
    now, before = mean_npmi(model), None if published is None else mean_npmi(published)
    if now is not None and before is not None:
        drop = before - now
    most = (
        ("drop of coherence", drop, gates.max_coherence_drop),
        (
            "drop of held-out likelihood",
            _held_out_drop(model, published),
            gates.max_held_out_drop,
        ),
        ("distance of pair distributions", drift.pair_distance, gates.max_pair_distance),
    )
    least = (
        ("captured spectrum", model.captured, gates.min_captured),
        ("documents", model.documents, gates.min_documents),
        ("effective documents", drift.effective_documents, gates.min_effective_documents),
        ("weight of the smallest topic", float(model.weights.min()), gates.min_topic_weight),
    )
    return (
        *(
            Gate(name, value, bound, value is None or value <= bound)
            for name, value, bound in most
            if bound is not None
        ),
        *(
            Gate(name, value, bound, value >= bound)
            for name, value, bound in least
            if bound is not None
        ),
    )


def _held_out_drop(model: TopicModel, published: TopicModel | None) -> float | None:
    """Of a pair of words; None where no halves are kept, or of other words it is another number."""
    if published is None or published.vocabulary != model.vocabulary:
        return None
    if published.held_out is None or model.held_out is None:
        return None
    return published.held_out.mean - model.held_out.mean


def reasons_of(gates: Sequence[Gate]) -> tuple[str, ...]:
    """What does not hold, in words.

    Examples
    --------
    >>> reasons_of([Gate("documents", 12, 100, False), Gate("captured spectrum", 0.9, 0.5, True)])
    ('documents: 12, the bound is 100',)
    """
    return tuple(
        f"{gate.name}: {gate.value:.6g}, the bound is {gate.bound:g}"
        for gate in gates
        if not gate.holds and gate.value is not None
    )
