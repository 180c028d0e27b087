"""Stopping: decide after a pass whether "auto" stops, because the model would change little."""

from __future__ import annotations

import numpy as np

from streaming_moments.models.states import Clusters, States

AUTO = "auto"
"""Value of the option `passes`: stop when more passes would change the model by only a small share
of its error bars.
"""
MOST_PASSES = 20
"""Largest number of passes of "auto"."""
MOST_OF_CHAINS = 100
# "auto" stops if the model changes by at most this share of its error bars. The share is large for
# topics of documents, because topics are nearest to planted topics after one or two passes. Other
# models are nearest to planted ones after convergence. The share is smallest for chains, because
# Baum-Welch makes many passes with small changes.
OF_DOCUMENTS, OF_EM, OF_CHAINS = 0.5, 0.05, 0.01
_MOVED = 0.01  # if a model has no error bars, "auto" stops only if the change is at most this
# A model without error bars is treated as if each bar had this length, but the limit that follows
# for its change is at most `_MOVED`.
_AS_BARS = 0.1


def settled(
    old: States | Clusters,
    new: States | Clusters,
    share: float,
    earlier: States | Clusters | None = None,
) -> bool:
    """Whether a pass changed states by at most `share` of their error bars, on average.

    `earlier` are the states before the previous pass. If they are given, what counts is the
    expected sum of the changes by all later passes. It assumes that each change is smaller than the
    one before by the same factor.

    If the states have no error bars, bars of 0.1 are assumed, but the limit is at most 0.01. For
    distributions, these numbers are L1 distances; for clusters, they are multiples of the spread of
    the cluster. For clusters, this limit also holds if there are wide error bars.

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
        # A fit that missed clusters has wide error bars. If these raised the limit, passes would
        # stop while they still change the model much.
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
    """Return the mean distance between old and new states.

    The distance is L1 for distributions, and Euclidean for the means of clusters.
    """
    if isinstance(old, Clusters) and isinstance(new, Clusters):
        return float(np.linalg.norm(new.means - old.means, axis=1).mean())
    assert isinstance(old, States)
    assert isinstance(new, States)
    return float(np.abs(new.columns - old.columns).sum(axis=0).mean())
