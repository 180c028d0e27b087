"""Sources: versions of other stores that are pulled, and the checks that may refuse them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.printing.plural import plural
from streaming_moments.storage.inbox.owners import Owner
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit, Origin, SegmentReference
from streaming_moments.storage.log.layout import require_name
from streaming_moments.storage.merging.matching import require_adding_up
from streaming_moments.storage.store.store import MomentStore


class OriginChanged(StoreError):
    """Another writer has changed an origin of this store, so its source must be read again."""


@dataclass(frozen=True)
class Source:
    """Version of another store that is pulled into this one, and its name in this one.

    wanted : its segments, except those that count nothing new; they name their origins as this
        store does
    least : segments with fewer documents than this are refused
    again : whether to count shards that this store has forgotten or purged
    left_out : names of shards that are not pulled, because other segments count them
    """

    other: MomentStore
    name: str
    origin: Origin
    wanted: tuple[SegmentReference, ...]
    least: int = 0
    again: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """URL of the other store."""
        return self.origin.url


def sources_of(
    store: MomentStore,
    others: Iterable[MomentStore],
    given: str | None,
    least: int,
    again: bool,
) -> tuple[Source, ...]:
    """Check and name the versions of other stores for a pull into this store.

    Raises ForeignStatistics or InvalidInput for a store that cannot be an origin of this store.
    """
    origins, sources = dict(store.commit.origins), list[Source]()
    for other in others:
        require_adding_up(store, other)
        origin = _origin(other)
        name = _name_here(store, origins, origin, given)
        twin = next((one.url for one in sources if one.name == name), None)
        if twin is not None:
            raise InvalidInput(
                f"{twin} and {origin.url} are the same store, or copies of it; give only one"
            )
        _require_separate(store, origins, origin, name)
        if name not in store.commit.origins:
            _require_enough(other, least)
        source = Source(other, name, origin, _named(name, other.commit), least, again)
        require_not_purged(store.commit, source)
        origins[name] = origin
        sources.append(source)
    return tuple(sources)


def _named(name: str, commit: Commit) -> tuple[SegmentReference, ...]:
    """Return the segments of another store with the names that their origins have in this store."""
    return tuple(
        replace(part, origin=name if part.origin is None else f"{name}/{part.origin}")
        for part in commit.segments
    )


def _name_here(
    store: MomentStore, origins: dict[str, Origin], origin: Origin, given: str | None
) -> str:
    """Return the name for an origin: its present name, the given name, or one from its URL."""
    known = next((name for name, one in origins.items() if one.id == origin.id), None)
    if known is not None:
        if given not in (None, known):
            raise InvalidInput(
                f"{origin.url} is origin {known} of {store.url}, not {given}",
                "leave out {merge.as}, or first remove that origin by {forget.origin}",
            )
        return known
    name = given or _name_by_url(origin.url, 1)
    if not given and name in origins:
        name = _name_by_url(origin.url, 2)
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


def _origin(other: MomentStore) -> Origin:
    """Describe the version of another store that is pulled."""
    commit = other.commit
    identity = Owner.at(other.url, other.folder.storage_options).birth
    held = {one for origin in commit.origins.values() for one in (origin.id, *origin.within)}
    names, stores = sorted(commit.forgotten.purged), commit.forgotten.withdrawn
    listed = json.dumps([names, stores] if stores else names).encode()
    purged = hashlib.sha256(listed).hexdigest() if names or stores else ""
    within = tuple(sorted(held))
    return Origin(
        identity, other.url, other.version, commit.time, purged, within, commit.transaction
    )


def _require_separate(
    store: MomentStore, origins: dict[str, Origin], origin: Origin, name: str
) -> None:
    """Refuse as an origin the store itself, one that includes it, and one merged already."""
    mine = Owner.at(store.url, store.folder.storage_options).birth
    if origin.id == mine:
        raise InvalidInput(
            f"{origin.url} is {store.url} itself, or a copy of it",
            "make the store of each site by {create.like}",
        )
    if mine in origin.within:
        raise InvalidInput(
            f"{origin.url} includes the documents of {store.url}, which would count twice",
            "merge the other stores that it includes instead",
        )
    theirs = {origin.id, *origin.within}
    for other, one in origins.items():
        if other != name and not theirs.isdisjoint({one.id, *one.within}):
            raise InvalidInput(
                f"{origin.url} and origin {other} ({one.url}) include the documents of the same "
                "store",
                "remove that origin by {forget.origin}, or do not merge the new store",
            )


def require_not_purged(head: Commit, source: Source) -> None:
    """Refuse a store if all its documents, or all those of one of its origins, were purged here."""
    if source.again:
        return
    within = source.other.commit.origins
    named = {one.id: f"{source.name}/{key}" for key, one in within.items()}
    for identity in (source.origin.id, *source.origin.within):
        if head.forgotten.has_withdrawn(identity):
            raise InvalidInput(
                f"{source.url} includes the documents of origin "
                f"{named.get(identity, source.name)}, which was purged here",
                "do not merge this store; or, to allow that the documents of this origin count "
                "again, give {merge.include_forgotten}",
            )


def _require_enough(other: MomentStore, least: int) -> None:
    if 0 < other.commit.documents < least:
        raise InvalidInput(
            f"{other.url} has {other.commit.documents:,} documents, fewer than {least:,}, so its "
            "sums could reveal single documents",
            "merge it later, or lower {merge.least_documents}",
        )


def require_large(head: Commit, source: Source, news: Iterable[SegmentReference]) -> None:
    """Refuse new segments of few documents, unless the source purged shards since the last pull."""
    before = head.origins.get(source.name)
    if before is not None and source.origin.purged != before.purged:
        return  # what the source has purged must be purged from this store in any case
    sizes = [part.documents for part in news if part.documents]
    if sizes and min(sizes) < source.least:
        raise InvalidInput(
            f"a new segment of {source.url} has {min(sizes):,} "
            f"{plural(min(sizes), 'document')}, fewer than {source.least:,}, so its counts could "
            "reveal single documents",
            "compact that store first, merge it later, or lower {merge.least_documents}",
        )


def require_later(head: Commit, source: Source) -> None:
    """Refuse a version of a copy of the origin, or a version before the one pulled last."""
    before = head.origins.get(source.name)
    if before is None:
        return
    if before.id != source.origin.id:
        raise OriginChanged(f"origin {source.name} is another store now; run this again")
    if before.version > source.origin.version:
        if source.other.latest().version >= before.version:
            raise OriginChanged(
                f"another pull of {source.name} committed a later version; run this again"
            )
        raise InvalidInput(
            f"{source.url} is at version {source.origin.version}, but its version "
            f"{before.version} was already merged: the store was restored from a copy, or it is a "
            "copy",
            "remove the origin by {forget.origin}, then merge it again; make the store of each "
            "site by {create.like}",
        )
    # `has` also works for an expired commit, which keeps its transaction
    log = CommitLog(source.other.folder)
    if before.transaction and not log.has(before.version, before.transaction):
        raise InvalidInput(
            f"{source.url} and origin {source.name} ({before.url}) are two stores with the same "
            "first commit, so one is a copy of the other",
            "make the store of each site by {create.like}, and count into it; or, if the store "
            "replaces the other one, remove the origin by {forget.origin} and merge again",
        )
