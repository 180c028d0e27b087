"""Purging: nothing of some shards is kept, in no version, no model and no file of the store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.errors import InvalidInput, StoreError
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
    """What the versions of a store hold of some shards.

    Parameters
    ----------
    names : frozenset of str
        The shards, as the ledger knows them.
    segments : mapping
        Arrow table of their records in each segment that has any, by its identifier.
    versions : tuple of int
        Versions that name such a segment, whether it is added or taken away, a model below, or
        a shard among those left out.
    models : tuple of str
        Folders of models that were fitted on one of these, or on a version that is no longer kept:
        of such a model nobody can tell.
    copies : tuple of (str, str)
        Shards of the same content under other names, each with one of the names.
    shards : tuple of ForgottenShard
        The shards with all contents that they were counted, or forgotten, with.
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
        """Those of the names that are found anywhere."""
        counted = (table["url"].to_pylist() for table in self.segments.values())
        return frozenset(chain.from_iterable(counted)) | self._told


@dataclass(frozen=True)
class Replacement:
    """Segments of a version, and what takes their place: the same shards, without some.

    Parameters
    ----------
    sources : tuple of SegmentReference
        Of the version.
    segments : tuple of Segment
        Written for it; none where no shard is left.
    """

    sources: tuple[SegmentReference, ...]
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Purge:
    """What a purge drops.

    Parameters
    ----------
    shards : tuple of str
        Names.
    versions : tuple of int
        Versions that are no longer kept.
    models, tags : tuple of str
        Of the latest version, that go.
    staged : bool
        Whether a lineage that was gathered aside goes.
    """

    shards: tuple[str, ...]
    versions: tuple[int, ...]
    models: tuple[str, ...]
    tags: tuple[str, ...]
    staged: bool


def ledger_of_all(folder: Folder, log: Iterable[Commit], known: Ledger = Ledger({})) -> Ledger:
    """Shards of all segments that some versions name; errors as `read_ledger`."""
    parts = {part.id: part for commit in log for part in _segments_of(commit)}
    return read_ledger(folder, list(parts.values()), known)


def holdings_of(
    log: Sequence[Commit],
    ledger: Ledger,
    names: Set[str],
    marks: Set[tuple[str, int]] = frozenset(),
) -> Holdings:
    """What versions hold of some shards.

    Parameters
    ----------
    log : sequence of Commit
        All versions that are kept.
    ledger : Ledger
        As `ledger_of_all` of them.
    names : set of str
        As the ledger has them.
    marks : set of (str, int)
        Fingerprints and sizes of their contents, where they are known beside the ledger.

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
    told = {commit.version: _told_by(commit, names) for commit in log}
    alike = {one for one in contents if tells_content(one[0])}
    gone = {
        commit.version
        for commit in log
        if told[commit.version]
        or any(part.id in held for part in _segments_of(commit))
        or any((one.fingerprint, one.size) in alike for one in commit.forgotten.shards)
    }
    models = set[str]()
    while (
        more := {
            model_folder(name, model.id)
            for commit in log
            for name, model in commit.models.items()
            # of what was fitted on a version that goes nobody could tell any more
            if model.version in gone or model.version not in told
        }
        - models
    ):
        models |= more
        gone |= {commit.version for commit in log if not models.isdisjoint(_models_of(commit))}
    return Holdings(
        frozenset(names),
        held,
        tuple(sorted(gone)),
        tuple(sorted(models)),
        _copies(ledger, names, contents),
        tuple(sorted(shards)),
        frozenset().union(*told.values()),
    )


def planned_purge(head: Commit, holdings: Holdings) -> Purge:
    """What goes of the latest version, and which versions go before it."""
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
    """Drop every version that holds anything of some shards, in one commit.

    The latest version goes on without them: its segments that hold any are replaced, models that
    were made with them are dropped, and a lineage gathered aside that counts them is given up. Of
    the shards it keeps keyed hashes alone, by which they are not counted again. `sweep` and
    `erase_unnamed` delete their files then.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    names : set of str
        Shards, as the ledger has them.
    replaced : sequence of Replacement
        For every segment of the latest version that has a record of them.
    message : str
        For the log; by default it says how many they are, and names none.
    known : Ledger
        What is known of the ledgers, which need not be read again.

    Raises
    ------
    InvalidInput
        The message names a shard; or a shard has a copy that is not named.
    StoreError
        Another writer has changed the segments meanwhile; or as `MomentStore.append`.
    """
    if any(name in message for name in names):
        raise InvalidInput("the message names a shard that is purged; write another")
    text = message or f"purge: {len(names)} shards"
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
                f"version {head.version} at the latest; run it again"
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


def require_no_copies(holdings: Holdings) -> None:
    """Refuse to purge shards whose content is kept under other names.

    Raises
    ------
    InvalidInput
        Names the first few.
    """
    if holdings.copies:
        lines = "; ".join(
            f"{other} has the content of {name}" for other, name in holdings.copies[:_SHOWN]
        )
        more = len(holdings.copies) - _SHOWN
        raise InvalidInput(
            f"{lines}{f'; and {more} more' if more > 0 else ''}: the same documents would stay; "
            "name these shards as well"
        )


def _segments_of(commit: Commit) -> tuple[SegmentReference, ...]:
    aside = () if commit.staged is None else commit.staged.segments
    return (*commit.segments, *aside)


def _models_of(commit: Commit) -> set[str]:
    return {model_folder(name, model.id) for name, model in commit.models.items()}


def _told_by(commit: Commit, names: Set[str]) -> frozenset[str]:
    """The names that a commit tells, of shards left out or forgotten, or in its message."""
    listed = {url for url, _ in commit.skipped} | {one.url for one in commit.forgotten.shards}
    text = " ".join([commit.message, *(reason for _, reason in commit.skipped)])
    words = set(re.split(r"[\s,;:'\"]+", text))
    said = {name for name in names if name in words or ("/" in name and name in text)}
    return frozenset(names & listed | said)


def _copies(
    ledger: Ledger, names: Set[str], contents: Set[tuple[str, int]]
) -> tuple[tuple[str, str], ...]:
    """Records of the same contents under other names, each with a name that is known of it."""
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
