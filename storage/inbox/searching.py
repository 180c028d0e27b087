"""Search: finds the shards that hold documents with some ids, in one pass over all shards.

One pass serves all pending deletions by id, for any number of ids. Its progress is saved, so a
killed process does not begin again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter
from pydantic_core import to_json

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import Seal, SealedShard
from streaming_moments.storage.log.schema import Count, Identity, Path, checked

SEARCHES = "deletion-searches.json"
_ID = re.compile(rb'"id":"([^"\\]*(?:\\.[^"\\]*)*)"')
# up to this many ids, a search for each of them is faster than reading the id of each line
_FEW = 16
_AT_ONCE, _SEALS_AT_ONCE = 64 << 20, 64  # at most this many bytes of shards, and seals, in memory
_NOTED = 64 << 20  # save the progress each time that this many bytes were searched


@dataclass(frozen=True)
class Search:
    """Progress of the search for the ids of a deletion.

    seal : number of the last seal whose shards were searched
    paths : paths in the inbox of the shards that hold one of the ids
    """

    seal: Count = 0
    paths: tuple[Path, ...] = ()


_SEARCHES: TypeAdapter[dict[str, Search]] = TypeAdapter(dict[Identity, Search])


def search(
    log: SealLog, wanted: Mapping[str, Sequence[str]], beat: Callable[[int, int], None]
) -> dict[str, tuple[str, ...]]:
    """Find the shards that hold documents with some ids, for several deletions at once.

    `wanted` maps the identity of a deletion to ids. `beat` is called after each shard, with the
    numbers of its seal and of the last seal. The inbox stores the progress.
    """
    folder, last = log.inbox.folder, log.latest()
    noted = read_searches(folder)
    found = {identity: noted.get(identity, Search()) for identity in wanted}
    ids = {identity: frozenset(map(_written, names)) for identity, names in wanted.items()}
    searched = min((one.seal for one in found.values()), default=last)
    begin = max(searched, log.expired()) + 1
    since = 0
    for sealed, contents in _contents(log, range(begin, last + 1)):
        behind = [identity for identity, one in found.items() if one.seal < sealed.number]
        everything = frozenset().union(*(ids[identity] for identity in behind))
        held: dict[str, tuple[str, ...]] = dict.fromkeys(behind, ())
        for shard, content in contents:
            there = frozenset() if content is None else ids_in(content, everything)
            for identity in behind:
                if not there.isdisjoint(ids[identity]):
                    held[identity] = (*held[identity], shard.path)
            since += shard.nbytes
            beat(sealed.number, last)
        for identity in behind:
            found[identity] = Search(sealed.number, (*found[identity].paths, *held[identity]))
        if since >= _NOTED:
            _write(folder, found)
            since = 0
    ended = {identity: Search(last, one.paths) for identity, one in found.items()}
    if ended != noted:
        _write(folder, ended)
    return {identity: one.paths for identity, one in found.items()}


def lines_with_ids(content: bytes, names: Iterable[str]) -> list[int]:
    r"""Return the numbers of those lines of a shard whose documents have one of some ids.

    Examples
    --------
    >>> lines_with_ids(b'{"text":"sea","id":"7"}\n{"text":"law","id":"8"}\n', ["8", "9"])
    [1]
    """
    wanted = frozenset(names)
    there = ids_in(content, frozenset(map(_written, wanted)))
    places = sorted(place for one in there for place in _places(content, b'"id":"%b"' % one))
    lines, line, begin = [], 0, 0
    for place in places:
        if passed := content.count(b"\n", begin, place):
            line += passed
            begin = content.rindex(b"\n", begin, place) + 1
        end = content.find(b"\n", place)
        # parse the line, because text that looks like an id may be part of another field
        document = json.loads(content[begin : end if end != -1 else None])
        if document.get("id") in wanted:
            lines.append(line)
    return sorted(set(lines))


def ids_in(content: bytes, ids: frozenset[bytes]) -> frozenset[bytes]:
    """Return which of some ids, encoded as in the lines, a shard may hold."""
    if len(ids) <= _FEW:
        return frozenset(one for one in ids if b'"id":"%b"' % one in content)
    return ids.intersection(_ID.findall(content))


def read_searches(folder: Folder) -> dict[str, Search]:
    """Read the saved progress of all searches, by the identity of their deletion."""
    data, where = folder.find(SEARCHES), f"{folder.url}/{SEARCHES}"
    if data is None:
        return {}
    return checked(_SEARCHES, unseal(data, where).get("searches"), f"{where} is invalid")


def drop_search(folder: Folder, identity: str) -> None:
    """Delete the progress of a search whose deletion is done."""
    noted = read_searches(folder)
    if noted.pop(identity, None) is None:
        return
    if noted:
        _write(folder, noted)
    else:
        folder.delete([SEARCHES])


def _write(folder: Folder, searches: Mapping[str, Search]) -> None:
    folder.write(SEARCHES, seal({"searches": _SEARCHES.dump_python(dict(searches), mode="json")}))


def _written(name: str) -> bytes:
    """Encode an id as `records` writes it to a line, but without quotation marks around it."""
    return to_json(name)[1:-1]


def _places(content: bytes, text: bytes) -> Iterator[int]:
    place = content.find(text)
    while place != -1:
        yield place
        place = content.find(text, place + len(text))


def _contents(
    log: SealLog, numbers: range
) -> Iterator[tuple[Seal, list[tuple[SealedShard, bytes | None]]]]:
    """Yield each seal with its shards and their bytes; None for a missing shard."""
    waiting, nbytes = list[Seal](), 0
    for sealed in log.each(numbers):
        own = sum(shard.nbytes for shard in sealed.shards)
        if waiting and (nbytes + own > _AT_ONCE or len(waiting) == _SEALS_AT_ONCE):
            yield from _fetched(log, waiting)
            waiting, nbytes = [], 0
        waiting, nbytes = [*waiting, sealed], nbytes + own
    yield from _fetched(log, waiting)


def _fetched(
    log: SealLog, seals: Sequence[Seal]
) -> Iterator[tuple[Seal, list[tuple[SealedShard, bytes | None]]]]:
    paths = [shard.path for sealed in seals for shard in sealed.shards]
    found = iter(log.inbox.folder.find_all(paths) if paths else [])
    for sealed in seals:
        yield sealed, [(shard, next(found)) for shard in sealed.shards]
