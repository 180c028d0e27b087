"""Stopping: "auto" ends after a pass when further passes would change the model little."""

from __future__ import annotations

import numpy as np

from streaming_moments.models.states import Clusters, States

AUTO = "auto"
"""Value of the option `passes`: stop when more passes would change the model by little of its error
bars.
"""
MOST_PASSES = 20
"""Most passes of "auto"."""
MOST_OF_CHAINS = 100
# Passes stop when a pass changes the model by less than this share of its error bars. Topics are
# nearest to the planted ones after one or two passes, other models after convergence. Baum-Welch
# makes many passes with small changes.
OF_DOCUMENTS, OF_EM, OF_CHAINS = 0.5, 0.05, 0.01
_MOVED = 0.01  # largest change by a pass if there are no error bars
# models without error bars get a limit as if their bars were this large, unless `_MOVED` is smaller
_AS_BARS = 0.1


def settled(
    old: States | Clusters,
    new: States | Clusters,
    share: float,
    earlier: States | Clusters | None = None,
) -> bool:
    """Whether a pass changed states by at most this share of their error bars on average.

    Given the states of two passes ago, the sum of all later changes counts, if each pass changes
    states by a constant factor less than the one before. Without bars the limit is this share of a
    tenth, at most a hundredth. The unit is L1 for distributions and the spread for clusters. Wide
    bars of clusters do not raise this limit.

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
        # a fit that missed clusters has wide bars, which would stop passes while they still change
        # the model much
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
