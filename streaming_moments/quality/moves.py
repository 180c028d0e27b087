"""Moves: find topics that changed by more than their error bars."""

from __future__ import annotations

from dataclasses import replace

from streaming_moments.models.base import Model
from streaming_moments.models.states import Clusters, states_of
from streaming_moments.quality.clusters import cluster_move
from streaming_moments.quality.matching import KeptTopic, TopicMatching


def with_moves(matching: TopicMatching, before: Model, after: Model) -> TopicMatching:
    """Mark the pairs of a matching in which the topic moved by more than its error bar.

    The error bar is the larger one of those of the topic in both models. If the later model was
    fitted to the same documents and some more, the difference of the two topics has no larger error
    than the earlier topic. The topic numbers in `matching` must be those of the two models. If
    neither model has error bars, no pair is marked.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.models.topics import TopicModel
    >>> from streaming_moments.quality.matching import compare_topics
    >>> before = TopicModel.from_topics(np.array([[0.5], [0.5]]), np.array([1.0]))
    >>> after = TopicModel.from_topics(np.array([[0.75], [0.25]]), np.array([1.0]))
    >>> after = replace(after, topic_bars=np.array([0.25]))
    >>> with_moves(compare_topics(before.topics, after.topics), before, after).kept
    (KeptTopic(before=0, after=0, distance=0.25, moved=True),)
    """
    one, two = states_of(before), states_of(after)
    both = [None if found is None else found.bars for found in (one, two)]
    if all(bars is None for bars in both):
        return matching

    def moved(pair: KeptTopic) -> bool:
        if isinstance(one, Clusters) and isinstance(two, Clusters):
            return bool(cluster_move(one, two, pair).bars > 1)
        places = zip(both, (pair.before, pair.after), strict=True)
        bar = max(float(bars[topic]) for bars, topic in places if bars is not None)
        # error bars are L1 distances, which are twice the total variation `distance`
        return 2 * pair.distance > bar

    return replace(matching, kept=tuple(replace(pair, moved=moved(pair)) for pair in matching.kept))
