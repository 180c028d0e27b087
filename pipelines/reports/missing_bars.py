"""Why a model has no error bars, where one of its kind could have some."""

from __future__ import annotations

from typing import Any

_BARS = ("topic_bars", "bars", "node_bars")


def no_bars(model: Any, halves: bool) -> str:
    """A sentence on the error bars that a model lacks; empty where it has some or never has any.

    Parameters
    ----------
    model : Model
        Fitted.
    halves : bool
        Whether the statistics keep halves of the records apart, by which bars are made.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.models.topics import TopicModel
    >>> model = TopicModel.from_topics(np.full((2, 1), 0.5), np.ones(1))
    >>> no_bars(model, halves=True)
    'no error bars: a half of the records alone does not hold this model; count more, or fit fewer'
    """
    known = [getattr(model, name) for name in _BARS if hasattr(model, name)]
    if not model.compares_halves or not known or any(bars is not None for bars in known):
        return ""
    if halves:
        return (
            "no error bars: a half of the records alone does not hold this model; count more, or "
            "fit fewer"
        )
    return "no error bars: the store keeps no halves of the records apart"
