"""Stopping: after which pass "auto" ends, as another would change the model by little."""

from __future__ import annotations

import numpy as np

from streaming_moments.models.states import Clusters, States

AUTO = "auto"
"""Number of passes for "auto": until one changes the model by less than its error bars allow."""
MOST_PASSES = 20
"""Of "auto"."""
MOST_OF_CHAINS = 100
# Shares of the error bars: topics are nearest to the planted ones after one or two passes, others
# come nearer until they settle, and Baum-Welch changes little with each of many passes.
OF_DOCUMENTS, OF_EM, OF_CHAINS = 0.5, 0.05, 0.02
_MOVED = 0.01  # that a pass may change at most where there are no error bars
_AS_BARS = 0.1  # as which error bars are taken where there are none, if this gives less


def settled(old: States | Clusters, new: States | Clusters, share: float) -> bool:
    """Whether a pass changed states by at most this share of their error bars on average.

    Without bars the limit is this share of a tenth, at most a hundredth: of L1 of a distribution,
    of the spread of a cluster. Wide bars of a cluster allow no more than that.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from streaming_moments.models.states import states_of
    >>> from streaming_moments.models.topics import TopicModel
    >>> model = TopicModel.from_topics(np.array([[0.5], [0.5]]), np.ones(1))
    >>> other = replace(model, topics=np.array([[0.51], [0.49]]))
    >>> both = other, replace(other, topic_bars=np.ones(1))
    >>> [settled(states_of(model), states_of(one), share=0.5) for one in both]
    [False, True]
    """
    if isinstance(old, Clusters) and isinstance(new, Clusters):
        moved = np.linalg.norm(new.means - old.means, axis=1)
        unit = np.sqrt(new.variances.mean(axis=1) * new.means.shape[1])
        most = unit
    else:
        assert isinstance(old, States)
        assert isinstance(new, States)
        moved = np.abs(new.columns - old.columns).sum(axis=0)
        unit, most = np.ones(new.number), np.inf
    least = min(_MOVED, share * _AS_BARS)
    bound = least * unit if new.bars is None else np.minimum(share * new.bars, least * most)
    return bool(moved.mean() <= bound.mean())
