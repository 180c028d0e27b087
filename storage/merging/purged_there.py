"""Purged there: shards that an origin has purged, which a pull purges here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit, SegmentReference
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.log.origins import name_in, name_there
from streaming_moments.storage.merging.sources import Source
from streaming_moments.storage.operations.purging import (
    holdings_of,
    ledger_of_all,
    planned_purge,
)
from streaming_moments.storage.store.store import MomentStore


def purge_of(
    store: MomentStore,
    head: Commit,
    sources: Sequence[Source],
    parts: Sequence[SegmentReference],
    known: Ledger,
) -> tuple[frozenset[str], dict[str, Any]]:
    """Names here of shards that origins have purged since, and what their purge changes here.

    As `purge`, it drops the versions that held them and the models that were fitted to these.
    `parts` are all segments of the new version, and `known` has their records.
    """
    since = [source for source in sources if _has_purged(head, source)]
    if not since:
        return frozenset(), {}
    log = CommitLog(store.folder).history(head.version)
    ledger = ledger_of_all(store.folder, log, known)
    names = frozenset(url for source in since for url in _gone(log, source, parts, ledger, known))
    if not names:
        return names, {}
    holdings = holdings_of(log, ledger, names)
    purge = planned_purge(head, holdings)
    return names, {
        "models": {name: one for name, one in head.models.items() if name not in purge.models},
        "tags": {name: one for name, one in head.tags.items() if name not in purge.tags},
        "expired": head.without(holdings.versions),
        "forgotten": head.forgotten.with_purged(names, holdings.shards),
    }


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
    """Return the names here, under all names of the origin so far, of what it has purged.

    Neither shards that were counted again since, nor those of others, which purge them first.
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


def _parts_of(commit: Commit, identity: str) -> list[SegmentReference]:
    """Return the segments of a store in a version, which may have another name for it."""
    names = [name for name, one in commit.origins.items() if one.id == identity]
    return [part for part in commit.segments if any(part.is_of(name) for name in names)]


def _name_at(origin: str, url: str) -> str:
    """Return the name in the ledger of the other store for a shard here."""
    _, _, within = origin.partition("/")
    name = name_there(origin, url)
    return name_in(within, name) if within else name
