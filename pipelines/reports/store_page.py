"""The page of a store and one of its models, and the parts of a model that any page shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.models.states import Clusters, states_of
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.kinds.registry import (
    KIND_REPORTS,
    advice_on,
    counted_facts,
)
from streaming_moments.pipelines.reports.model_pages.following import followed_in
from streaming_moments.pipelines.reports.model_pages.page_specs import PageRequest, PageSpec
from streaming_moments.pipelines.reports.model_pages.registry import reported, shown_of
from streaming_moments.pipelines.reports.page import LedgerRow, ReportPage
from streaming_moments.pipelines.reports.states import no_bars
from streaming_moments.pipelines.reports.status import stale_line
from streaming_moments.pipelines.reports.still_counted import still_counted
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore


def write_page(
    store: MomentStore,
    output: str,
    name: str | None = None,
    documents: bool = True,
    top_documents: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> ReportPage:
    """Write the page of a model of a store, whole or not at all; replaces an existing file.

    Raises StoreError if there is no such model, the page cannot be written, or the documents cannot
    be read. Raises InvalidInput if `top_documents` is of another model, or of a model for which a
    transform finds no documents.

    store : store at a version
    output : path or fsspec URL of a file
    name : name or tag of the model; by default the latest
    documents : whether to show a document about each topic
    top_documents : URL of a folder to which `transform` wrote documents of topics, or rows nearest
        to means; the page shows the first of them. By default, documents come from some of the
        shards; see `sample_documents`.
    storage_options : options of fsspec for the shards and the file
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
    """Return the page of a model of a store; arguments and errors as in `write_page`."""
    called, model = model_called(store.commit, name), store.load_any_model(name)
    shown, commit = shown_of(model), store.commit
    told = KIND_REPORTS[store.kind].told(store)
    facts = counted_facts(told) | {
        "model": called,
        "fitted as": model.name,
    }
    source = commit.models[called].source
    if source is not None:
        facts["fitted by"] = f"{source.url}, as {source.name}"
    days = [part.dates for part in commit.segments if part.dates is not None]
    if days:
        facts["days"] = f"{min(one.first for one in days)} to {max(one.last for one in days)}"
    found = found_of(store, called, model, documents, top_documents, storage_options)
    # check only documents from the folder `top_documents`; others come from counted shards
    if top_documents is not None:
        found, _ = still_counted(store, called, found, storage_options)
    page = ReportPage(
        title=f"{shown.what.capitalize()}s of {PurePosixPath(store.url).name}",
        store=store.url,
        time=commit.time,
        outcome="published" if called in commit.tags.values() else "kept",
        facts=facts,
        advice=advice_on(store, told.get("outside_share")),
        ledger=tuple(ledger_rows(store)),
        shards=commit.shards,
        version=store.version,
    )
    parts = reported(store, called, model, found)
    clusters = isinstance(states_of(model), Clusters)
    followed = followed_in(store, called, model, shown.what) if clusters else None
    return with_model(page, PageRequest(store, called, model, parts, followed))


def found_of(
    store: MomentStore,
    name: str,
    model: Model,
    documents: bool = True,
    top_documents: str | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Mapping[int, Any]:
    """Return documents of topics, or rows of clusters, by number; arguments as in `write_page`."""
    shown = shown_of(model)
    if top_documents is not None:
        return _written(shown, top_documents, name, model, storage_options)
    if documents and shown.sample is not None:
        return shown.sample(store, name, model, storage_options)
    return {}


def with_model(page: ReportPage, asked: PageRequest) -> ReportPage:
    """Add a model to a page with the functions that show its family.

    Raises StoreError if a file of the store cannot be read.
    """
    model, store = asked.model, asked.store
    said, stale, shown = model.described(), staleness(store, asked.name), shown_of(model)
    reasons = (*page.reasons, stale_line(stale)) if stale.is_stale else page.reasons
    counted = KIND_REPORTS[store.kind].ledger
    sentence = "; ".join(filter(None, (said.sentence, no_bars(model, store.halves))))
    page = replace(page, sentence=sentence, reasons=reasons, what=shown.what, counted=counted)
    return shown.add(page, asked)


def _written(
    shown: PageSpec,
    folder: str,
    called: str,
    model: Model,
    storage_options: Mapping[str, object] | None,
) -> Mapping[int, Any]:
    """Read the examples that a transform wrote for each part of a model."""
    if shown.read is None:
        raise InvalidInput(
            f"model {called!r} is of type {model.name}, and a transform finds no documents or "
            f"rows for a {shown.what} of it; leave out the folder of documents"
        )
    of, found = shown.read(folder, storage_options)
    if of != called:
        raise InvalidInput(
            f"{folder} has documents of model {of!r}, but the page shows {called!r}; give "
            f"--model {of}, or transform with the model that the page shows"
        )
    return found


def ledger_rows(store: MomentStore, most: int = 200) -> Iterator[LedgerRow]:
    """Yield the rows of the last `most` shards in the ledger of a version, by URL."""
    for record in sorted(list(store.ledger())[-most:], key=lambda one: one.url):
        yield LedgerRow(record.url, record.documents, record.tokens, record.outside)
