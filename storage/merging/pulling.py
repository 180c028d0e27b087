"""Pulling: copies the segments of other stores, which become origins of this store.

Segments are copied unchanged, each with its sign and its days, so the sum of all segments equals
that of one store that counted everything. A later pull copies new segments, and drops segments that
the other store no longer has. Segments are equal if their manifests have the same SHA-256. Two
stores on one disk share the files of equal segments.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streaming_moments.errors import ForeignStatistics, InvalidInput, StoreError
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.retries import CONFLICT_ATTEMPTS
from streaming_moments.storage.log.commits import Commit, Origin, SegmentReference
from streaming_moments.storage.log.covering import parts_of
from streaming_moments.storage.log.ledger import Ledger, read_ledger
from streaming_moments.storage.log.origins import MERGE
from streaming_moments.storage.merging.copying import copy_segment
from streaming_moments.storage.merging.counted_once import (
    ShardsRefused,
    fresh_records,
    refusal,
    without_copies,
)
from streaming_moments.storage.merging.matching import followed, words_here
from streaming_moments.storage.merging.purged_there import Purged, purge_of
from streaming_moments.storage.merging.sources import (
    OriginChanged,
    Source,
    require_large,
    require_later,
    require_not_purged,
    sources_of,
)
from streaming_moments.storage.operations.purges.traces import erase_unnamed
from streaming_moments.storage.segments.blocks import require_apart
from streaming_moments.storage.store.changes import require_bound
from streaming_moments.storage.store.garbage import sweep, unswept
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    import pyarrow as pa

_Copied = tuple[str, str | None]


class _Pulled(StoreError):
    """Another writer has already pulled the same versions of the other stores."""


@dataclass(frozen=True)
class Pull:
    """Result of a pull.

    store : the store that was extended, at its latest version
    name : name of the origin
    origin : the version of the origin that the store now holds
    documents : number of documents of the origin
    change : increase of that number; negative for a decrease
    added, removed : numbers of segments that were copied, and dropped
    left_out : shards that were omitted because of `unique`, as other segments count them
    purged : shards that the origin has purged, and that were now purged from `store`, with the
        versions that had them
    withdrawn : number of stores that the origin had merged and has purged, and that were now purged
        from `store`
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


def pull(
    store: MomentStore,
    other: MomentStore,
    name: str | None = None,
    unique: bool = False,
    least_documents: int = 0,
    message: str = "",
    include_forgotten: bool = False,
) -> Pull:
    """Copy the segments of another store in one commit, so that this store is the sum of both.

    The pull uses the latest version of the other store when it begins. It commits nothing if that
    version was pulled before.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    other : MomentStore
        Store on the same foundation; it is only read.
    name : str, optional
        Name of the origin; by default the present name of the origin, or the last part of its URL.
    unique : bool
        Leave out segments whose shards are all counted by this store, or by another origin.
    least_documents : int
        Refuse a new origin, or a new segment, with fewer documents. Shards that the other store has
        purged are purged from this store in any case.
    message : str
        Message for the log.
    include_forgotten : bool
        Count also shards that this store has forgotten or purged, or an origin that it has purged.

    Raises
    ------
    ForeignStatistics
        The foundations of the two stores differ. The error describes the differences.
    InvalidInput
        The other store is this store, includes this store, is a copy of an origin, was purged from
        this store, or has too few documents. Or another origin has the name. Or a shard would be
        counted twice, or was forgotten by this store; the error names the shard.
    StoreError
        A store cannot be read or written, or the other store is at an earlier version than at the
        previous pull.

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
    [found] = pull_together(
        store, [other], unique, least_documents, message, include_forgotten, name
    )
    return found


def pull_together(
    store: MomentStore,
    others: Sequence[MomentStore],
    unique: bool = False,
    least_documents: int = 0,
    message: str = "",
    include_forgotten: bool = False,
    name: str | None = None,
) -> tuple[Pull, ...]:
    """Copy the segments of several stores in one commit, so that shards may move between them.

    Arguments and errors are as for `pull`. A name may be given only for a single other store. A
    ShardsRefused names the stores with shards that would count twice.

    Examples
    --------
    >>> from streaming_moments.testing.small_store import append, create, forget
    >>> one, two = append(create(), {"s3://x/a": 1}), append(create(), {"s3://x/b": 2})
    >>> hub = pull(pull(create(), one, "one").store, two, "two").store
    >>> one = append(forget(one, {"s3://x/a": 1}), {"s3://x/b": 2})
    >>> two = append(forget(two, {"s3://x/b": 2}), {"s3://x/a": 1})
    >>> [(found.name, found.added) for found in pull_together(hub, [one, two])]
    [('one', 2), ('two', 2)]
    """
    store, others = store.writable().latest(), [other.latest() for other in others]
    for _ in range(CONFLICT_ATTEMPTS):
        _require_no_rebase(store, store.commit)
        sources = sources_of(store, others, name, least_documents, include_forgotten)
        try:
            for other in others:
                store = followed(store, other)
            return _taken_over(store, sources, unique, message)
        except OriginChanged:
            store, others = store.latest(), [other.latest() for other in others]
        except StoreError:
            # Try again with the latest versions of all stores. An expiry or a purge of an origin
            # may have deleted files of the version that was read. Another pull may have added the
            # same words. Read the origins last, so that they are not older than the version of
            # this store.
            here, there = store.latest(), [other.latest() for other in others]
            if _versions([here, *there]) == _versions([store, *others]):
                raise
            store, others = here, there
    told = ", ".join(other.url for other in others)
    raise StoreError(f"other writers keep changing {store.url} or {told}; run this again")


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


def _versions(stores: Iterable[MomentStore]) -> list[int]:
    return [store.version for store in stores]


@dataclass(frozen=True)
class _Incoming:
    """Segments of another store, the source, as the new version of this store has them.

    parts : references to all these segments, with their identifiers in this store
    copies : references of the source to the segments that must be copied, by their new identifiers
        in this store
    """

    source: Source
    parts: tuple[SegmentReference, ...]
    copies: Mapping[str, SegmentReference]

    @classmethod
    def at(cls, head: Commit, source: Source, copies: Mapping[str, SegmentReference]) -> _Incoming:
        """Find the wanted segments of a source in a version of this store, or among new copies.

        Raises OriginChanged for a segment that is in neither.
        """
        ours = {_copied(part): identity for identity, part in copies.items()}
        ours |= {_copied(part): part.id for part in _held(head, source)}
        if any(_copied(part) not in ours for part in source.wanted):
            raise OriginChanged(f"segments of {source.name} were deleted meanwhile; run this again")
        there = source.other.commit.lineage
        parts = tuple(
            replace(part, id=ours[_copied(part)], words=words_here(head.lineage, there, part.words))
            for part in source.wanted
        )
        needed = {part.id for part in parts}
        used = {identity: part for identity, part in copies.items() if identity in needed}
        return cls(source, parts, used)


def _taken_over(
    store: MomentStore, sources: Sequence[Source], unique: bool, message: str
) -> tuple[Pull, ...]:
    """Copy the new segments of other stores, and commit them."""
    _swept(store)
    head = store.commit
    for source in sources:
        require_later(head, source)
    incoming = [_new_in(head, source) for source in sources]
    if unique:
        known = _records(store, incoming)
        incoming = _without_copies(head, incoming, known)
    if all(_is_here(head, one) for one in incoming):
        return tuple(_summary(store, one.source, head) for one in incoming)
    if not unique:
        known = _records(store, incoming)
    for one in incoming:
        require_large(head, one.source, one.copies.values())
    # make the commit before anything is copied, because the pull may be refused while it is made
    purged = _merged(store, head, incoming, known, message)[1]
    if purged:
        # Erase traces of purged shards before anything is copied. Later, this would also delete the
        # copies, which no version names yet.
        erase_unnamed(store.folder, purged.shards)
    written = [
        copy_segment(one.source.other.folder, part, store.folder, identity)
        for one in incoming
        for identity, part in one.copies.items()
    ]
    done: list[Purged] = []

    def change(head: Commit) -> Commit:
        for one in incoming:
            require_not_purged(head, one.source)
            require_later(head, one.source)
        found = [_Incoming.at(head, one.source, one.copies) for one in incoming]
        if all(_is_here(head, one) for one in found):
            raise _Pulled("these versions are here already")
        successor, purged = _merged(store, head, found, known, message)
        if store.foundation.joins:
            require_apart(store.folder, parts_of(successor), store.layout)
        done.append(purged)
        return successor

    try:
        after = store.extended(change, written)
    except (_Pulled, OriginChanged, ForeignStatistics, InvalidInput) as error:
        # delete the copies: no version names them, and their shards may have been purged meanwhile
        store.folder.delete([f"{one.folder}/{path}" for one in written for path in one.sizes])
        if not isinstance(error, _Pulled):
            raise
        return tuple(_summary(store.latest(), one.source, head) for one in incoming)
    purged = done[-1]
    if purged:
        sweep(after.folder)
        erase_unnamed(after.folder, purged.shards)
        after = after.latest()
    after = after.knowing(known)
    return tuple(_summary(after, one.source, head, purged) for one in incoming)


def _new_in(head: Commit, source: Source) -> _Incoming:
    """Choose the segments of a source to copy, and draw random identifiers for them."""
    held = {_copied(part) for part in _held(head, source)}
    news = [part for part in source.wanted if _copied(part) not in held]
    return _Incoming.at(head, source, {uuid.uuid4().hex: part for part in news})


def _records(store: MomentStore, incoming: Sequence[_Incoming]) -> Ledger:
    """Return one ledger for this store and the segments to copy.

    These segments have the names that they get in this store.
    """
    tables = dict(store.ledger().tables)
    for one in incoming:
        there = read_ledger(one.source.other.folder, [*one.copies.values()], Ledger({})).tables
        tables |= {identity: there[part.id] for identity, part in one.copies.items()}
    return Ledger(tables)


def _without_copies(head: Commit, incoming: Sequence[_Incoming], known: Ledger) -> list[_Incoming]:
    """Leave out the segments whose shards other segments count.

    If two sources have the same shards, one of the sources keeps its segments.
    """
    names = [one.source.name for one in incoming]
    others = [part for part in head.segments if not any(map(part.is_of, names))]
    held = [[part for part in one.parts if part.id not in one.copies] for one in incoming]
    kept = list[_Incoming]()
    for place, one in enumerate(incoming):
        before = [part for other in kept for part in other.parts]
        later = [part for parts in held[place + 1 :] for part in parts]
        elsewhere = known.of_segments([*others, *before, *later])
        gone, left_out = without_copies(one.parts, known.of_segments(one.parts), elsewhere)
        pairs = zip(one.source.wanted, one.parts, strict=True)
        wanted = tuple(there for there, here in pairs if here.id not in gone)
        source = replace(one.source, wanted=wanted, left_out=left_out)
        kept.append(_Incoming.at(head, source, one.copies))
    return kept


def _merged(
    store: MomentStore,
    head: Commit,
    incoming: Sequence[_Incoming],
    known: Ledger,
    message: str,
) -> tuple[Commit, Purged]:
    """Make the commit of a pull on top of a version, and return the shards that it purges."""
    _require_no_rebase(store, head)
    names = [one.source.name for one in incoming]
    rest = [part for part in head.segments if not any(map(part.is_of, names))]
    before = [_held(head, one.source) for one in incoming]
    news = [
        # keep the previous order of segments if there are no new ones
        theirs if _keys(one.parts) == _keys(theirs) else one.parts
        for one, theirs in zip(incoming, before, strict=True)
    ]
    parts = [*rest, *(part for own in news for part in own)]
    both = {part.id: part for part in (*head.segments, *parts)}
    ledger = read_ledger(store.folder, list(both.values()), known, head.sums)
    fresh = [fresh_records(ledger, own, theirs) for own, theirs in zip(news, before, strict=True)]
    _require_counted_once(head, incoming, fresh, parts, ledger)
    require_bound(parts)
    purged = purge_of(store, head, [one.source for one in incoming], parts, ledger)
    changes = {"forgotten": head.forgotten, **purged.changes}
    for one, table in zip(incoming, fresh, strict=True):
        if one.source.again:
            origin = one.source.origin
            listed = changes["forgotten"].without(table["url"].to_pylist())
            changes["forgotten"] = listed.without_withdrawn(
                (one.source.name, origin.id, *origin.within)
            )
    text = message or _text(incoming, news, before, purged)
    origins = {**head.origins, **{one.source.name: one.source.origin for one in incoming}}
    return head.successor(MERGE, text, segments=tuple(parts), origins=origins, **changes), purged


def _require_counted_once(
    head: Commit,
    incoming: Sequence[_Incoming],
    fresh: Sequence[pa.Table],
    parts: Sequence[SegmentReference],
    ledger: Ledger,
) -> None:
    """Raise ShardsRefused for new shards that are counted elsewhere, or forgotten in `head`."""
    refused = dict[str, tuple[str, str]]()
    for one, table in zip(incoming, fresh, strict=True):
        source = one.source
        found = refusal(parts, ledger, head.forgotten, table, source.name, source.again)
        if found is not None:
            refused[one.source.url] = found
    if refused:
        problem, remedy = next(iter(refused.values()))
        raise ShardsRefused(problem, remedy, tuple(refused))


def _text(
    incoming: Sequence[_Incoming],
    news: Sequence[Sequence[SegmentReference]],
    before: Sequence[Sequence[SegmentReference]],
    purged: Purged,
) -> str:
    """Return the message of the commit of a pull."""
    told = "; ".join(
        f"{one.source.name}: version {one.source.other.version}, "
        f"{change_text(_documents(own) - _documents(theirs))}"
        for one, own, theirs in zip(incoming, news, before, strict=True)
    )
    return f"{MERGE} {told}" + (f", {purged}" if purged else "")


def _is_here(head: Commit, one: _Incoming) -> bool:
    """Whether a version has all wanted segments of a source."""
    same = _keys(one.parts) == _keys(_held(head, one.source))
    return same and head.origins.get(one.source.name) == one.source.origin


def _held(head: Commit, source: Source) -> list[SegmentReference]:
    """Return the segments of an origin in a version."""
    return [part for part in head.segments if part.is_of(source.name)]


def _keys(parts: Iterable[SegmentReference]) -> set[tuple[object, ...]]:
    return {(part.id, part.sign, part.words, part.origin) for part in parts}


def _require_no_rebase(store: MomentStore, head: Commit) -> None:
    if head.staged is not None:
        raise InvalidInput(f"a rebase of {store.url} has begun; finish it before a merge")


def _swept(store: MomentStore) -> None:
    """Delete files left over from a purge that was killed after its commit."""
    if store.commit.expired and unswept(store.folder, store.commit):
        sweep(store.folder)


def _summary(
    after: MomentStore,
    source: Source,
    before: Commit,
    purged: Purged = Purged(),
) -> Pull:
    """Summarise a pull from the versions before and after it."""
    name = source.name
    old, new = _held(before, source), _held(after.commit, source)
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
    """Return manifest and origin's name of a segment, which are equal for a copy and its source."""
    return part.manifest, part.origin
