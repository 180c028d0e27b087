"""Stopping: after which pass "auto" ends, as another would change the model by little."""

from __future__ import annotations

from typing import Any

import numpy as np

from streaming_moments.models.states import Clusters, States, states_of

AUTO = "auto"
"""Number of passes for "auto": until one changes the model by less than its error bars allow."""
MOST_PASSES = 20
"""Of "auto"."""
# Shares of the error bars: topics are nearest to the planted ones after one or two passes, those of
# other families come nearer until they settle.
OF_DOCUMENTS, OF_EM = 0.5, 0.05
_MOVED = 0.01  # that a pass may change at most where there are no error bars


def settled(before: Any, after: Any, share: float) -> bool:
    """Whether a pass changed a model by at most this share of its error bars on average.

    Without bars the limit is a hundredth: of L1 of a distribution, of the spread of a cluster.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from streaming_moments.models.topics import TopicModel
    >>> model = TopicModel.from_topics(np.array([[0.5], [0.5]]), np.ones(1))
    >>> other = replace(model, topics=np.array([[0.51], [0.49]]))
    >>> settled(model, other, 0.5), settled(model, replace(other, topic_bars=np.ones(1)), 0.5)
    (False, True)
    """
    old, new = states_of(before), states_of(after)
    if isinstance(old, Clusters) and isinstance(new, Clusters):
        moved = np.linalg.norm(new.means - old.means, axis=1)
        unit = np.sqrt(new.variances.mean(axis=1) * new.means.shape[1])
    else:
        assert isinstance(old, States)
        assert isinstance(new, States)
        moved = np.abs(new.columns - old.columns).sum(axis=0)
        unit = np.ones(new.number)
    bound = _MOVED * unit if new.bars is None else share * new.bars
    return bool(moved.mean() <= bound.mean())
