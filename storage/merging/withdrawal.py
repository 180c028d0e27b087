"""Withdrawal: removes the documents of an origin from every version, model and file of a store.

An origin is another store whose segments were copied into this store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from streaming_moments.errors import InvalidInput, StreamingMomentsError, Unfinished
from streaming_moments.storage.files.created import CreationUnknown
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.log.origins import names_of
from streaming_moments.storage.operations.purges.purging import (
    Holdings,
    Purge,
    planned_purge,
    with_models,
)
from streaming_moments.storage.operations.purges.traces import Trace, erase_unnamed, traces_beside
from streaming_moments.storage.store.garbage import find_garbage, sweep, unswept
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class Withdrawal:
    """Result or plan of `withdraw`, which purges all documents of an origin.

    Parameters
    ----------
    store : MomentStore
        The store at its latest version.
    name : str
        Name of the origin.
    documents : int
        Number of documents that the latest version had from the origin.
    purge : Purge
        Versions, models and tags that are dropped. No single shards are listed in it.
    erased : tuple of str
        Deleted files in the folder of the store that do not belong to the store. They named shards
        of the origin, or described a dropped version.
    """

    store: MomentStore
    name: str
    documents: int
    purge: Purge
    erased: tuple[str, ...] = ()


def plan_withdrawal(store: MomentStore, name: str) -> Withdrawal:
    """Return what `withdraw` would drop now; raise the same errors as `withdraw`."""
    store = store.latest()
    return _planned(store, store.log(), name)


def withdraw(store: MomentStore, name: str, message: str = "") -> Withdrawal:
    """Remove the documents of an origin permanently from every version, model and file of a store.

    One commit drops all versions that count documents of the origin, even if the origin had another
    name there, and all models that may have been fitted to these versions. Then the files of these
    versions and models are deleted. Later pulls of the origin's store are refused, unless they
    allow forgotten documents to be counted again. If an earlier purge of the origin did not delete
    all files, this call deletes the rest.

    Parameters
    ----------
    store : MomentStore
        Store whose latest version the new commit follows.
    name : str
        Name of the origin in any version.
    message : str
        Message for the log.

    Raises
    ------
    InvalidInput
        No version has an origin of this name, or another origin includes its documents, too.
    Unfinished
        The origin is purged, but not all files could be deleted. The same call deletes the rest.
    StoreError
        The store cannot be read or written. Nothing is purged.

    Examples
    --------
    >>> from streaming_moments.storage.merging.pulling import pull
    >>> from streaming_moments.testing.small_store import append, create
    >>> hub = pull(append(create(), {"a": 1}), append(create(), {"b": 2}), "rome").store
    >>> found = withdraw(hub, "rome")
    >>> found.documents, found.purge.versions, found.store.commit.documents
    (6, (2,), 6)
    >>> traces_of_origin(found.store, "rome")
    ()
    """
    store = store.latest()
    found = _planned(store, store.log(), name)
    if found.purge.versions:
        try:
            store, found = _committed(store, name, message)
        except CreationUnknown as error:
            raise Unfinished(f"{error}; then run the same purge again") from error
    try:
        sweep(store.folder)
        erased = erase_unnamed(store.folder, {names_of(name)})
    except StreamingMomentsError as error:
        raise Unfinished(
            f"no version of {store.url} has origin {name} any more, but not all of its files "
            f"could be deleted ({error}); run the same purge again"
        ) from error
    return Withdrawal(store.latest(), name, found.documents, found.purge, erased)


def traces_of_origin(store: MomentStore, name: str) -> tuple[Trace, ...]:
    """Find all files and models of a store that may contain documents of an origin.

    A file that no version names is included, because its documents are unknown.
    """
    folder = store.folder
    log = CommitLog(folder).history(CommitLog(folder).latest().version)
    return tuple(_traces(store, log, name))


def _traces(store: MomentStore, log: Sequence[Commit], name: str) -> Iterator[Trace]:
    folder = store.folder
    versions, models = with_models(log, _holding(log, _stores(log, name)))
    for version in sorted(versions):
        yield Trace(commit_file(version), f"is of a version that has documents of {name}")
    for place in sorted(models):
        yield Trace(place, "is a model that was fitted to them, or to unknown documents")
    for path in unswept(folder, log[0]):
        yield Trace(path, "is the file of an expired version, and is not emptied yet")
    for heap in find_garbage(folder, timedelta(0)):
        yield Trace(heap.path, "belongs to no version, and its documents are unknown")
    yield from traces_beside(folder, folder.files(""), log[0], {names_of(name)})


def _committed(store: MomentStore, name: str, message: str) -> tuple[MomentStore, Withdrawal]:
    text = message or f"purge: all documents of origin {name}"
    done: list[Withdrawal] = []

    def change(head: Commit) -> Commit:
        log = CommitLog(store.folder).history(head.version)
        found = _planned(store, log, name)
        done.append(found)
        gone = _stores(log, name)
        left = {key: one for key, one in head.origins.items() if one.id not in gone}
        return head.successor(
            "purge",
            text,
            segments=tuple(part for part in head.segments if _giver(part.origin) in {"", *left}),
            origins=left,
            models={key: one for key, one in head.models.items() if key not in found.purge.models},
            tags={key: one for key, one in head.tags.items() if key not in found.purge.tags},
            expired=head.without(found.purge.versions),
            forgotten=head.forgotten.with_withdrawn({name, *gone}),
        )

    return store.extended(change), done[-1]


def _planned(store: MomentStore, log: Sequence[Commit], name: str) -> Withdrawal:
    head = log[0]
    _require_known(store, log, name)
    gone = _stores(log, name)
    for other, one in head.origins.items():
        if one.id not in gone and not gone.isdisjoint(one.within):
            raise InvalidInput(
                f"the documents of {name} are also in origin {other} of {store.url}",
                f"purge them at {one.url}, then run {{merge}} again, which purges them here, too",
            )
    versions, models = with_models(log, _holding(log, gone))
    held = Holdings(frozenset(), {}, tuple(sorted(versions)), tuple(sorted(models)), ())
    names = {key for key, one in head.origins.items() if one.id in gone}
    documents = sum(
        part.sign * part.documents for part in head.segments if _giver(part.origin) in names
    )
    return Withdrawal(store, name, documents, planned_purge(head, held))


def _stores(log: Sequence[Commit], name: str) -> set[str]:
    """Return the identifiers of the stores that were an origin called `name` in any version.

    A store that is an origin under another name in the latest version is left out.
    """
    others = {one.id for key, one in log[0].origins.items() if key != name}
    return {commit.origins[name].id for commit in log if name in commit.origins} - others


def _holding(log: Sequence[Commit], stores: set[str]) -> set[int]:
    """Return the versions with documents of `stores`, pulled directly or through other stores."""
    return {
        commit.version
        for commit in log
        if any(not stores.isdisjoint({one.id, *one.within}) for one in commit.origins.values())
    }


def _giver(origin: str | None) -> str:
    """Return the name of the origin from which a segment was copied; empty if it was not copied."""
    return (origin or "").partition("/")[0]


def _require_known(store: MomentStore, log: Sequence[Commit], name: str) -> None:
    known = sorted({key for commit in log for key in commit.origins})
    if name not in known and not log[0].forgotten.has_withdrawn(name):
        raise InvalidInput(
            f"no version of {store.url} has an origin {name!r}, and no origin of that name was "
            f"purged; its origins are {', '.join(known) or 'none'}"
        )
