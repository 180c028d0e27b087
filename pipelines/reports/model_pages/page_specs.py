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

    matching : how the parts of the earlier model match those of the shown model
    since : time of the earlier model, ISO 8601
    labels : labels of the parts of the earlier model, by number
    shares : shares of the parts of the shown model in earlier models, as far back as they can be
        followed
    """

    model: Any
    matching: TopicMatching
    since: str = ""
    labels: Mapping[int, str] | None = None
    shares: ShareOverTime = field(default_factory=ShareOverTime)


@dataclass(frozen=True, eq=False)
class PageRequest:
    """A model of a store that a page shows.

    parts : topics, clusters or factors of the model; empty for states
    followed : earlier model with which the page compares the model
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

    what : noun for a part: "topic", "state", "cluster", "factor"
    parts : `parts(store, name, model, found)` returns the parts of a model; `found` has examples
        of each part, by number
    add : adds a model to a page
    follows : whether a page has a card for each part and follows parts from model to model
    read : reads what a transform wrote to a folder: the name of the model, and examples of each
        part
    sample : finds examples of each part in the shards of a store
    periods : returns the shares of the parts in each day, week or month, by default in the finest
        possible period; for all documents, or for the documents of an origin
    view : makes the view of the parts for console and JSON; by default, a view of states that are
        called `what`
    facts : describes a model, given its name, for the page of a nightly run
    weight_bars : returns standard errors of the weights, for a model that was fitted to all
        documents of a store
    compared : whether the page of a nightly run also draws the candidates
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
