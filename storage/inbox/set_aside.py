"""Set aside: sealed shards that cannot be counted as the store is, noted until they are counted.

Their documents are acknowledged and stay in their shards. A note says why a shard is not counted;
it is counted again when it is asked for, or when documents of it were deleted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.seals import gone_file, seal_of_shard
from streaming_moments.storage.log.schema import Count, Path, checked

SET_ASIDE = "set_aside"


@dataclass(frozen=True)
class SetAside:
    """A shard of an inbox that is set aside, as it cannot be counted.

    documents : how many were sealed in it
    gone : SHA-256 of the note of its deleted documents when it was set aside; empty without one
    retry : whether the next cycle counts it again
    """

    path: Path
    documents: Count
    reason: str
    gone: str = ""
    retry: bool = False


_NOTE: TypeAdapter[SetAside] = TypeAdapter(SetAside)


def set_aside(folder: Folder, path: str, documents: int, reason: str) -> SetAside:
    """Note that a shard is set aside; repeating a call changes nothing.

    Examples
    --------
    >>> folder, path = Folder.at("memory://set-aside-example"), "sealed/2026-11-23/7.sealed.jsonl"
    >>> _ = set_aside(folder, path, 12, "a sum could pass 2^62")
    >>> [(one.documents, is_due(folder, one)) for one in all_set_aside(folder)]
    [(12, False)]
    >>> retry(folder, [path])
    >>> [is_due(folder, one) for one in all_set_aside(folder)]
    [True]
    """
    note = SetAside(path, documents, reason, _gone(folder, path))
    _write(folder, note)
    return note


def find_set_aside(folder: Folder, path: str) -> SetAside | None:
    """The note of a shard; None where it is not set aside. Raises StoreError of a damaged one."""
    name = set_aside_file(path)
    data, where = folder.find(name), f"{folder.url}/{name}"
    return None if data is None else checked(_NOTE, unseal(data, where), f"{where} is no note")


def all_set_aside(folder: Folder) -> tuple[SetAside, ...]:
    """The notes of all shards that are set aside, by seal; raises as `find_set_aside`."""
    found = []
    for name in sorted(folder.names(SET_ASIDE)):
        place = f"{SET_ASIDE}/{name}"
        data, where = folder.find(place), f"{folder.url}/{place}"
        if data is not None:
            found.append(checked(_NOTE, unseal(data, where), f"{where} is no note"))
    return tuple(found)


def is_due(folder: Folder, note: SetAside) -> bool:
    """Whether a shard is to be counted again: by request, or as documents of it were deleted."""
    return note.retry or note.gone != _gone(folder, note.path)


def retry(folder: Folder, paths: list[str]) -> None:
    """Mark shards to be counted again in the next cycle; InvalidInput if one is not set aside."""
    for path in paths:
        note = find_set_aside(folder, path)
        if note is None:
            raise InvalidInput(
                f"{path} is not set aside; `streaming-moments set-aside` shows the shards that are"
            )
        _write(folder, replace(note, retry=True))


def forget_set_aside(folder: Folder, path: str) -> None:
    """Delete the note of a shard."""
    if folder.exists(set_aside_file(path)):
        folder.delete([set_aside_file(path)])


def set_aside_file(path: str) -> str:
    """Name of the note of a shard.

    Examples
    --------
    >>> set_aside_file("sealed/2026-11-23/00000000000000000007.sealed.jsonl")
    'set_aside/00000000000000000007-2026-11-23.json'
    """
    return f"{SET_ASIDE}/{seal_of_shard(path):020d}-{path.split('/')[-2]}.json"


def _write(folder: Folder, note: SetAside) -> None:
    folder.write(set_aside_file(note.path), seal(_NOTE.dump_python(note, mode="json")))


def _gone(folder: Folder, path: str) -> str:
    data = folder.find(gone_file(path))
    return "" if data is None else hashlib.sha256(data).hexdigest()
