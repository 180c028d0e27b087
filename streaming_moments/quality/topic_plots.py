"""Map of the topics of a model, by the similarity of their words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streaming_moments.models.topics import TopicModel
from streaming_moments.plots import Axes, plot_map
from streaming_moments.quality.topic_map import classical_scaling, topic_distances


def plot_topic_map(model: TopicModel, names: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draw a map of the topics: similar ones are close, each labelled with its number and name."""
    places = classical_scaling(topic_distances(model.topics))
    titles = [f"{topic} {name}".strip() for topic, name in enumerate(names)]
    return plot_map(places, np.asarray(model.weights), titles, ax)
