"""Traces: finds data of shards in the folder of a store, before or after they are purged."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath

from streaming_moments.statistics.base import Foundation
from streaming_moments.storage.files.folders import Folder, StoredFile
from streaming_moments.storage.files.retries import retrying
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.layout import (
    COMMITS,
    FORMAT_FILE,
    MODELS,
    POLISHING,
    SEGMENTS,
    SHARDS,
    commit_file,
    reached_file,
)
from streaming_moments.storage.log.locks import LOCKS
from streaming_moments.storage.log.record_files import table_from_parquet
from streaming_moments.storage.operations.purges.purge_records import PURGING, purge_records
from streaming_moments.storage.operations.purges.purging import holdings_of, ledger_of_all
from streaming_moments.storage.store.garbage import (
    GarbageCommitted,
    collect,
    find_garbage,
    named_by,
    unswept,
)

_OWN = frozenset(
    {COMMITS, SEGMENTS, MODELS, POLISHING, PURGING, LOCKS, "vocabulary", "basis"}
    | {FORMAT_FILE, reached_file(), "clock"}
)
_AT_ONCE = 8  # the search for names in files holds at most this many files in memory at once
_OF_PAGE = re.compile(rb'<body data-version="(\d{1,18})">')

_OF_STORES = "the store of the origin, and stores that copied its counts or models fitted to them"
_BEYOND = (
    "the shards themselves: updates skip them by a keyed hash of their names and contents, but "
    "`update --include-forgotten` counts them; delete the files",
    "files written outside the folder of the store: proportions, reports, pages, metrics, "
    "exported models, logs",
    "copies of the store, backups and snapshots, earlier versions of objects in a bucket, deleted "
    "blocks of a disk that were not overwritten",
)


@dataclass(frozen=True)
class Trace:
    """Data of a purged shard that remains in a store.

    path : file or folder in the store
    what : the content of the file, or why it is unknown
    beside : whether the file does not belong to the store, such as a report in its folder
    """

    path: str
    what: str
    beside: bool = False

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


def beyond(foundation: Foundation, of_origin: bool = False) -> tuple[str, ...]:
    """Return the places where data of shards may remain, because a purge cannot delete it.

    The places depend on the foundation of the store. With `of_origin`, a whole origin is purged,
    not single shards.
    """
    others = (
        "`rebase` chooses others, and the old files stay"
        if foundation.can_rebase and not of_origin
        else "to choose others, create another store with `streaming-moments create`"
    )
    held = "they were chosen from a sample that may have held these documents"
    first = _OF_STORES if of_origin else _BEYOND[0]
    return f"{foundation.drawn}: {held}; {others}", first, *_BEYOND[1:]


def traces_of(
    folder: Folder, names: Set[str], marks: Set[tuple[str, int]] = frozenset()
) -> tuple[Trace, ...]:
    """Find all places in a store with data of some shards.

    Files with unknown content are included.

    Reads every commit, and the ledger of every segment, even if no version names it. Files
    that do not belong to the store are searched for the names, and for the numbers of deleted
    versions. `marks` has the fingerprint and size of the content of each shard that can still be
    read.

    Examples
    --------
    >>> from streaming_moments.testing.small_store import append, create
    >>> store = append(append(create(), {"a": 1}), {"b": 2})
    >>> [trace.path for trace in traces_of(store.folder, {"b"})]
    ['commits/00000000000000000002.json']
    """
    files = folder.files("")
    log = CommitLog(folder).history(CommitLog(folder).latest().version)
    return (
        *_in_versions(folder, log, names, marks),
        *_unnamed(folder, files, log, names, marks),
        *_unfinished(folder, names),
        *traces_beside(folder, files, log[0], names),
    )


def erase_unnamed(folder: Folder, names: Set[str]) -> tuple[str, ...]:
    """Delete files that no version names, and files that are not of the store but name the shards.

    Files that no version names are deleted at any age. They may belong to another writer that has
    not committed yet. The commit of this writer is then refused, with an error that says to run
    again. Files in the folder that are not of the store, such as a report, are deleted if they have
    traces of the shards. Returns the paths of these.
    """
    # retry if another writer has committed meanwhile
    again = retrying(lambda found: isinstance(found, GarbageCommitted), attempts=20, delay=0.0)
    again(lambda: collect(folder, find_garbage(folder, timedelta(0))))
    head = CommitLog(folder).latest()
    found = tuple(trace.path for trace in traces_beside(folder, folder.files(""), head, names))
    folder.delete(found)
    folder.sync("")
    return found


def _in_versions(
    folder: Folder, log: Sequence[Commit], names: Set[str], marks: Set[tuple[str, int]]
) -> Iterator[Trace]:
    holdings = holdings_of(log, ledger_of_all(folder, log), names, marks)
    for version in holdings.versions:
        yield Trace(commit_file(version), "is of a version that has some of them")
    for place in holdings.models:
        yield Trace(place, "is a model that was fitted to them, or to unknown documents")
    for url, name in holdings.copies:
        yield Trace(url, f"is counted, and has the content of {name}")


def _unnamed(
    folder: Folder,
    files: Sequence[StoredFile],
    log: Sequence[Commit],
    names: Set[str],
    marks: Set[tuple[str, int]],
) -> Iterator[Trace]:
    """Yield a trace for each file that no version names, if it may have data of the shards."""
    for path in unswept(folder, log[0]):
        yield Trace(path, "is the file of an expired version, and is not emptied yet")
    named, heaps = named_by(log), defaultdict[str, set[str]](set)
    for file in files:
        parts = PurePosixPath(file.path).parts
        if file.is_partial:
            yield Trace(file.path, "is a partial file with unknown content")
        elif parts[0] in (SEGMENTS, MODELS, POLISHING):
            depth = 3 if parts[0] == MODELS else 2
            heaps["/".join(parts[:depth])].add("/".join(parts[depth:]))
    for place, members in sorted(heaps.items()):
        if place in named:
            continue
        if not place.startswith(f"{SEGMENTS}/") or SHARDS not in members:
            yield Trace(place, "belongs to no version, and its documents are unknown")
            continue
        where = f"{place}/{SHARDS}"
        for row in table_from_parquet(folder.read(where), f"{folder.url}/{where}").to_pylist():
            if row["url"] in names or (row["fingerprint"], row["size"]) in marks:
                yield Trace(place, "has some of them, although it belongs to no version")
                break


def _unfinished(folder: Folder, names: Set[str]) -> Iterator[Trace]:
    """Yield a trace for each record of an interrupted purge that holds one of the names."""
    for path, found in sorted(purge_records(folder).items()):
        if not names.isdisjoint(found):
            yield Trace(path, "names them for a purge that is not finished; run the purge again")


def traces_beside(
    folder: Folder, files: Sequence[StoredFile], head: Commit, names: Set[str]
) -> Iterator[Trace]:
    """Yield a trace for each file beside the store that names one of the shards.

    Such a file is in the folder of the store, but does not belong to it.
    """
    others = [file.path for file in files if file.path.split("/")[0] not in _OWN]
    needles = {needle for name in names if "/" in name for needle in _spellings(name)}
    pages, told = dict[str, str](), set[str]()
    for start in range(0, len(others), _AT_ONCE):
        batch = others[start : start + _AT_ONCE]
        for path, content in zip(batch, folder.find_all(batch), strict=True):
            if content is None:
                continue
            version = _version_told(path, content)
            if any(needle in content for needle in needles):
                told.add(path)
                yield Trace(path, "names some of them", beside=True)
            elif version is not None and not head.keeps(version):
                what = f"describes version {version}, which has expired"
                told.add(path)
                yield Trace(path, what, beside=True)
                pages[path.removesuffix(".json") + ".html"] = what
    for path, what in pages.items():
        if path in others and path not in told:
            yield Trace(path, what, beside=True)


def _spellings(name: str) -> set[bytes]:
    """Return the bytes of a shard's name as it is written in text, JSON and HTML."""
    escaped = json.dumps(name)[1:-1]
    page = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    quoted = page.replace("'", "&#39;").replace('"', "&#34;")
    script = escaped
    for char in "<>&'":
        script = script.replace(char, f"\\u{ord(char):04x}")
    return {spelt.encode() for spelt in (name, escaped, page, quoted, script)}


def _version_told(path: str, content: bytes) -> int | None:
    """Return the version of the store that a report (JSON or HTML) describes; None otherwise."""
    if path.endswith(".html"):
        found = _OF_PAGE.search(content)
        return int(found[1]) if found else None
    if not path.endswith(".json"):
        return None
    try:
        report = json.loads(content)
    except ValueError:
        return None
    if not isinstance(report, Mapping) or "store" not in report:
        return None
    version = report.get("version")
    return version if isinstance(version, int) else None
