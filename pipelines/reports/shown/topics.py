"""Topics, as pages show them: how far apart, how often together, how much of each period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.reports.page import (
    ReportPage,
    SampleDocument,
    ShareOverTime,
    TopicReport,
)
from streaming_moments.pipelines.reports.shown.asked import Asked
from streaming_moments.pipelines.reports.topic_reports import topics_of
from streaming_moments.quality.topic_map import topic_distances
from streaming_moments.storage.operations.lineages import store_counting, store_for, vocabulary_of
from streaming_moments.storage.operations.shares_over_time import finest_period, shares_over_time
from streaming_moments.storage.store.store import MomentStore


def parts_of(
    store: MomentStore, name: str, model: TopicModel, found: Mapping[int, SampleDocument]
) -> tuple[TopicReport, ...]:
    """The topics, with a document of those that have one."""
    return topics_of(model, vocabulary_of(store, model), found, store.models[name].labels)


def with_topics(page: ReportPage, asked: Asked) -> ReportPage:
    """A page with all that is known of topics.

    Raises
    ------
    StoreError
        The counts by day cannot be read.
    """
    model: TopicModel = asked.model
    return replace(
        page,
        topics=tuple(asked.parts),
        distances=tuple(tuple(row) for row in topic_distances(model.topics).tolist()),
        correlations=()
        if not model.refined
        else tuple(tuple(row) for row in model.correlations.tolist()),
        periods=_periods(asked.store, asked.name, model),
        chosen=(model.n_topics, model.alpha0),
        spectrum=tuple(model.spectrum.tolist()),
        exact_spectrum=tuple(model.exact_spectrum.tolist()),
    )


def documents_written(
    folder: str, storage_options: Mapping[str, object] | None
) -> tuple[str, dict[int, SampleDocument]]:
    """The model, and the first of the documents of each topic that a transform wrote."""
    from streaming_moments.storage.top_documents import read_top_documents

    model, found = read_top_documents(folder, storage_options)
    return model, {
        topic: SampleDocument(first.source, first.row + 1, first.share, first.text)
        for topic, (first, *_) in ((j, some) for j, some in enumerate(found.topics) if some)
        if first.text
    }


def sampled(
    store: MomentStore,
    name: str,
    model: TopicModel,
    storage_options: Mapping[str, object] | None,
) -> dict[int, SampleDocument]:
    """A document of each topic, from some of the shards."""
    # looked for by nobody who shows none
    from streaming_moments.pipelines.reports.samples import sample_documents

    return sample_documents(store, store_for(store, name, model), model, storage_options)


def _periods(store: MomentStore, name: str, model: TopicModel) -> ShareOverTime:
    """Shares in the documents of each period, where the days of all are known."""
    counted = store_counting(store, name, model)
    by = finest_period(counted)
    if by is None:
        return ShareOverTime()
    found = shares_over_time(counted, model, by)
    return ShareOverTime(
        tuple(str(one.days.first) for one in found),
        tuple(one.shares for one in found),
        f"{by.capitalize()} by {by}, of the tokens, from the stored counts alone; bars are "
        "their standard errors.",
        tuple(one.bars for one in found),
    )
