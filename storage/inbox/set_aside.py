"""Set aside: notes about sealed shards that the store cannot count yet.

Their documents are acknowledged and stay in their shards. A note says why a shard is not counted.
It is counted again on request, or after some of its documents were deleted.
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
    """A shard of an inbox that the store cannot count.

    documents : number of documents sealed in it
    gone : SHA-256 of the note about its deleted documents at the time when it was set aside; empty
        if there was no note
    retry : whether the next cycle of the service counts it again
    """

    path: Path
    documents: Count
    reason: str
    gone: str = ""
    retry: bool = False


_NOTE: TypeAdapter[SetAside] = TypeAdapter(SetAside)


def set_aside(folder: Folder, path: str, documents: int, reason: str) -> SetAside:
    """Record that a shard is set aside; repeating a call changes nothing.

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
    """Read the note of a shard; None if it is not set aside. StoreError if it is damaged."""
    name = set_aside_file(path)
    data, where = folder.find(name), f"{folder.url}/{name}"
    return (
        None
        if data is None
        else checked(_NOTE, unseal(data, where), f"{where} is not a valid note")
    )


def all_set_aside(folder: Folder) -> tuple[SetAside, ...]:
    """Read the notes of all shards set aside, in order of seals; StoreError if one is damaged."""
    found = []
    for name in sorted(folder.names(SET_ASIDE)):
        place = f"{SET_ASIDE}/{name}"
        data, where = folder.find(place), f"{folder.url}/{place}"
        if data is not None:
            found.append(checked(_NOTE, unseal(data, where), f"{where} is not a valid note"))
    return tuple(found)


def is_due(folder: Folder, note: SetAside) -> bool:
    """Whether to count a shard again: on request, or after some of its documents were deleted."""
    return note.retry or note.gone != _gone(folder, note.path)


def retry(folder: Folder, paths: list[str]) -> None:
    """Let the service count shards in its next cycle; InvalidInput if one is not set aside."""
    for path in paths:
        note = find_set_aside(folder, path)
        if note is None:
            raise InvalidInput(
                f"{path} is not set aside; `streaming-moments set-aside` shows the shards that are"
            )
        _write(folder, replace(note, retry=True))


def forget_set_aside(folder: Folder, path: str) -> None:
    """Delete the note that a shard is set aside."""
    if folder.exists(set_aside_file(path)):
        folder.delete([set_aside_file(path)])


def set_aside_file(path: str) -> str:
    """Return the name of the file that notes that a shard is set aside.

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
