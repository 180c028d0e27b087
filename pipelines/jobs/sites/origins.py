"""Origins of a hub: the stores merged into it, and whether they have changed since the merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from streaming_moments.errors import StreamingMomentsError
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit, Origin, SegmentReference
from streaming_moments.storage.store.store import MomentStore

_AT_ONCE = 8  # read this many stores at the same time


@dataclass(frozen=True)
class OriginState:
    """An origin: another store whose counts were merged into this store.

    name : name of the origin in this store
    url : URL at which the origin was read
    version, time : version of the origin that was merged, and its time, ISO 8601 in UTC
    documents, shards : numbers of documents and shards that come from the origin
    latest : latest version of the origin; None if it cannot be read
    behind : whether the origin now holds other documents; None if it cannot be read
    problem : why the origin cannot be read; empty if it can
    """

    name: str
    url: str
    version: int
    time: str
    documents: int
    shards: int
    latest: int | None = None
    behind: bool | None = None
    problem: str = ""


def origin_states(
    store: MomentStore, storage_options: Mapping[str, Any] | None = None
) -> tuple[OriginState, ...]:
    """Look up the state of every origin of a version; an unreadable origin raises no error."""
    origins = store.commit.origins
    if not origins:
        return ()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda one: _look(one, storage_options), origins.values())
        return tuple(
            _state(store.commit, name, origin, latest)
            for (name, origin), latest in zip(origins.items(), found, strict=True)
        )


def origin_rows(states: Sequence[OriginState]) -> list[tuple[str, str]]:
    """Format origins for people, a row each."""
    return [(f"origin {one.name}", _text(one)) for one in states]


def origins_as_json(states: Sequence[OriginState]) -> list[dict[str, Any]]:
    """Format origins for machines."""
    return [asdict(one) for one in states]


def _look(origin: Origin, storage_options: Mapping[str, Any] | None) -> Commit | str:
    """Return the latest commit of an origin, or why it cannot be read."""
    try:
        return CommitLog(Folder.at(origin.url, storage_options)).latest()
    except StreamingMomentsError as error:
        return str(error)


def _state(commit: Commit, name: str, origin: Origin, latest: Commit | str) -> OriginState:
    parts = [part for part in commit.segments if part.is_of(name)]
    known = OriginState(
        name,
        origin.url,
        origin.version,
        origin.time,
        sum(part.sign * part.documents for part in parts),
        sum(part.sign * part.shards for part in parts),
    )
    if isinstance(latest, str):
        return replace(known, problem=latest)
    behind = latest.version > origin.version and _counted(parts) != _counted(latest.segments)
    return replace(known, latest=latest.version, behind=behind)


def _counted(parts: Sequence[SegmentReference]) -> Counter[tuple[str, int]]:
    return Counter((part.manifest, part.sign) for part in parts)


def _text(state: OriginState) -> str:
    """Describe an origin.

    Examples
    --------
    >>> _text(OriginState("rome", "s3://rome/store", 7, "2026-11-26T03:00:00", 10, 1, 9, True))
    '10 documents in 1 shard, version 7 of 2026-11-26 at s3://rome/store; its latest version \
9 has other documents: merge it again'
    """
    told = (
        f"{of_number(state.documents, 'document')} in {of_number(state.shards, 'shard')}, "
        f"version {state.version} of {state.time[:10]} at {state.url}"
    )
    if state.problem:
        return f"{told}; it cannot be read ({state.problem})"
    more = f"; its latest version {state.latest} has other documents: merge it again"
    return f"{told}{more if state.behind else ''}"
