"""Renaming: gives counted shards that have moved their new names, so that none counts twice."""

from __future__ import annotations

from collections.abc import Sequence
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
_SHOWN = 3


@dataclass(frozen=True)
class Renaming:
    """New names of counted shards that have moved.

    old, new : names of a file, or of two folders with a slash at the end. Parts of a file, and
        everything below a folder, move with it.

    Examples
    --------
    >>> renaming = Renaming("/before/", "/data/now/")
    >>> renaming.name("/before/2026/a.txt"), renaming.name("/beforehand/a.txt")
    ('/data/now/2026/a.txt', '/beforehand/a.txt')
    """

    old: str
    new: str

    def __post_init__(self) -> None:
        if self.old.endswith("/") != self.new.endswith("/"):
            raise InvalidInput(
                f"{self.old} and {self.new} are a file and a folder; give two files, or two "
                "folders, each with a slash at its end"
            )
        if self.old == self.new:
            raise InvalidInput(f"{self.old} is the old and the new name; give two names")

    def concerns(self, url: str) -> bool:
        """Whether a shard gets another name."""
        return url.startswith(self.old) if self.old.endswith("/") else whole_of(url) == self.old

    def name(self, url: str) -> str:
        """Return the name of a shard after the renaming."""
        return f"{self.new}{url[len(self.old) :]}" if self.concerns(url) else url

    def forgotten(self, listed: Forgotten) -> Forgotten:
        """Return the list of forgotten shards with their new names."""
        shards = (one._replace(url=self.name(one.url)) for one in listed.shards)
        return replace(listed, shards=tuple(sorted(shards)))


def segments_to_rename(
    store: MomentStore, renaming: Renaming
) -> list[tuple[SegmentReference, ...]]:
    """Group the segments that hold shards with new names, each group to be written again.

    Raises InvalidInput if no shard has such a name, if a new name is counted already, or if an
    origin counted the shards.
    """
    ledger = store.ledger()
    names = [one.url for one in ledger if renaming.concerns(one.url)]
    if not names and not any(renaming.concerns(one.url) for one in store.commit.forgotten.shards):
        raise InvalidInput(
            f"no counted shard is named {renaming.old}{'...' * renaming.old.endswith('/')}; "
            f"{_names_of(ledger)}"
        )
    require_own(store.commit, ledger, names)
    after = [renaming.name(url) for url in names]
    away = set(names)
    if twice := [url for url in ledger.counted(after) if url not in away]:
        raise InvalidInput(
            f"{twice[0]} is counted under this name as well, so its documents are counted twice",
            "subtract one of the two first by {forget.allow_again}",
        )
    require_apart(ledger, after, away)
    mine = [part for part in store.commit.segments if part.origin is None]
    return [
        group
        for group in linked_groups(mine, ledger)
        if any(renaming.concerns(one.url) for one in ledger.of_segments(group))
    ]


def renamed(ledger: Ledger, renaming: Renaming) -> Ledger:
    """Return the records of a ledger with their new names."""
    tables = {
        name: table_of(
            replace(record, url=renaming.name(record.url)) for record in ledger.records(name)
        )
        for name in ledger.tables
    }
    return Ledger(tables, ledger.removed)


def commit_renaming(
    store: MomentStore,
    sources: Sequence[SegmentReference],
    segment: Segment | None,
    renaming: Renaming,
    message: str,
) -> MomentStore:
    """Replace segments by their sum, whose shards have new names; errors as `commit_compaction`.

    Without segments only forgotten shards get their names.
    """

    def change(head: Commit) -> Commit:
        segments = with_sum(head, sources, segment) if sources else head.segments
        forgotten = renaming.forgotten(head.forgotten)
        return head.successor(RENAME, message, segments=segments, forgotten=forgotten)

    return store.extended(change, () if segment is None else (segment.written,))


def _names_of(ledger: Ledger) -> str:
    shown = [one.url for one, _ in zip(ledger, range(_SHOWN), strict=False)]
    return f"names are such as {', '.join(shown)}" if shown else "the store counts no shard"
