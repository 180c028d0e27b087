"""Stopping: after which pass "auto" ends, as another would change the model by little."""

from __future__ import annotations

import numpy as np

from streaming_moments.models.states import Clusters, States

AUTO = "auto"
"""Number of passes for "auto": until more would change the model by little of its error bars."""
MOST_PASSES = 20
"""Of "auto"."""
MOST_OF_CHAINS = 100
# Shares of the error bars: topics are nearest to the planted ones after one or two passes, others
# come nearer until they settle, and Baum-Welch changes little with each of many passes.
OF_DOCUMENTS, OF_EM, OF_CHAINS = 0.5, 0.05, 0.01
_MOVED = 0.01  # that a pass may change at most where there are no error bars
_AS_BARS = 0.1  # as which error bars are taken where there are none, if this gives less


def settled(
    old: States | Clusters,
    new: States | Clusters,
    share: float,
    earlier: States | Clusters | None = None,
) -> bool:
    """Whether a pass changed states by at most this share of their error bars on average.

    With the states of two passes ago, all later passes count as well: each changes the states by
    the same factor less than the one before it, and many small changes add up.

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
    >>> slow = [replace(both[1], topics=np.array([[at], [1 - at]])) for at in (0.53, 0.52, 0.511)]
    >>> settled(*map(states_of, slow[1:]), share=0.1, earlier=states_of(slow[0]))
    False
    """
    if isinstance(new, Clusters):
        unit = np.sqrt(new.variances.mean(axis=1) * new.means.shape[1])
    else:
        unit = np.ones(new.number)
    unknown = min(_MOVED, share * _AS_BARS) * unit
    limit = unknown if new.bars is None else share * new.bars
    if isinstance(new, Clusters):
        # bars of a fit that missed clusters are wide, and passes go far
        limit = np.minimum(limit, unknown)
    bound = float(limit.mean())
    left = _moved(old, new)
    before = 0.0 if earlier is None else _moved(earlier, old)
    if before:
        rate = left / before
        if rate >= 1:
            return left == 0
        left = max(left, left * rate / (1 - rate))
    return left <= bound


def _moved(old: States | Clusters, new: States | Clusters) -> float:
    """Mean distance of states, L1 of distributions and Euclidean of means."""
    if isinstance(old, Clusters) and isinstance(new, Clusters):
        return float(np.linalg.norm(new.means - old.means, axis=1).mean())
    assert isinstance(old, States)
    assert isinstance(new, States)
    return float(np.abs(new.columns - old.columns).sum(axis=0).mean())
