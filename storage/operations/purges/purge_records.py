"""Purge records: store the names of purged shards until all files about them are deleted.

The commit of a purge holds only hashes of the names of its shards. If the process dies after this
commit, the next purge with the same patterns reads the names from the record, and finishes the
purge.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Set

from pydantic import TypeAdapter

from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.forgotten import Forgotten
from streaming_moments.storage.log.schema import checked

PURGING = "purging"
_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])


def begin_purge(folder: Folder, names: Set[str]) -> str:
    """Write the names of shards to a record before their purge is committed.

    Returns the path of the record.

    Examples
    --------
    >>> folder = Folder.at("memory://purge-records")
    >>> path = begin_purge(folder, {"/corpus/a.txt"})
    >>> purge_records(folder)[path] == {"/corpus/a.txt"}
    True
    >>> end_purges(folder, {"/corpus/a.txt", "/corpus/b.txt"})
    >>> purge_records(folder)
    {}
    """
    path = f"{PURGING}/{uuid.uuid4().hex}.json"
    create_once(folder, path, seal({"names": sorted(names)}))
    folder.sync(PURGING)
    return path


def purge_records(folder: Folder) -> Mapping[str, frozenset[str]]:
    """Return for each unfinished purge the path of its record and the names of its shards."""
    paths = [f"{PURGING}/{name}" for name in folder.names(PURGING) if name.endswith(".json")]
    found = zip(paths, folder.find_all(paths), strict=True) if paths else ()
    return {path: _names_in(data, folder, path) for path, data in found if data is not None}


def committed_names(folder: Folder, forgotten: Forgotten) -> frozenset[str]:
    """Return the names of shards whose purge was committed and is not finished.

    `forgotten` is the list of forgotten shards of the latest version. It has hashes of the names of
    all purged shards.
    """
    records = purge_records(folder).values()
    return frozenset().union(*(names for names in records if all(map(forgotten.has_purged, names))))


def end_purges(folder: Folder, names: Set[str]) -> None:
    """Delete the purge records that hold any of the names. This is the last step of a purge."""
    gone = [path for path, found in purge_records(folder).items() if not names.isdisjoint(found)]
    if gone:
        folder.delete(gone)
        folder.sync("")


def _names_in(data: bytes, folder: Folder, path: str) -> frozenset[str]:
    where = f"{folder.url}/{path}"
    content = unseal(data, where).get("names")
    names: tuple[str, ...] = checked(_NAMES, content, f"{where} is not a valid record of a purge")
    return frozenset(names)
