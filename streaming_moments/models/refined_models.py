"""Refined models: topic models by the pairs of words, all and halves, wherever the model lies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streaming_moments.models.halves import STEP as HALVES
from streaming_moments.models.halves import CrossFit, HalfRows, crossed_there
from streaming_moments.models.refinement import STEP, PairTopics, refined_there
from streaming_moments.models.rows import Rows


def likelier_there(model: Any, pairs: Rows, rounds: int) -> Any:
    """As `TopicModel.likelier`, of a handle: what it gives is one too, nothing comes here."""
    start = pairs.once(STEP, pair_topics_of, model, pairs.basis.core)
    found = refined_there(pairs, start, rounds)
    return pairs.once(STEP, with_pair_topics, model, found, rounds)


def trusted_there(model: Any, halves: HalfRows) -> Any:
    """As `TopicModel.trusted`, of a handle: what it gives is one too, only numbers come here."""
    rows = halves.rows
    found = crossed_there(halves, rows.once(HALVES, pair_topics_of, model, rows.basis.core))
    return model if found is None else rows.once(HALVES, with_cross_fit, model, found)


def with_cross_fit(model: Any, found: CrossFit) -> Any:
    """The model with its error bars and held-out likelihood."""
    return replace(model, **vars(found))


def pair_topics_of(model: Any, core: int) -> PairTopics:
    """What is refined of a model, with so many core words."""
    return PairTopics(model.topics, model.pair_weights, model.word_probabilities, core)


def with_pair_topics(model: Any, found: PairTopics, rounds: int) -> Any:
    """The model after so many rounds that found these, topics by falling weight."""
    weights = found.pair_weights.sum(axis=1)
    model = replace(
        model,
        topics=found.topics,
        weights=weights,
        refined=model.refined + rounds,
        pair_weights=found.pair_weights,
    )
    return model.reordered(np.argsort(-weights, kind="stable"))
