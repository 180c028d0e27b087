"""Plots of a topic model that show its words by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streaming_moments.models.topics import TopicModel
from streaming_moments.plots import Axes, Figure, plot_map, plot_words
from streaming_moments.quality.topic_map import classical_scaling, topic_distances


def plot_topics(
    model: TopicModel,
    terms: Sequence[str],
    number: int,
    names: Sequence[str] | None = None,
    figure: Figure | None = None,
) -> list[Axes]:
    """Draw the top words of each topic.

    `names` are the names of the topics, or None if the topics have no names. Raises the errors of
    `TopicModel.top_words`.
    """
    chosen = model.top_words(number)
    topics = range(model.n_topics)
    called = [""] * model.n_topics if names is None else names
    titles = [f"{j} {called[j]} ({model.weights[j]:.0%})".replace("  ", " ") for j in topics]
    words = [[terms[word] for word in row] for row in chosen]
    heights = [model.topics[row, j] for j, row in enumerate(chosen)]
    bars = model.word_bars
    errors = None if bars is None else [bars[row, j] for j, row in enumerate(chosen)]
    return plot_words(titles, words, heights, errors, figure)


def plot_topic_map(model: TopicModel, names: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draw a map of the topics: similar ones are close, each labelled with its number and name."""
    places = classical_scaling(topic_distances(model.topics))
    titles = [f"{topic} {name}".strip() for topic, name in enumerate(names)]
    return plot_map(places, np.asarray(model.weights), titles, ax)
