"""Purging: removes all traces of some shards from every version, model and file of a store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.printing.plural import plural
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit, SegmentReference
from streaming_moments.storage.log.content_marks import tells_content
from streaming_moments.storage.log.forgotten import ForgottenShard
from streaming_moments.storage.log.layout import model_folder
from streaming_moments.storage.log.ledger import Ledger, read_ledger
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.store.changes import placed, require_bound
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 5


@dataclass(frozen=True)
class Holdings:
    """All data about some shards in the versions of a store.

    segments : Arrow tables with the records of these shards, by the identifier of the segment that
        has the records
    versions : versions with traces of a shard: a segment that adds or subtracts it, a model that
        was fitted to such a version, or an entry in the list of skipped shards
    models : folders of models that were fitted to one of these versions. Also folders of models
        whose documents are unknown: fitted to a missing version, or by another store.
    copies : (other name, name) of shards with the same content under other names
    shards : records of the shards. A name has one record for each content that was counted or
        forgotten under it.
    """

    names: frozenset[str]
    segments: dict[str, pa.Table]
    versions: tuple[int, ...]
    models: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]
    shards: tuple[ForgottenShard, ...] = ()
    _told: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def known(self) -> frozenset[str]:
        """Names of the given shards that occur in any version."""
        counted = (table["url"].to_pylist() for table in self.segments.values())
        return frozenset(chain.from_iterable(counted)) | self._told


@dataclass(frozen=True)
class Replacement:
    """Segments of a version, `sources`, and new `segments` that replace them without some shards.

    `segments` is empty if no shard remains.
    """

    sources: tuple[SegmentReference, ...]
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Purge:
    """Plan of a purge: what it drops from a store.

    versions : versions that are dropped
    models, tags : models and tags of the latest version that are dropped
    staged : whether the staged lineage is dropped
    """

    shards: tuple[str, ...]
    versions: tuple[int, ...]
    models: tuple[str, ...]
    tags: tuple[str, ...]
    staged: bool


def ledger_of_all(folder: Folder, log: Iterable[Commit], known: Ledger = Ledger({})) -> Ledger:
    """Return the records of all shards counted in some versions; raise errors of `read_ledger`."""
    parts = {part.id: part for commit in log for part in _segments_of(commit)}
    return read_ledger(folder, list(parts.values()), known)


def holdings_of(
    log: Sequence[Commit],
    ledger: Ledger,
    names: Set[str],
    marks: Set[tuple[str, int]] = frozenset(),
    dropped: Set[int] = frozenset(),
) -> Holdings:
    """Find all data about some shards in the versions of a store.

    `log` has all versions, and `ledger` is `ledger_of_all` of them. `names` are names of shards in
    this ledger. `marks` has fingerprint and size of further contents of these shards, which the
    ledger lacks. `dropped` are versions that are dropped in any case.

    Examples
    --------
    >>> from streaming_moments.testing.small_store import append, create, forget
    >>> store = forget(append(append(create(), {"a": 1}), {"b": 2}), {"b": 2})
    >>> log = store.log()
    >>> holdings_of(log, ledger_of_all(store.folder, log), {"b"}).versions
    (2, 3)
    """
    wanted = pa.array(sorted(names), pa.string())
    held = {
        one: found
        for one, table in ledger.tables.items()
        if (found := table.filter(pc.is_in(table["url"], wanted))).num_rows
    }
    shards = {
        ForgottenShard(row["url"], row["fingerprint"], row["size"])
        for table in held.values()
        for row in table.to_pylist()
    }
    listed = chain.from_iterable(commit.forgotten.shards for commit in log)
    shards |= {shard for shard in listed if shard.url in names}
    contents = marks | {(shard.fingerprint, shard.size) for shard in shards}
    told = {commit.version: _mentioned_shards(commit, names) for commit in log}
    alike = {one for one in contents if tells_content(one[0])}
    gone = {
        commit.version
        for commit in log
        if told[commit.version]
        or any(part.id in held for part in _segments_of(commit))
        or any((one.fingerprint, one.size) in alike for one in commit.forgotten.shards)
    }
    gone, models = with_models(log, gone | dropped)
    return Holdings(
        frozenset(names),
        held,
        tuple(sorted(gone)),
        tuple(sorted(models)),
        _copies(ledger, names, contents),
        tuple(sorted(shards)),
        frozenset().union(*told.values()),
    )


def with_models(log: Sequence[Commit], dropped: Set[int]) -> tuple[set[int], set[str]]:
    """Return all versions and models to drop if the versions in `dropped` are dropped.

    Models fitted to dropped versions are dropped, and so are all versions that have such models. A
    model is also dropped if its documents are unknown, because the version it was fitted to was
    dropped earlier, or another store fitted it.
    """
    gone, models, kept = set(dropped), set[str](), {commit.version for commit in log}
    while (
        more := {
            model_folder(name, model.id)
            for commit in log
            for name, model in commit.models.items()
            if model.version in gone or model.version not in kept or model.source is not None
        }
        - models
    ):
        models |= more
        gone |= {commit.version for commit in log if not models.isdisjoint(_models_of(commit))}
    return gone, models


def planned_purge(head: Commit, holdings: Holdings) -> Purge:
    """Plan which versions to drop, and which models, tags and staged lineage of the latest one."""
    gone = set(holdings.models)
    models = {name for name, one in head.models.items() if model_folder(name, one.id) in gone}
    staged = head.staged is not None and any(
        part.id in holdings.segments for part in head.staged.segments
    )
    tags = tuple(tag for tag, model in head.tags.items() if model in models)
    names = tuple(sorted(holdings.names))
    return Purge(names, holdings.versions, tuple(sorted(models)), tags, staged)


def commit_purge(
    store: MomentStore,
    names: Set[str],
    replaced: Sequence[Replacement] = (),
    message: str = "",
    known: Ledger = Ledger({}),
) -> tuple[MomentStore, Purge]:
    """Purge some shards: drop every version that holds traces of them, in one commit.

    This commit makes a new version without the shards. Segments with these shards are replaced.
    Models that were fitted to them are dropped, and so is a staged lineage that counts them. Only
    keyed hashes of the shards remain, so that they are not counted again. The caller then deletes
    the files of the dropped versions by `sweep` and `erase_unnamed`.

    `replaced` must include every segment of the latest version that has a record of these shards.
    Raises InvalidInput if the message names a shard, or if a shard has a copy under another name.
    Raises StoreError if another writer has changed the segments meanwhile.
    """
    if any(name in message for name in names):
        raise InvalidInput("the message names a shard to purge; write another message")
    text = message or f"purge: {len(names)} {plural(len(names), 'shard')}"
    added = [segment for one in replaced for segment in one.segments]
    sources = {(part.id, part.sign) for one in replaced for part in one.sources}
    done: list[Purge] = []

    def change(head: Commit) -> Commit:
        log = CommitLog(store.folder).history(head.version)
        holdings = holdings_of(log, ledger_of_all(store.folder, log, known), names)
        require_no_copies(holdings)
        kept = [part for part in head.segments if (part.id, part.sign) not in sources]
        present = len(head.segments) - len(kept) == len(sources)
        if not present or any(part.id in holdings.segments for part in kept):
            raise StoreError(
                f"another writer has changed the segments that hold the {len(names)} shards, in "
                f"version {head.version} or earlier; run this again"
            )
        segments = (*(placed(head.lineage, part).reference for part in added), *kept)
        require_bound(segments)
        purge = planned_purge(head, holdings)
        done.append(purge)
        return head.successor(
            "purge",
            text,
            segments=segments,
            models={name: one for name, one in head.models.items() if name not in purge.models},
            tags={name: one for name, one in head.tags.items() if name not in purge.tags},
            staged=None if purge.staged else head.staged,
            expired=head.without(holdings.versions),
            forgotten=head.forgotten.with_purged(names, holdings.shards),
        )

    store = store.extended(change, [segment.written for segment in added])
    return store, done[-1]


def require_no_origin(head: Commit, holdings: Holdings) -> None:
    """Refuse to purge shards of an origin, because only the origin's store can purge them."""
    for part in head.segments:
        if part.origin is not None and part.id in holdings.segments:
            [name, *_] = holdings.segments[part.id]["url"].to_pylist()
            raise InvalidInput(
                f"shard {name} was counted by origin {part.origin}",
                "purge it in that store, under its name in that store, then run {merge} again, "
                "which purges it here, too",
            )


def require_no_copies(holdings: Holdings) -> None:
    """Refuse to purge shards whose content is also counted under other names.

    The error lists the first few of these names.
    """
    if holdings.copies:
        lines = "; ".join(
            f"{other} has the content of {name}" for other, name in holdings.copies[:_SHOWN]
        )
        more = len(holdings.copies) - _SHOWN
        raise InvalidInput(
            f"{lines}{f'; and {more} more' if more > 0 else ''}. Their documents would remain; "
            "name these shards as well"
        )


def _segments_of(commit: Commit) -> tuple[SegmentReference, ...]:
    aside = () if commit.staged is None else commit.staged.segments
    return (*commit.segments, *aside)


def _models_of(commit: Commit) -> set[str]:
    return {model_folder(name, model.id) for name, model in commit.models.items()}


def _mentioned_shards(commit: Commit, names: Set[str]) -> frozenset[str]:
    """Return the given names of shards that a commit has in its message or in its lists.

    A commit lists skipped shards and forgotten shards.
    """
    listed = {url for url, _ in commit.skipped} | {one.url for one in commit.forgotten.shards}
    text = " ".join([commit.message, *(reason for _, reason in commit.skipped)])
    words = set(re.split(r"[\s,;:'\"]+", text))
    said = {name for name in names if name in words or ("/" in name and name in text)}
    return frozenset(names & listed | said)


def _copies(
    ledger: Ledger, names: Set[str], contents: Set[tuple[str, int]]
) -> tuple[tuple[str, str], ...]:
    """Find shards of a ledger with the same contents under other names.

    Returns (other name, name) pairs.
    """
    telling = {mark for mark, _ in contents if tells_content(mark)}
    if not telling:
        return ()
    own: dict[tuple[str, int], str] = {}
    other: dict[str, tuple[str, int]] = {}
    for table in ledger.tables.values():
        alike = table.filter(pc.is_in(table["fingerprint"], pa.array(sorted(telling), pa.string())))
        for row in alike.to_pylist():
            content = (row["fingerprint"], row["size"])
            if row["url"] in names:
                own.setdefault(content, row["url"])
            elif content in contents:
                other[row["url"]] = content
    return tuple(sorted((url, own.get(content, "a shard given")) for url, content in other.items()))
