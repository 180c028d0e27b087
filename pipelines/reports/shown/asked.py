"""What is asked of a family of models that is to be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.pipelines.reports.page import ReportPage, ShareOverTime, TopicReport
from streaming_moments.pipelines.reports.shown.model_view import ModelView
from streaming_moments.quality.matching import TopicMatching
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.storage.dates import Period
from streaming_moments.storage.store.store import MomentStore

Facts = dict[str, str | int | float]
View = Callable[[MomentStore, Any, int, float, Mapping[int, str]], ModelView]


@dataclass(frozen=True, eq=False)
class Followed:
    """An earlier model, beside which one is shown.

    Parameters
    ----------
    model : Model
        The earlier one.
    matching : TopicMatching
        What became of its parts.
    since : str
        ISO 8601, of it.
    labels : mapping
        Of its parts, by number.
    shares : ShareOverTime
        Of the parts of the later one, as far back as they are followed.
    """

    model: Any
    matching: TopicMatching
    since: str = ""
    labels: Mapping[int, str] | None = None
    shares: ShareOverTime = field(default_factory=ShareOverTime)


@dataclass(frozen=True, eq=False)
class Asked:
    """A model of a store that a page is to show.

    Parameters
    ----------
    store : MomentStore
        At a version.
    name : str
        Of the model there.
    model : Model
        Itself.
    parts : sequence of TopicReport
        Its topics, clusters or factors; none of states.
    followed : Followed, optional
        An earlier model.
    """

    store: MomentStore
    name: str
    model: Any
    parts: Sequence[TopicReport] = ()
    followed: Followed | None = None


def fitted_facts(name: str, model: Any) -> Facts:
    """What it was fitted as, and what it says of records held out."""
    facts: Facts = {"model": name, "fitted as": model.name}
    held_out = getattr(model, "held_out", None)
    if held_out is not None:
        facts["log likelihood held out"] = round(held_out.mean, 4)
    return facts


@dataclass(frozen=True)
class Shown:
    """How models of a family are shown.

    Parameters
    ----------
    what : str
        What its parts are: "topic", "state", "cluster", "factor".
    parts : callable
        The parts of a model of a store, called `name` there, by number what was found for each.
    add : callable
        A page, with all that is shown of a model.
    follows : bool
        Whether its parts are cards of a page, and followed from model to model.
    read : callable, optional
        What a transform wrote of each part into a folder: the name of the model, and that by
        number.
    sample : callable, optional
        What is found for each part in the shards of a store.
    periods : callable, optional
        Shares of the parts in the documents of days, weeks or months, or of the finest.
    view : callable, optional
        The parts as a console and JSON have them; by default states, called `what`.
    facts : callable
        What the page of a night says of a model of a name.
    weight_bars : callable, optional
        Standard errors of the weights of a model of all documents of a store.
    compared : bool
        Whether the page of a night draws the candidates beside it.
    """

    what: str
    parts: Callable[[MomentStore, str, Any, Mapping[int, Any]], tuple[TopicReport, ...]]
    add: Callable[[ReportPage, Asked], ReportPage]
    follows: bool = False
    read: Callable[[str, Mapping[str, object] | None], tuple[str, Mapping[int, Any]]] | None = None
    sample: (
        Callable[[MomentStore, str, Any, Mapping[str, object] | None], Mapping[int, Any]] | None
    ) = None
    periods: Callable[[MomentStore, str, Any, Period | None], ShareOverTime] | None = None
    view: View | None = None
    facts: Callable[[str, Any], Facts] = fitted_facts
    weight_bars: Callable[[Any, LengthHistogram], NDArray[np.float64] | None] | None = None
    compared: bool = False
