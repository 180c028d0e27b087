"""How pages show topics: their distances, correlations and shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.reports.model_pages.page_specs import Facts, PageRequest
from streaming_moments.pipelines.reports.page import (
    ReportPage,
    SampleDocument,
    ShareOverTime,
    TopicReport,
)
from streaming_moments.pipelines.reports.period_changes import changes_said
from streaming_moments.pipelines.reports.topic_reports import topic_names, topics_of
from streaming_moments.quality.topic_map import topic_distances
from streaming_moments.storage.dates import Period
from streaming_moments.storage.merging.origin_shares import (
    OriginShares,
    only_of,
    shares_by_origin,
)
from streaming_moments.storage.operations.lineages import store_counting, store_for, vocabulary_of
from streaming_moments.storage.operations.shares_over_time import (
    PeriodShares,
    finest_period,
    shares_over_time,
)
from streaming_moments.storage.store.store import MomentStore


def parts_of(
    store: MomentStore, name: str, model: TopicModel, found: Mapping[int, Sequence[SampleDocument]]
) -> tuple[TopicReport, ...]:
    """Return the topics of a model, with documents for those topics for which `found` has some."""
    first = {topic: some[0] for topic, some in found.items() if some}
    topics = topics_of(model, vocabulary_of(store, model), first, store.models[name].labels)
    return tuple(replace(one, further=tuple(found.get(one.topic, ())[1:])) for one in topics)


def with_topics(page: ReportPage, asked: PageRequest) -> ReportPage:
    """Add all data of topics to a page."""
    model: TopicModel = asked.model
    return replace(
        page,
        topics=tuple(asked.parts),
        distances=tuple(tuple(row) for row in topic_distances(model.topics).tolist()),
        correlations=()
        if not model.refined
        else tuple(tuple(row) for row in model.correlations.tolist()),
        periods=periods_of(asked.store, asked.name, model),
        origins=origins_of(asked.store, asked.name, model),
        origin_changes=origin_changes_of(asked),
        chosen=model.moments,
        spectrum=tuple(model.spectrum.tolist()),
        exact_spectrum=tuple(model.exact_spectrum.tolist()),
    )


def facts_of(name: str, model: TopicModel) -> Facts:
    """Describe the number of topics, alpha, the spectrum and the word pairs."""
    facts: Facts = {"model": name, "topics": model.n_topics, "alpha0": model.alpha0}
    if model.alpha_sum != model.alpha0:
        facts["sum of alpha"] = model.alpha_sum
    facts["captured spectrum"] = round(model.captured, 3)
    if model.implied_alpha0 is not None:
        facts["alpha0 that pairs imply"] = round(model.implied_alpha0, 3)
    return facts


def documents_written(
    folder: str, storage_options: Mapping[str, object] | None
) -> tuple[str, dict[int, tuple[SampleDocument, ...]]]:
    """Read the name of the model, and the documents of each topic, from a transform's output."""
    from streaming_moments.storage.top_documents import read_top_documents

    model, found = read_top_documents(folder, storage_options)
    return model, {
        topic: tuple(
            SampleDocument(one.source, one.row + 1, one.share, one.text, one.id)
            for one in some
            if one.text
        )
        for topic, some in enumerate(found.topics)
    }


def sampled(
    store: MomentStore,
    name: str,
    model: TopicModel,
    storage_options: Mapping[str, object] | None,
) -> dict[int, tuple[SampleDocument, ...]]:
    """Find a document about each topic in some of the shards."""
    # imported here because pages without documents need no search
    from streaming_moments.pipelines.reports.samples import sample_documents

    found = sample_documents(store, store_for(store, name, model), model, storage_options)
    return {topic: (one,) for topic, one in found.items()}


def origins_of(store: MomentStore, name: str, model: TopicModel) -> tuple[OriginShares, ...]:
    """Return the shares of topics in each origin's documents; empty for a store without origins."""
    if not store.commit.origins:
        return ()
    return shares_by_origin(store_counting(store, name, model), model)


def origin_changes_of(asked: PageRequest) -> tuple[str, ...]:
    """Describe how the shares of topics have changed at each origin whose documents have days."""
    store, model = asked.store, asked.model
    found: dict[str, tuple[PeriodShares, ...]] = {}
    for one in ("", *store.commit.origins) if store.commit.origins else ():
        counted = only_of(store_counting(store, asked.name, model), one)
        by = finest_period(counted)
        if by is not None:
            found[one] = shares_over_time(counted, model, by)
    return changes_said(found, topic_names(asked.parts, "topic"))


def periods_of(
    store: MomentStore,
    name: str,
    model: TopicModel,
    by: Period | None = None,
    origin: str | None = None,
) -> ShareOverTime:
    """Return the shares of topics in the documents of each period; empty without days.

    The period is by default the finest possible. `origin` is as in `only_of`, or None for all
    documents. Raises InvalidInput if a segment extends over several such periods.
    """
    counted = store_counting(store, name, model)
    counted = counted if origin is None else only_of(counted, origin)
    by = by or finest_period(counted)
    if by is None:
        return ShareOverTime()
    found = shares_over_time(counted, model, by)
    policy = counted.policy
    cut = ""
    if policy is not None and policy.passage_words is not None:
        cut = " Documents are cut into passages, so their lengths are estimated."
    return ShareOverTime(
        tuple(str(one.days.first) for one in found),
        tuple(one.shares for one in found),
        f"Shares of the tokens of each {by}. Whiskers are standard errors, and include the "
        f"scatter between documents.{cut}",
        tuple(one.bars for one in found),
    )
