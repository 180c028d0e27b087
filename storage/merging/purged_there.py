"""Purged there: finds shards that an origin has purged, so that a pull also purges them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streaming_moments.printing.plural import of_number
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit, SegmentReference
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.log.origins import name_in, name_there
from streaming_moments.storage.merging.sources import Source
from streaming_moments.storage.operations.purges.purging import (
    holdings_of,
    ledger_of_all,
    planned_purge,
)
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class Purged:
    """What origins have purged since the last pull, and how to purge it from this store.

    shards : names that the purged shards have in this store
    stores : identifiers of stores that an origin of this store had merged, and has purged
    changes : fields of the commit that the purge changes
    """

    shards: frozenset[str] = frozenset()
    stores: frozenset[str] = frozenset()
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.shards or self.stores)

    def __str__(self) -> str:
        told = (len(self.shards), "shard"), (len(self.stores), "origin")
        return ", ".join(f"{of_number(number, what)} purged" for number, what in told if number)


def purge_of(
    store: MomentStore,
    head: Commit,
    sources: Sequence[Source],
    parts: Sequence[SegmentReference],
    known: Ledger,
) -> Purged:
    """Find the shards that origins have purged since the previous pulls, and plan their purge.

    Like `purge`, the plan drops the versions with these shards, and the models that were fitted to
    these versions. `parts` are all segments of the new version, and `known` has their records.
    """
    since = [source for source in sources if _has_purged(head, source)]
    if not since:
        return Purged()
    log = CommitLog(store.folder).history(head.version)
    ledger = ledger_of_all(store.folder, log, known)
    shards = frozenset(url for source in since for url in _gone(log, source, parts, ledger, known))
    withdrawn = [_withdrawn(log, source) for source in since]
    stores = frozenset(one for found in withdrawn for one in found)
    if not shards and not stores:
        return Purged()
    dropped = {version for found in withdrawn for held in found.values() for version in held}
    holdings = holdings_of(log, ledger, shards, dropped=dropped)
    purge = planned_purge(head, holdings)
    listed = head.forgotten.with_purged(shards, holdings.shards) if shards else head.forgotten
    changes = {
        "models": {name: one for name, one in head.models.items() if name not in purge.models},
        "tags": {name: one for name, one in head.tags.items() if name not in purge.tags},
        "expired": head.without(holdings.versions),
        "forgotten": listed.with_withdrawn(stores) if stores else listed,
    }
    return Purged(shards, stores, changes)


def _has_purged(head: Commit, source: Source) -> bool:
    before = head.origins.get(source.name)
    return bool(source.origin.purged) and (before is None or before.purged != source.origin.purged)


def _gone(
    log: Sequence[Commit],
    source: Source,
    parts: Sequence[SegmentReference],
    ledger: Ledger,
    known: Ledger,
) -> frozenset[str]:
    """Return the names in this store of shards that an origin has purged.

    In earlier versions, the origin may have had other names. Omits shards that the origin has
    counted again since. Also omits shards that came from another store, too: that store must
    purge the shards first.
    """
    forgotten = source.other.commit.forgotten
    held = {part.id: part for commit in log for part in _parts_of(commit, source.origin.id)}
    there = {
        url: name
        for part in held.values()
        if part.origin is not None
        for url in ledger.tables[part.id]["url"].to_pylist()
        if forgotten.has_purged(name := _name_at(part.origin, url))
    }
    if not there:
        return frozenset()
    again = set(source.other.ledger().counted([*there.values()]))
    rest = [part for part in parts if not part.is_of(source.name)]
    others = {url for part in rest for url in known.held(part.id, there)}
    return frozenset(url for url, name in there.items() if name not in again and url not in others)


def _withdrawn(log: Sequence[Commit], source: Source) -> dict[str, set[int]]:
    """For each origin that a source has purged, return the versions in `log` that hold it."""
    forgotten, found = source.other.commit.forgotten, defaultdict[str, set[int]](set)
    for commit in log:
        for one in commit.origins.values():
            if one.id == source.origin.id:
                for store in filter(forgotten.has_withdrawn, one.within):
                    found[store].add(commit.version)
    return found


def _parts_of(commit: Commit, identity: str) -> list[SegmentReference]:
    """Return the segments in a version that came from another store, under whatever name."""
    names = [name for name, one in commit.origins.items() if one.id == identity]
    return [part for part in commit.segments if any(part.is_of(name) for name in names)]


def _name_at(origin: str, url: str) -> str:
    """Return the name that a shard of this store has in the ledger of the other store."""
    _, _, within = origin.partition("/")
    name = name_there(origin, url)
    return name_in(within, name) if within else name
