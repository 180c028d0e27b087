"""Refined models: the refinement of a topic model's topics, wherever the model lies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streaming_moments.models.refinement import STEP, PairTopics, refined_there
from streaming_moments.models.rows import Rows


def likelier_there(model: Any, pairs: Rows, rounds: int) -> Any:
    """As `TopicModel.likelier`, of a handle: what it gives is one too, nothing comes here."""
    start = pairs.once(STEP, pair_topics_of, model, pairs.basis.core)
    found = refined_there(pairs, start, rounds)
    return pairs.once(STEP, with_pair_topics, model, found, rounds)


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
