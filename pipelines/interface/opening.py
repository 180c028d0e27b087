"""Create a store, or open an existing one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from distributed import Client

from streaming_moments.arguments import require_fitting
from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.interface.inputs import given_as, name_of_sampled
from streaming_moments.pipelines.interface.reading import columns_counted
from streaming_moments.pipelines.interface.records import Fields
from streaming_moments.pipelines.interface.remedies import store_door
from streaming_moments.pipelines.interface.running import PACKAGE, running
from streaming_moments.pipelines.interface.store import Store
from streaming_moments.pipelines.jobs.kinds.create_kinds import (
    changed_options,
    create_kind,
    require_options_of,
)
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.sites.like import created_like
from streaming_moments.pipelines.reports.outside_words import language_line
from streaming_moments.progress import reporter
from streaming_moments.storage.counting.tokenisers.function import name_of
from streaming_moments.storage.store.store import MomentStore


@store_door
def create_store(
    url: str | os.PathLike[str],
    documents: Any = None,
    *,
    like: str | Store | None = None,
    source: str | None = None,
    client: Client | None = None,
    max_topics: int | None = None,
    tokeniser: str | Callable[[str], Any] | None = None,
    shape: KindOptions = KindOptions(),
    counting: CountingOptions = CountingOptions(),
    pilot: PilotOptions = PilotOptions(),
    storage_options: Mapping[str, Any] | None = None,
    memory: int | None = None,
    verbose: int | bool = 0,
) -> Store:
    """Create an empty store with a vocabulary from the documents, which are not counted.

    Parameters
    ----------
    url : str or path
        fsspec URL or local path that does not exist yet.
    documents, source
        As in `Store`. Only the first 128 MiB of an iterable are sampled. An iterable that can be
        read only once is refused. Give no documents with `like`.
    like : str or Store, optional
        A store, its URL, or a file that `Store.foundation` wrote. The new store counts the same
        words by the same rules, so that the counts of both stores can be added up. Leave out all
        other arguments that define a store, except the format and columns of `counting`.
    client, memory, verbose
        As in `Store.update`.
    max_topics : int, optional
        Largest number of topics that the store separates well; by default 32, or as many as there
        are core words.
    tokeniser : str or callable, optional
        Tokeniser to use instead of that of `counting`: a name as for `create --tokeniser`, or a
        function from str to a list of str. Workers import the function by its name. Its attribute
        `version` marks it as a tokeniser, and is part of the store.
    shape : KindOptions
        Kind of data, documents by default, with the columns of views or symbols:
        `KindOptions("views", "title:text,author,year")`, `KindOptions("sequences", "steps")`.
    counting : CountingOptions
        Options that define a document and its counts; the store records them. By default the stop
        words of the languages that a sample shows are not counted; `languages=("none",)` counts
        them.
    pilot : PilotOptions
        Options for choosing words; its `max_topics` is not used.
    storage_options : mapping, optional
        Options of fsspec.

    Raises
    ------
    InvalidInput
        The documents have another type, or are too few for a vocabulary; the tokeniser cannot be
        imported; or an argument would differ from `like`.
    ShardError, StoreError, BoundExceeded
        As in `pipelines.create`.

    Examples
    --------
    >>> texts = ["the sea and a ship in the port"] * 30 + ["a law of the tax on trade"] * 30
    >>> few = PilotOptions(min_documents=2)
    >>> store = create_store("memory://shipping", texts, source="texts", max_topics=2, pilot=few)
    >>> store = store.update(texts, source="texts")
    >>> store.documents, store.update(texts, source="texts").version == store.version
    (60, True)
    >>> store.languages
    ('english',)
    >>> create_store("memory://shipping-in-genoa", like=store).documents
    0
    """
    url = os.fspath(url)
    known: dict[str, object] = {"max_topics": max_topics, "counting": counting, "pilot": pilot}
    known |= {"source": source, "shape": shape}
    require_fitting(create_store, url=url, storage_options=storage_options, like=like, **known)
    if tokeniser is not None:
        named = tokeniser if isinstance(tokeniser, str) else name_of(tokeniser)
        counting = replace(counting, tokeniser=named)
    if like is not None:
        if max_topics is not None:
            pilot = replace(pilot, max_topics=max_topics)
        changed = changed_options(shape) | changed_options(counting) | changed_options(pilot)
        place, read = like.url if isinstance(like, Store) else like, documents is not None
        found = created_like(url, place, changed, counting, storage_options, read)
        return Store(found, storage_options)
    if documents is None:
        raise InvalidInput(
            "there are no documents to sample; give some, or use the foundation of another store "
            "by like=URL"
        )
    options = replace(pilot, max_topics=max_topics)
    require_options_of(shape, counting, options)
    if isinstance(documents, Iterator):
        raise InvalidInput(
            f"the documents are of type {type(documents).__name__}, which can be read only "
            "once, but update reads them again; give a list, or a function that returns them"
        )
    columns = columns_counted(shape, counting.form)
    fields = Fields(counting.text_column, counting.dates.column, columns=columns)
    report = reporter("create_store", verbose, PACKAGE)
    with running(client, memory, storage_options, report) as run:
        given = next(
            given_as(documents, source or name_of_sampled(documents), fields, run, counting.format),
            None,
        )
        if given is None:
            raise InvalidInput("there are no documents to sample; give some")
        made = create_kind(url, given.shards, shape, counting, options, given.on(run))
        if line := language_line(made):
            run.tell(line)
    return Store(made, storage_options)


@store_door
def open_store(
    url: str | os.PathLike[str],
    version: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Store:
    """Open a store at a version, by default the latest; -2 is the version before the latest.

    Errors as in `MomentStore.open`.

    Examples
    --------
    >>> open_store("memory://no-store-here")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.StoreError: ...
    """
    url = os.fspath(url)
    require_fitting(open_store, url=url, version=version, storage_options=storage_options)
    return Store(MomentStore.open(url, version, storage_options), storage_options)
