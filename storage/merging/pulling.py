"""Pulling: takes over what another store holds, as one commit of an origin.

The segments of the origin are copied as they are, each with the sign and the days that it has
there, so the sum of all segments is that of one store that counted everything. A later pull copies
the segments that are new there, and drops those that are gone. Equal segments have the same SHA-256
of their manifest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streaming_moments.errors import ForeignStatistics, InvalidInput, StoreError
from streaming_moments.printing.plural import of_number, plural
from streaming_moments.storage.files.retries import CONFLICT_ATTEMPTS
from streaming_moments.storage.inbox.owners import Owner
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit, Origin, SegmentReference
from streaming_moments.storage.log.covering import parts_of
from streaming_moments.storage.log.layout import require_name
from streaming_moments.storage.log.ledger import Ledger, read_ledger
from streaming_moments.storage.log.origins import MERGE, name_in, name_there
from streaming_moments.storage.log.uncommitted import Uncommitted
from streaming_moments.storage.merging.copying import copy_segment
from streaming_moments.storage.merging.counted_once import (
    fresh_records,
    require_counted_once,
    without_copies,
)
from streaming_moments.storage.merging.matching import followed, require_adding_up, words_here
from streaming_moments.storage.operations.purging import (
    holdings_of,
    ledger_of_all,
    planned_purge,
)
from streaming_moments.storage.operations.traces import erase_unnamed
from streaming_moments.storage.segments.blocks import require_apart
from streaming_moments.storage.store.changes import require_bound
from streaming_moments.storage.store.garbage import sweep, unswept
from streaming_moments.storage.store.store import MomentStore

_Copied = tuple[str, str | None]


class _Changed(StoreError):
    """Another writer has changed this store, so that segments must be copied again."""


class _Pulled(StoreError):
    """Another writer has pulled this version, or a later one."""


@dataclass(frozen=True)
class Pull:
    """Result of a pull.

    store : at its latest version
    name : name of the origin
    origin : its version that the store holds
    documents : number of documents of the origin
    change : increase of that number; negative for a decrease
    added, removed : numbers of segments that were copied, and dropped
    left_out : shards that are counted elsewhere, with `unique`
    purged : shards that were purged there and now here, with the versions that held them
    withdrawn : number of origins of that store that were purged there and now here
    """

    store: MomentStore = field(repr=False)
    name: str
    origin: Origin
    documents: int = 0
    change: int = 0
    added: int = 0
    removed: int = 0
    left_out: tuple[str, ...] = ()
    purged: tuple[str, ...] = ()
    withdrawn: int = 0


@dataclass(frozen=True)
class _Purged:
    """What was purged at an origin since, and what its purge changes in a version here.

    shards : names here
    stores : identifiers of origins of that store
    changes : fields of the commit
    """

    shards: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.shards or self.stores)

    def __str__(self) -> str:
        told = (len(self.shards), "shard"), (len(self.stores), "origin")
        return ", ".join(f"{of_number(number, what)} purged" for number, what in told if number)


@dataclass(frozen=True)
class _Source:
    """What is pulled: a version of another store under a name.

    wanted : its segments, with the names of their origins here; without those that count nothing
        new
    least : fewest documents of a segment that is copied
    again : whether to count what was forgotten or purged here
    """

    other: MomentStore
    name: str
    origin: Origin
    wanted: tuple[SegmentReference, ...]
    least: int = 0
    again: bool = False
    left_out: tuple[str, ...] = ()


def pull(
    store: MomentStore,
    other: MomentStore,
    name: str | None = None,
    unique: bool = False,
    least_documents: int = 0,
    message: str = "",
    include_forgotten: bool = False,
) -> Pull:
    """Take over what another store holds, in one commit; the result is its sum with this store.

    This is the latest version of the other store when the pull begins. Nothing is committed if it
    is here already.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    other : MomentStore
        Store on the same foundation; it is only read.
    name : str, optional
        Name of the origin; by default the one that it has here, or the last part of its URL.
    unique : bool
        Leave out segments there whose shards are all counted here, or by another origin.
    least_documents : int
        Refuse a new origin of fewer documents, and a new segment of fewer; but what was purged
        there is purged here in any case.
    message : str
        Message for the log.
    include_forgotten : bool
        Count shards that were forgotten or purged here, and an origin that was purged here.

    Raises
    ------
    ForeignStatistics
        The two have another foundation. The error says what differs.
    InvalidInput
        The other store is this one, holds this one, is a copy of an origin, or has too few
        documents; the name is used; it was purged here; or a shard is counted twice, or was
        forgotten here. The error names it.
    StoreError
        A store cannot be read or written, or the other one is at an earlier version than before.

    Examples
    --------
    >>> from streaming_moments.testing.small_store import append, create
    >>> hub, site = append(create(), {"/data/a": 1}), append(create(), {"/data/a": 2})
    >>> found = pull(hub, site, "emea")
    >>> found.documents, found.store.commit.documents, found.store.commit.message
    (6, 12, 'merge emea: version 1, 6 documents more')
    >>> [record.url for record in found.store.ledger()]
    ['/data/a', 'origin://emea//data/a']
    >>> pull(found.store, site).store.version == found.store.version
    True
    """
    store = store.writable().latest()
    other = other.latest()
    identity = Owner.at(other.url, other.folder.storage_options).birth
    for _ in range(CONFLICT_ATTEMPTS):
        _require_no_rebase(store, store.commit)
        require_adding_up(store, other)
        called = _name_here(store, other, identity, name)
        origin = _origin(other, identity)
        _require_separate(store, origin, called)
        if called not in store.commit.origins:
            _require_enough(other, least_documents)
        wanted = _named(called, other.commit)
        source = _Source(other, called, origin, wanted, least_documents, include_forgotten)
        _require_not_purged(store.commit, source)
        try:
            store = followed(store, other)
            return _pulled(store, source, unique, message)
        except _Changed:
            store, other = store.latest(), other.latest()
        except StoreError:
            # an expiry or a purge there may have deleted files of the version, and another pull may
            # have added the same words here; the origin comes last, as it may not be the earlier
            here, there = store.latest(), other.latest()
            if (here.version, there.version) == (store.version, other.version):
                raise
            store, other = here, there
    raise StoreError(f"other writers keep changing {store.url} or {other.url}; run this again")


def drop_origin(store: MomentStore, name: str, message: str = "") -> MomentStore:
    """Remove all documents of an origin, in one commit; a later pull brings them back.

    Raises InvalidInput if there is no such origin.
    """

    def change(head: Commit) -> Commit:
        if name not in head.origins:
            told = ", ".join(head.origins) or "none"
            raise InvalidInput(f"{store.url} has no origin {name!r}; it has {told}")
        kept = tuple(part for part in head.segments if not part.is_of(name))
        others = {key: one for key, one in head.origins.items() if key != name}
        text = message or f"forget: all documents of origin {name}"
        return head.successor("forget", text, segments=kept, origins=others)

    return store.extended(change)


def _pulled(store: MomentStore, source: _Source, unique: bool, message: str) -> Pull:
    """Copy what is new, and commit it."""
    name, other = source.name, source.other
    _swept(store)
    _require_later(store, store.commit, source)
    theirs = [part for part in store.commit.segments if part.is_of(name)]
    if unique:
        ledger = read_ledger(other.folder, source.wanted, Ledger({}))
        rest = [part for part in store.commit.segments if not part.is_of(name)]
        others = store.ledger().of_segments(rest)
        kept, left_out = without_copies(source.wanted, ledger, others)
        source = replace(source, wanted=kept, left_out=left_out)
    same = _counted(theirs) == _counted(source.wanted)
    if same and store.commit.origins.get(name) == source.origin:
        return _told(store, source, store.commit)
    if purged := _purge_of(store, store.commit, source, store.ledger()):
        erase_unnamed(store.folder, purged.shards)  # before there are copies that no version names
    held = {_copied(part) for part in theirs}
    news = [part for part in source.wanted if _copied(part) not in held]
    _require_large(store.commit, source, news)
    copies: dict[_Copied, tuple[str, Uncommitted]] = {}
    for part in news:
        if _copied(part) not in copies:
            copies[_copied(part)] = copy_segment(other.folder, part, store.folder)
    done: list[_Purged] = []

    def change(head: Commit) -> Commit:
        successor, purged = _merged(store, head, source, copies, message)
        done.append(purged)
        return successor

    written = [one for _, one in copies.values()]
    try:
        after = store.extended(change, written)
    except (_Pulled, _Changed, ForeignStatistics, InvalidInput) as error:
        # nothing names these copies, which may hold what was purged meanwhile
        store.folder.delete([f"{one.folder}/{path}" for one in written for path in one.sizes])
        if not isinstance(error, _Pulled):
            raise
        return _told(store.latest(), source, store.commit)
    purged = done[-1]
    if purged:
        sweep(after.folder)
        erase_unnamed(after.folder, purged.shards)
        after = after.latest()
    return _told(after, source, store.commit, purged)


def _merged(
    store: MomentStore,
    head: Commit,
    source: _Source,
    copies: Mapping[_Copied, tuple[str, Uncommitted]],
    message: str,
) -> tuple[Commit, _Purged]:
    """Make the commit of a pull on top of a version, and say what it purges."""
    name, other = source.name, source.other.commit
    before = head.origins.get(name)
    _require_no_rebase(store, head)
    _require_not_purged(head, source)
    _require_later(store, head, source)
    theirs = [part for part in head.segments if part.is_of(name)]
    held = {_copied(part): part.id for part in theirs}
    ours = {key: identity for key, (identity, _) in copies.items()} | held
    if any(_copied(part) not in ours for part in source.wanted):
        raise _Changed(f"segments of {name} are gone; run this again")
    news = [
        replace(
            part,
            id=ours[_copied(part)],
            words=words_here(head.lineage, other.lineage, part.words),
        )
        for part in source.wanted
    ]
    if Counter(map(_key, news)) == Counter(map(_key, theirs)):
        if before == source.origin:
            raise _Pulled(f"version {other.version} of {name} is here already")
        news = theirs
    rest = [part for part in head.segments if not part.is_of(name)]
    ledger = read_ledger(store.folder, [*rest, *theirs, *news], store.ledger(), head.sums)
    fresh = fresh_records(ledger, news, theirs)
    require_counted_once(head, ledger, fresh, name, source.again)
    require_bound([*rest, *news])
    change = _documents(news) - _documents(theirs)
    text = message or f"{MERGE} {name}: version {other.version}, {change_text(change)}"
    purged = _purge_of(store, head, source, ledger)
    changes = {"forgotten": head.forgotten, **purged.changes}
    if purged:
        text += f", {purged}"
    if source.again:
        listed = changes["forgotten"].without(one.url for one in fresh)
        stores = (name, source.origin.id, *source.origin.within)
        changes["forgotten"] = listed.without_withdrawn(stores)
    origins = {**head.origins, name: source.origin}
    successor = head.successor(MERGE, text, segments=(*rest, *news), origins=origins, **changes)
    if store.foundation.joins:
        require_apart(store.folder, parts_of(successor), store.layout)
    return successor, purged


def _purge_of(store: MomentStore, head: Commit, source: _Source, known: Ledger) -> _Purged:
    """Find what was purged there since the pull before.

    As `purge`, it drops the versions that held it and the models that were fitted to these.
    """
    forgotten, before = source.other.commit.forgotten, head.origins.get(source.name)
    if not source.origin.purged or (before and before.purged == source.origin.purged):
        return _Purged()
    log = CommitLog(store.folder).history(head.version)
    ledger = ledger_of_all(store.folder, log, known)
    there = {
        url: _name_at(part.origin, url)
        for part in {
            part.id: part for commit in log for part in _parts_of(commit, source.origin.id)
        }.values()
        if part.origin is not None
        for url in ledger.tables[part.id]["url"].to_pylist()
    }
    gone = {url for url, name in there.items() if forgotten.has_purged(name)}
    # neither shards that were counted again since, nor those of others, which purge them first
    again = set(source.other.ledger().counted([there[url] for url in gone]))
    rest = [part for part in head.segments if not part.is_of(source.name)]
    others = {url for part in rest for url in ledger.held(part.id, gone)} if gone else set()
    shards = frozenset(url for url in gone if there[url] not in again and url not in others)
    within = {commit.version: _held_through(commit, source.origin.id) for commit in log}
    stores = frozenset(filter(forgotten.has_withdrawn, set().union(*within.values())))
    if not shards and not stores:
        return _Purged()
    dropped = {version for version, held in within.items() if not stores.isdisjoint(held)}
    holdings = holdings_of(log, ledger, shards, dropped=dropped)
    purge = planned_purge(head, holdings)
    listed = head.forgotten.with_purged(shards, holdings.shards) if shards else head.forgotten
    changes = {
        "models": {name: one for name, one in head.models.items() if name not in purge.models},
        "tags": {name: one for name, one in head.tags.items() if name not in purge.tags},
        "expired": head.without(holdings.versions),
        "forgotten": listed.with_withdrawn(stores) if stores else listed,
    }
    return _Purged(shards, stores, changes)


def _parts_of(commit: Commit, identity: str) -> list[SegmentReference]:
    """Return the segments of a store in a version, which may have another name for it."""
    names = [name for name, one in commit.origins.items() if one.id == identity]
    return [part for part in commit.segments if any(part.is_of(name) for name in names)]


def _held_through(commit: Commit, identity: str) -> set[str]:
    """Return the stores whose documents a version holds through another store."""
    return {
        one for found in commit.origins.values() if found.id == identity for one in found.within
    }


def _named(name: str, commit: Commit) -> tuple[SegmentReference, ...]:
    """Return the segments of another store with the names of their origins here."""
    return tuple(
        replace(part, origin=name if part.origin is None else f"{name}/{part.origin}")
        for part in commit.segments
    )


def _name_at(origin: str, url: str) -> str:
    """Return the name in the ledger of the other store for a shard here."""
    _, _, within = origin.partition("/")
    name = name_there(origin, url)
    return name_in(within, name) if within else name


def _name_here(store: MomentStore, other: MomentStore, identity: str, given: str | None) -> str:
    """Return the name of an origin here: as before, or as given, or by its URL."""
    origins = store.commit.origins
    known = next((name for name, one in origins.items() if one.id == identity), None)
    if known is not None:
        if given not in (None, known):
            raise InvalidInput(
                f"{other.url} is origin {known} of {store.url}, not {given}",
                "leave out {merge.as}, or remove that origin before by {forget.origin}",
            )
        return known
    name = given or _name_by_url(other.url, 1)
    if not given and name in origins:
        name = _name_by_url(other.url, 2)
    if require_name(name, "an origin").startswith("-"):
        raise InvalidInput(f"an origin cannot be named {name!r}; do not begin with -")
    if name in origins:
        raise InvalidInput(
            f"origin {name} of {store.url} is another store, at {origins[name].url}",
            "give another name by {merge.as}",
        )
    return name


def _name_by_url(url: str, parts: int) -> str:
    """Return the last parts of a URL as a name.

    Examples
    --------
    >>> _name_by_url("s3://rome/store", 1), _name_by_url("s3://rome/store", 2)
    ('store', 'rome-store')
    """
    last = "-".join([part for part in url.split("/") if part][-parts:])
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).lstrip("-._")


def _origin(other: MomentStore, identity: str) -> Origin:
    """Describe the version of another store that is pulled."""
    commit = other.commit
    held = {one for origin in commit.origins.values() for one in (origin.id, *origin.within)}
    names, stores = sorted(commit.forgotten.purged), commit.forgotten.withdrawn
    listed = json.dumps([names, stores] if stores else names).encode()
    purged = hashlib.sha256(listed).hexdigest() if names or stores else ""
    within = tuple(sorted(held))
    return Origin(
        identity, other.url, other.version, commit.time, purged, within, commit.transaction
    )


def _require_separate(store: MomentStore, origin: Origin, name: str) -> None:
    """Refuse this store itself, a store that holds this one, and a store that is here already."""
    mine = Owner.at(store.url, store.folder.storage_options).birth
    if origin.id == mine:
        raise InvalidInput(
            f"{origin.url} is {store.url} itself, or a copy of it",
            "make the store of each site by {create.like}",
        )
    if mine in origin.within:
        raise InvalidInput(
            f"{origin.url} holds the documents of {store.url}, which would count twice",
            "merge the stores of its other origins instead",
        )
    theirs = {origin.id, *origin.within}
    for other, one in store.commit.origins.items():
        if other != name and not theirs.isdisjoint({one.id, *one.within}):
            raise InvalidInput(
                f"{origin.url} and origin {other} ({one.url}) hold the documents of the same store",
                "remove that origin by {forget.origin}, or do not merge the other",
            )


def _require_no_rebase(store: MomentStore, head: Commit) -> None:
    if head.staged is not None:
        raise InvalidInput(f"a rebase of {store.url} has begun; finish it before a merge")


def _require_not_purged(head: Commit, source: _Source) -> None:
    """Refuse a store whose documents, or those of an origin of it, were purged here as a whole."""
    if source.again:
        return
    within = source.other.commit.origins
    named = {one.id: f"{source.name}/{key}" for key, one in within.items()}
    for identity in (source.origin.id, *source.origin.within):
        if head.forgotten.has_withdrawn(identity):
            raise InvalidInput(
                f"{source.origin.url} holds the documents of origin "
                f"{named.get(identity, source.name)}, which was purged here",
                "do not merge it; if it has agreed to come back, give {merge.include_forgotten}",
            )


def _require_enough(other: MomentStore, least: int) -> None:
    if 0 < other.commit.documents < least:
        raise InvalidInput(
            f"{other.url} holds {other.commit.documents:,} documents, fewer than {least:,}, so its "
            "sums could tell of single ones",
            "merge it later, or lower {merge.least_documents}",
        )


def _require_large(head: Commit, source: _Source, news: Iterable[SegmentReference]) -> None:
    """Refuse new segments of few documents, unless documents were purged there since."""
    before = head.origins.get(source.name)
    if before is not None and source.origin.purged != before.purged:
        return  # documents that were purged there may not stay here
    sizes = [part.documents for part in news if part.documents]
    if sizes and min(sizes) < source.least:
        raise InvalidInput(
            f"a new segment of {source.origin.url} holds {min(sizes):,} "
            f"{plural(min(sizes), 'document')}, fewer than {source.least:,}, so its counts could "
            "tell of single ones",
            "compact that store first, merge it later, or lower {merge.least_documents}",
        )


def _require_later(store: MomentStore, head: Commit, source: _Source) -> None:
    """Refuse a version that is earlier than the one here, or of another copy of the store."""
    before = head.origins.get(source.name)
    if before is None:
        return
    if before.id != source.origin.id:
        raise _Changed(f"origin {source.name} is another store now; run this again")
    if before.version > source.origin.version:
        if head.transaction != store.commit.transaction:
            raise _Pulled(f"version {before.version} of {source.name} is here already")
        if source.other.latest().version >= before.version:
            raise _Changed(f"another pull of {source.name} was faster; run this again")
        raise InvalidInput(
            f"{source.origin.url} is at version {source.origin.version}, and version "
            f"{before.version} of it is here: it was restored from a copy, or is one",
            "remove the origin by {forget.origin}, then merge it again; make the store of each "
            "site by {create.like}",
        )
    # an expired commit keeps its transaction
    log = CommitLog(source.other.folder)
    if before.transaction and not log.has(before.version, before.transaction):
        raise InvalidInput(
            f"{source.origin.url} and origin {source.name} ({before.url}) are two stores with one "
            "beginning, so one is a copy of the other",
            "make the store of each site by {create.like}, and count there; or, if the store "
            "replaces the other one, remove the origin by {forget.origin} and merge again",
        )


def _swept(store: MomentStore) -> None:
    """Delete what a purge left that died after its commit."""
    if store.commit.expired and unswept(store.folder, store.commit):
        sweep(store.folder)


def _told(
    after: MomentStore,
    source: _Source,
    before: Commit,
    purged: _Purged = _Purged(),
) -> Pull:
    """Describe a pull by the versions before and after it."""
    name = source.name
    old, new = (
        [part for part in commit.segments if part.is_of(name)] for commit in (before, after.commit)
    )
    return Pull(
        after,
        name,
        after.commit.origins.get(name, source.origin),
        documents=_documents(new),
        change=_documents(new) - _documents(old),
        added=len({part.id for part in new} - {part.id for part in old}),
        removed=len({part.id for part in old} - {part.id for part in new}),
        left_out=source.left_out,
        purged=tuple(sorted(purged.shards)),
        withdrawn=len(purged.stores),
    )


def _documents(parts: Iterable[SegmentReference]) -> int:
    return sum(part.sign * part.documents for part in parts)


def change_text(change: int) -> str:
    """Describe a change of the number of documents."""
    more = "more" if change >= 0 else "fewer"
    return f"{of_number(abs(change), 'document')} {more}"


def _copied(part: SegmentReference) -> _Copied:
    """Return what a copy has in common with its source: the content, and the origin's name here."""
    return part.manifest, part.origin


def _counted(parts: Iterable[SegmentReference]) -> Counter[tuple[_Copied, int]]:
    return Counter((_copied(part), part.sign) for part in parts)


def _key(part: SegmentReference) -> tuple[object, ...]:
    return part.id, part.sign, part.words, part.origin
