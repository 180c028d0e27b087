"""Find new shards that are moved copies of counted shards, so that no document counts twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.listed.compare import fingerprints, looked_at
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import Remedy, remedy
from streaming_moments.storage.files.filesystems import open_file_system, shard_errors
from streaming_moments.storage.files.parts import SEALED_NAME, STANDARD_INPUT, whole_of
from streaming_moments.storage.files.urls import is_of_origin
from streaming_moments.storage.inbox.seals import are_of_other_batches
from streaming_moments.storage.log.content_marks import OF_CONTENT
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.shard_table import ShardTable
from streaming_moments.storage.shards import PARTITIONS


@dataclass(frozen=True)
class Moved:
    """A new shard with the file name and content of a counted shard whose file no longer exists.

    url : name of the new shard
    counted : name of the counted shard in the ledger
    """

    url: str
    counted: str

    @property
    def is_sealed(self) -> bool:
        """Whether a service has sealed the documents of the shard."""
        return self.url.endswith(SEALED_NAME)

    @property
    def error(self) -> ShardError:
        """Return the error of a shard that would count twice; `advice` says what to do."""
        if self.is_sealed:
            return ShardError(self.url, f"its documents are counted already, as {self.counted}")
        return ShardError(
            self.url, f"has moved: it is counted as {self.counted}, which no longer exists"
        )


def advice(moved: Sequence[Moved], store: str) -> list[Remedy]:
    """Say what to do about shards that have moved, a line for each pair of old and new folder."""
    told = []
    numbers = Counter(_places(one.counted, one.url) for one in moved if not one.is_sealed)
    for (old, new), number in sorted(numbers.items()):
        text = (
            "{shards} moved from {old} to {new}: run {rename} with {store} {old} {new}, or count "
            "the shards again by {update.include_moved}"
        )
        shards = of_number(number, "shard")
        told.append(remedy(text, shards=shards, old=old, new=new, store=store))
    if number := sum(one.is_sealed for one in moved):
        shards = of_number(number, "sealed shard")
        text = "the inbox with {shards} has moved: run `streaming-moments inbox assign` first"
        told.append(remedy(text, shards=shards))
    return told


def without_moved(
    ledger: Ledger, new: ShardTable, run: Run
) -> tuple[ShardTable, tuple[Moved, ...]]:
    """Return the new shards without moved copies of counted shards, and the moved ones.

    Only shards whose fingerprints identify their content are compared. Documents that a service has
    sealed are the same in any folder, even if the earlier file still exists. Such documents
    are different only if the seals are of different batches.
    """
    alike = _alike(ledger, new)
    if not alike:
        return new, ()
    gone = _gone(set().union(*alike.values()), run.storage_options)
    left = {place: gone & names for place, names in alike.items() if gone & names}
    candidates = new.take(np.array([*left], dtype=np.int64))
    marks = fingerprints(candidates, run)
    found = [
        (place, Moved(shard.url, url))
        for place, shard, mark in zip(left, candidates, marks, strict=True)
        for url in sorted(left[place])
        if (record := ledger.find(url)) is not None and record.fingerprint == mark
    ]
    others = _of_other_batches([one for _, one in found], run)
    moved = dict[int, Moved]()
    for place, one in found:
        if one not in others:
            moved.setdefault(place, one)
    kept = np.setdiff1d(np.arange(len(new)), np.array([*moved], dtype=np.int64))
    return new.take(kept), tuple(moved.values())


def refusal_of_moved(moved: Sequence[Moved], store: str) -> InvalidInput:
    """Return the error of an update that stops because shards have moved."""
    text = "{number} moved since {they} counted, and would be counted twice"
    have = "it was" if len(moved) == 1 else "they were"
    number = f"{of_number(len(moved), 'shard')} {'has' if len(moved) == 1 else 'have'}"
    return InvalidInput(remedy(text, number=number, they=have), *advice(moved, store))


def _alike(ledger: Ledger, new: ShardTable) -> dict[int, set[str]]:
    """Map the index of each new shard to counted shards with the same file name and size."""
    if not len(new) or not len(ledger):
        return {}
    table = ledger.table.select(["url", "size", "fingerprint"])
    # filter by size first, because few of many counted shards have the size of a new one
    table = table.filter(pc.is_in(table["size"], pa.array(np.unique(new.sizes))))
    table = table.filter(pc.match_substring_regex(table["fingerprint"], OF_CONTENT))
    known = defaultdict[tuple[str, int], set[str]](set)
    for url, size in zip(table["url"].to_pylist(), table["size"].to_pylist(), strict=True):
        if _is_file(url):
            known[_file_name(url), size].add(url)
    if not known:
        return {}
    names = map(_file_name, new.urls.to_pylist())
    keys = zip(names, new.sizes.tolist(), strict=True)
    return {place: known[key] for place, key in enumerate(keys) if key in known}


def _file_name(url: str) -> str:
    return url.rpartition("/")[2]


def _is_file(url: str) -> bool:
    """Whether a name of the ledger names a whole file in a folder that can be listed."""
    beginnings = (PARTITIONS, STANDARD_INPUT, "http://", "https://")
    named = url.startswith(beginnings) or url.endswith("/") or is_of_origin(url)
    return not named and whole_of(url) == url


def _gone(urls: set[str], storage_options: Mapping[str, object] | None) -> set[str]:
    """Return names of files that no longer exist, and of sealed shards; list each folder once."""
    sealed = {url for url in urls if url.endswith(SEALED_NAME)}
    folders = defaultdict[str, set[str]](set)
    for url in urls - sealed:
        folders[url.rpartition("/")[0]].add(url)
    gone = sealed
    for folder, held in folders.items():
        try:
            there = _names_in(folder, storage_options)
        except ShardError:
            # Shards in a folder that cannot be listed may still exist. So new shards with the same
            # content count as copies, not as moved shards.
            continue
        gone |= {url for url in held if _file_name(url) not in there}
    return gone


def _of_other_batches(moved: Sequence[Moved], run: Run) -> set[Moved]:
    """Return sealed shards that have not moved: another inbox has accepted equal documents."""
    sealed = [one for one in moved if one.is_sealed]
    pairs = [(one.url, one.counted) for one in sealed]
    found = looked_at(are_of_other_batches, pairs, 0, run)
    return {one for one, other in zip(sealed, found, strict=True) if other}


def _names_in(folder: str, storage_options: Mapping[str, object] | None) -> set[str]:
    fs, place = open_file_system(folder, storage_options)
    with shard_errors(folder, storage_options):
        try:
            return {_file_name(str(name)) for name in fs.ls(place, detail=False)}
        except FileNotFoundError:
            return set()


def _places(counted: str, url: str) -> tuple[str, str]:
    """Return the old and the new folder, without the end that both paths share.

    Examples
    --------
    >>> _places("/before/2026/a.txt", "/data/2026/a.txt")
    ('/before/', '/data/')
    """
    old, new = counted.split("/"), url.split("/")
    pairs = zip(reversed(old[:-1]), reversed(new[:-1]), strict=False)
    same = 1 + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    same = min(same, len(old) - 1, len(new) - 1)
    return "/".join(old[:-same]) + "/", "/".join(new[:-same]) + "/"
