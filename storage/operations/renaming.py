"""Renaming: gives moved shards their new names, so that an update does not count them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.files.parts import whole_of
from streaming_moments.storage.log.commits import Commit, SegmentReference
from streaming_moments.storage.log.forgotten import Forgotten
from streaming_moments.storage.log.ledger import Ledger, table_of
from streaming_moments.storage.operations.compaction import linked_groups, with_sum
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.store.changes import require_apart, require_own
from streaming_moments.storage.store.store import MomentStore

RENAME = "rename"


@dataclass(frozen=True)
class Renaming:
    """New names of counted shards, by the names under which they were counted.

    Examples
    --------
    >>> Renaming({"/before/a.txt": "/data/a.txt"}).name("/before/b.txt")
    '/before/b.txt'
    """

    names: Mapping[str, str]

    def name(self, url: str) -> str:
        """Return the new name of a shard; its old name if it is not renamed."""
        return self.names.get(url, url)

    def forgotten(self, listed: Forgotten) -> Forgotten:
        """Return the list of forgotten shards with their new names."""
        shards = (one._replace(url=self.name(one.url)) for one in listed.shards)
        return replace(listed, shards=tuple(sorted(shards)))


def names_after(urls: Iterable[str], old: str, new: str) -> dict[str, str]:
    """Return the new names of shards after a file or a folder was moved, by their old names.

    old, new : both are names of files, or both are names of folders with a slash at the end. The
        parts of a file, and everything below a folder, get new names, too.

    Examples
    --------
    >>> names_after(["/before/2026/a.txt", "/beforehand/a.txt"], "/before/", "/data/")
    {'/before/2026/a.txt': '/data/2026/a.txt'}
    >>> names_after(["/a.jsonl#bytes=120", "/a.jsonl.gz"], "/a.jsonl", "/b.jsonl")
    {'/a.jsonl#bytes=120': '/b.jsonl#bytes=120'}
    """
    found = urls if old.endswith("/") else (url for url in urls if whole_of(url) == old)
    return {url: f"{new}{url.removeprefix(old)}" for url in found if url.startswith(old)}


def segments_to_rename(
    store: MomentStore, renaming: Renaming
) -> list[tuple[SegmentReference, ...]]:
    """Return groups of segments to write again, because they count shards that get new names.

    Raises InvalidInput if a shard is already counted under a new name, or if an origin counted the
    shards to rename.
    """
    ledger = store.ledger()
    names = ledger.counted([*renaming.names])
    require_own(store.commit, ledger, names)
    after = [renaming.name(url) for url in names]
    away = set(names)
    if twice := [url for url in ledger.counted(after) if url not in away]:
        raise InvalidInput(
            f"a shard to be renamed {twice[0]} is already counted under this new name, so its "
            "documents are counted twice",
            "first subtract the shard under one of the two names, by {forget.allow_again}",
        )
    require_apart(ledger, after, away)
    mine = [part for part in store.commit.segments if part.origin is None]
    return [
        group
        for group in linked_groups(mine, ledger)
        if any(one.url in away for one in ledger.of_segments(group))
    ]


def renamed(ledger: Ledger, renaming: Renaming) -> Ledger:
    """Return a ledger in which each renamed shard has its new name."""
    tables = {
        name: table_of(
            replace(record, url=renaming.name(record.url)) for record in ledger.records(name)
        )
        for name in ledger.tables
    }
    return Ledger(tables, ledger.removed)


def commit_renaming(
    store: MomentStore,
    written: Sequence[tuple[Sequence[SegmentReference], Segment]],
    renaming: Renaming,
    message: str,
) -> MomentStore:
    """Replace each group of segments by a segment with the new names of its shards.

    All groups are replaced in one commit.

    Raises the errors of `commit_compaction`.
    """

    def change(head: Commit) -> Commit:
        after = head
        for sources, segment in written:
            after = replace(after, segments=with_sum(after, sources, segment))
        forgotten = renaming.forgotten(head.forgotten)
        return head.successor(RENAME, message, segments=after.segments, forgotten=forgotten)

    return store.extended(change, [segment.written for _, segment in written])
