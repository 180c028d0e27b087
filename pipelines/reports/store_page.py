"""The page of a store and one of its models, and what of a model any page shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.page import (
    LedgerRow,
    ReportPage,
    SampleDocument,
    ShareOverTime,
    TopicReport,
)
from streaming_moments.pipelines.reports.states import shown_words, state_lines
from streaming_moments.pipelines.reports.status import stale_line
from streaming_moments.pipelines.reports.topic_reports import topics_of
from streaming_moments.quality.topic_map import topic_distances
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.operations.lineages import store_counting, store_for, vocabulary_of
from streaming_moments.storage.operations.shares_over_time import finest_period, shares_over_time
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

_LEDGER_ROWS = 200
_STATE_WORDS = 10


def write_page(
    store: MomentStore,
    output: str,
    name: str | None = None,
    documents: bool = True,
    top_documents: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> ReportPage:
    """Write the page of a model of a store, whole or not at all, in place of what is there.

    Parameters
    ----------
    store : MomentStore
        At a version.
    output : str
        Path or fsspec URL of a file.
    name : str, optional
        Of the model, or a tag; by default the latest.
    documents : bool
        Whether to show a document of each topic.
    top_documents : str, optional
        URL of a folder where `transform` wrote the documents of topics, of which the first are
        shown; by default some of the shards are looked at, see `sample_documents`.
    storage_options : mapping, optional
        Of fsspec, for the shards and the file.

    Raises
    ------
    StoreError
        There is no such model, or the file cannot be written, or that of documents not be read.
    InvalidInput
        The documents are of another model.
    """
    place, _, file = output.rpartition("/")
    folder = Folder.at(place if place or "/" not in output else "/", storage_options)
    page = store_page(store, name, documents, top_documents, storage_options)
    folder.write(file, html_report(page).encode())
    return page


def store_page(
    store: MomentStore,
    name: str | None = None,
    documents: bool = True,
    top_documents: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> ReportPage:
    """The page of a model of a store; arguments and errors as `write_page`."""
    called, model = model_called(store.commit, name), store.load_any_model(name)
    commit = store.commit
    facts: dict[str, str | int | float] = {"version": store.version, "documents": commit.documents}
    facts |= {"tokens": commit.tokens, "shards": commit.shards, "model": called}
    facts["fitted as"] = model.name
    days = [part.dates for part in commit.segments if part.dates is not None]
    if days:
        facts["days"] = f"{min(one.first for one in days)} to {max(one.last for one in days)}"
    topics: tuple[TopicReport, ...] = ()
    if isinstance(model, TopicModel):
        samples: Mapping[int, SampleDocument] = {}
        if top_documents is not None:
            samples = _written(top_documents, called, storage_options)
        elif documents:
            # looked for by nobody who shows none
            from streaming_moments.pipelines.reports.samples import sample_documents

            fitted = store_for(store, called, model)
            samples = sample_documents(store, fitted, model, storage_options)
        labels = commit.models[called].labels
        topics = topics_of(model, vocabulary_of(store, model), samples, labels)
    page = ReportPage(
        title=f"{'Topics' if topics else 'States'} of {PurePosixPath(store.url).name}",
        store=store.url,
        time=commit.time,
        outcome="published" if called in commit.tags.values() else "kept",
        facts=facts,
        ledger=tuple(ledger_rows(store)),
        shards=commit.shards,
        version=store.version,
    )
    return with_model(page, store, called, model, topics)


def with_model(
    page: ReportPage, store: MomentStore, name: str, model: Model, topics: Sequence[TopicReport]
) -> ReportPage:
    """A page that shows a model as well, and of one with topics all that is known of them.

    Raises
    ------
    StoreError
        The counts by day cannot be read.
    """
    said, stale = model.described(), staleness(store, name)
    reasons = (*page.reasons, stale_line(stale)) if stale.is_stale else page.reasons
    page = replace(page, sentence=said.sentence, reasons=reasons)
    if not isinstance(model, TopicModel):
        columns = {column: tuple(values.tolist()) for column, values in said.columns.items()}
        words: dict[str, tuple[str, ...]] = {}
        labels = store.commit.models[name].labels
        if lines := state_lines(model, store, _STATE_WORDS, labels):
            if labels:
                words["label"] = tuple(one.label or "" for one in lines)
            views = lines[0].words
            words |= {view: tuple(shown_words(one, view) for one in lines) for view in views}
        return replace(page, states=columns, state_words=words, picture=said.picture)
    return replace(
        page,
        topics=tuple(topics),
        distances=tuple(tuple(row) for row in topic_distances(model.topics).tolist()),
        correlations=()
        if not model.refined
        else tuple(tuple(row) for row in model.correlations.tolist()),
        periods=_periods(store, name, model),
        chosen=(model.n_topics, model.alpha0),
        spectrum=tuple(model.spectrum.tolist()),
        exact_spectrum=tuple(model.exact_spectrum.tolist()),
    )


def _written(
    folder: str, called: str, storage_options: Mapping[str, object] | None
) -> dict[int, SampleDocument]:
    """The first of the documents of each topic that a transform wrote, by topic."""
    from streaming_moments.storage.top_documents import read_top_documents

    model, found = read_top_documents(folder, storage_options)
    if model != called:
        raise InvalidInput(
            f"{folder} has documents of model {model!r}, the page is of {called!r}; give --model "
            f"{model}, or transform with the other"
        )
    return {
        topic: SampleDocument(first.source, first.row + 1, first.share, first.text)
        for topic, (first, *_) in ((j, some) for j, some in enumerate(found.topics) if some)
        if first.text
    }


def ledger_rows(store: MomentStore) -> Iterator[LedgerRow]:
    """The latest 200 shards of a version."""
    for record in list(store.ledger())[: -_LEDGER_ROWS - 1 : -1]:
        yield LedgerRow(record.url, record.documents, record.tokens, record.outside)


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
