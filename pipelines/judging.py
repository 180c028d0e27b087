"""Judging: the most coherent of some models, and whether it may be published."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from streaming_moments.drift import Drift
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.night_report import Candidate, Gate
from streaming_moments.pipelines.nightly_config import GatesSection
from streaming_moments.pipelines.progress import StepProgress
from streaming_moments.pipelines.refit import StatisticsSource, coherence, refit
from streaming_moments.topic_model import TopicModel


def most_coherent(
    source: StatisticsSource,
    topics: Sequence[int],
    alphas: Sequence[float],
    cluster: Cluster,
    progress: StepProgress | None = None,
) -> tuple[TopicModel, tuple[Candidate, ...]]:
    """The model of the highest mean NPMI among all pairs of k and alpha0; the first of equals.

    Parameters
    ----------
    source : MomentStore or WindowedStore
        The statistics.
    topics, alphas : sequences
        Values of k and of alpha0.
    cluster : Cluster
        Where to run.
    progress : StepProgress, optional
        Told of each row block.

    Returns
    -------
    TopicModel, tuple of Candidate
        The model with its coherence, and all that were tried.

    Raises
    ------
    InvalidInput
        Several are to be compared and the store keeps no co-document counts.
    NotIdentifiable
        The statistics hold none of them: says why.
    """
    pairs = list(product(topics, alphas))
    if len(pairs) > 1 and not source.codocuments:
        raise InvalidInput(
            f"{len(pairs)} models cannot be compared, as the store keeps no co-document counts; "
            "give one number of topics and one alpha0, or create a store with them"
        )
    found: list[tuple[float, TopicModel]] = []
    tried: list[Candidate] = []
    for k, alpha0 in pairs:
        try:
            model = refit(source, k, alpha0, cluster, progress=progress)
        except NotIdentifiable as error:
            tried.append(Candidate(k, alpha0, None, str(error)))
            continue
        scores = coherence(source, model, cluster, progress)
        if scores is not None:
            model = model.with_coherence(scores.umass, scores.npmi)
        npmi = mean_npmi(model)
        tried.append(Candidate(k, alpha0, npmi))
        found.append((-np.inf if npmi is None else npmi, model))
    if not found:
        raise NotIdentifiable(tried[0].problem)
    return max(found, key=lambda pair: pair[0])[1], tuple(tried)


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
