"""What is asked of a family of models that is to be shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.pipelines.reports.model_pages.printed_model import ModelView
from streaming_moments.pipelines.reports.page import ReportPage, ShareOverTime, TopicReport
from streaming_moments.quality.matching import TopicMatching
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.storage.dates import Period
from streaming_moments.storage.store.store import MomentStore

Facts = dict[str, str | int | float]
View = Callable[[MomentStore, Any, int, float, Mapping[int, str]], ModelView]


@dataclass(frozen=True, eq=False)
class PreviousModel:
    """An earlier model with which a page compares the shown one.

    matching : how its parts match those of the shown model
    since : time of the earlier model, ISO 8601
    labels : of its parts, by number
    shares : of the parts of the shown model, as far back as they can be followed
    """

    model: Any
    matching: TopicMatching
    since: str = ""
    labels: Mapping[int, str] | None = None
    shares: ShareOverTime = field(default_factory=ShareOverTime)


@dataclass(frozen=True, eq=False)
class PageRequest:
    """A model of a store that a page shows.

    parts : its topics, clusters or factors; empty for states
    followed : an earlier model to compare with
    """

    store: MomentStore
    name: str
    model: Any
    parts: Sequence[TopicReport] = ()
    followed: PreviousModel | None = None


def fitted_facts(name: str, model: Any) -> Facts:
    """What it was fitted as, and what it says of records held out."""
    facts: Facts = {"model": name, "fitted as": model.name}
    held_out = getattr(model, "held_out", None)
    if held_out is not None:
        facts["log likelihood held out"] = round(held_out.mean, 4)
    return facts


@dataclass(frozen=True)
class PageSpec:
    """How models of a family are shown.

    what : name of a part: "topic", "state", "cluster", "factor"
    parts : the parts of a model of a store by its name, with what was found for each, by number
    add : adds to a page all that is shown of a model
    follows : whether parts are cards of a page and are followed from model to model
    read : reads what a transform wrote of each part to a folder: the name of the model, and that by
        number
    sample : finds examples of each part in the shards of a store
    periods : shares of the parts in days, weeks or months, or in the finest period
    view : makes the parts as a console and JSON have them; by default states, called `what`
    facts : says what the page of a night says of a model of a name
    weight_bars : standard errors of the weights of a model of all documents of a store
    compared : whether the page of a night draws the candidates beside the model
    """

    what: str
    parts: Callable[[MomentStore, str, Any, Mapping[int, Any]], tuple[TopicReport, ...]]
    add: Callable[[ReportPage, PageRequest], ReportPage]
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
