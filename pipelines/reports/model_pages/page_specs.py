"""Functions by which pages and reports show the models of a family."""

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
    labels : labels of its parts, by number
    shares : shares of the parts of the shown model, as far back as they can be followed
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
    """Describe the fit of a model and its held-out score."""
    facts: Facts = {"model": name, "fitted as": model.name}
    held_out = getattr(model, "held_out", None)
    if held_out is not None:
        facts["held-out log-likelihood"] = round(held_out.mean, 4)
    return facts


@dataclass(frozen=True)
class PageSpec:
    """Functions that show the models of a family.

    what : name of a part: "topic", "state", "cluster", "factor"
    parts : returns the parts of a model of a store by its name, with examples of each, by number
    add : adds a model to a page
    follows : whether parts are cards of a page and are followed from model to model
    read : reads the examples of each part that a transform wrote to a folder, with the name of the
        model
    sample : finds examples of each part in the shards of a store
    periods : returns shares of the parts by day, week, month, or in the finest period, of all
        documents or of an origin
    view : makes the parts for console and JSON; by default states with the name `what`
    facts : describes a model by name on the page of a night
    weight_bars : returns standard errors of the weights of a model of all documents of a store
    compared : whether the page of a night draws the candidates, too
    """

    what: str
    parts: Callable[[MomentStore, str, Any, Mapping[int, Any]], tuple[TopicReport, ...]]
    add: Callable[[ReportPage, PageRequest], ReportPage]
    follows: bool = False
    read: Callable[[str, Mapping[str, object] | None], tuple[str, Mapping[int, Any]]] | None = None
    sample: (
        Callable[[MomentStore, str, Any, Mapping[str, object] | None], Mapping[int, Any]] | None
    ) = None
    periods: Callable[[MomentStore, str, Any, Period | None, str | None], ShareOverTime] | None = (
        None
    )
    view: View | None = None
    facts: Callable[[str, Any], Facts] = fitted_facts
    weight_bars: Callable[[Any, LengthHistogram], NDArray[np.float64] | None] | None = None
    compared: bool = False
