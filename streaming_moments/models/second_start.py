"""Second start of topics: draw near-duplicates again, refine, and use the more likely model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streaming_moments.models.halves import STEP, HalfRows, HeldOut, trusted_there
from streaming_moments.models.provenance import SecondStart
from streaming_moments.models.refinement import likelier_there
from streaming_moments.models.rows import Rows

# A topic is a near-duplicate if its correlation with another topic exceeds this (see
# `repeated_topics`). Correlations of planted topics are below 0.1.
_REPEATED = 0.3
# To draw a near-duplicate topic again, each of its word probabilities is multiplied by a random
# gamma variable of this shape.
_SHAKEN = 0.5


def made_there(
    model: Any,
    pairs: Rows,
    rounds: int,
    halves: HalfRows | None,
    seed: int,
    near: float | None = None,
) -> Any:
    """Refine a decomposed model, and add what the two halves of the documents say about it.

    `model` and the result are handles.

    If some topics are near-duplicates, a second start draws them again, with `seed`, and refines
    the model again. The result is used if its gain in held-out log-likelihood of word pairs exceeds
    half the difference of this gain between the halves. If `rounds` is 0, there is no second start,
    and `pairs`, the pair counts of all documents, are not read. `near` is as for `trusted_there`.
    """
    if halves is None:
        return likelier_there(model, pairs, rounds) if rounds else model
    rows = halves.rows
    if not rounds:
        return trusted_there(model, halves, near)
    again = rows.value(rows.once(STEP, repeated_topics, model))
    first = trusted_there(likelier_there(model, pairs, rounds), halves, near)
    # if a half of the documents has no pair of words, the two starts cannot be compared
    if not again or rows.value(rows.once(STEP, held_out_of, first)) is None:
        return first
    begin = rows.once(STEP, drawn_anew, model, again, seed)
    second = trusted_there(likelier_there(begin, pairs, rounds), halves, near)
    held_out = [rows.value(rows.once(STEP, held_out_of, one)) for one in (first, second)]
    told = SecondStart(len(again), *held_out[1].gain(held_out[0]))
    return rows.once(STEP, with_second_start, second if told.kept else first, told)


def held_out_of(model: Any) -> HeldOut | None:
    """Return the held-out scores of a model; these are copied to this process, the model is not."""
    found: HeldOut | None = model.held_out
    return found


def with_second_start(model: Any, told: SecondStart) -> Any:
    """Add the record of a second start to a model."""
    return replace(model, second_start=told)


def repeated_topics(model: Any) -> tuple[int, ...]:
    """Return topics that are near-duplicates of an earlier topic that is not a near-duplicate.

    Two topics are compared by the correlation of their differences from the mean distribution of
    words, in the metric of the chi-square distance. In this metric, words that are frequent in all
    topics count little.

    Examples
    --------
    >>> from streaming_moments.models.topics import TopicModel
    >>> topics = np.array([[0.8, 0.1, 0.7], [0.1, 0.8, 0.2], [0.1, 0.1, 0.1]])
    >>> repeated_topics(TopicModel.from_topics(topics, np.array([0.4, 0.4, 0.2])))
    (2,)
    """
    scales = np.sqrt(model.word_probabilities)[:, None]
    apart = np.divide(
        model.topics - scales**2, scales, out=np.zeros_like(model.topics), where=scales > 0
    )
    products = apart.T @ apart
    lengths = np.sqrt(np.diag(products))
    alike = products > _REPEATED * np.outer(lengths, lengths)
    found: list[int] = []
    for topic in range(1, len(alike)):
        if np.delete(alike[topic, :topic], found).any():
            found.append(topic)
    return tuple(found)


def drawn_anew(model: Any, again: Sequence[int], seed: int) -> Any:
    """Multiply each word probability of the topics `again` of a model by a random factor."""
    rng, topics = np.random.default_rng(seed), model.topics.copy()
    topics[:, again] *= rng.gamma(_SHAKEN, size=(model.n_words, len(again)))
    return replace(model, topics=topics / topics.sum(axis=0))
