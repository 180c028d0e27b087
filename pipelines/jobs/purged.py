"""Purged: what is left of shards that were purged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streaming_moments.errors import ShardError
from streaming_moments.storage.files.parts import first_byte
from streaming_moments.storage.files.patterns import names_among
from streaming_moments.storage.files.urls import is_signed
from streaming_moments.storage.inbox.purging import left_in_inboxes
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.content_marks import tells_content
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.operations.purging import ledger_of_all
from streaming_moments.storage.operations.traces import Trace, traces_of
from streaming_moments.storage.shards import Shard, files_of, fingerprint
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class PurgedShards:
    """What is left of shards that were purged.

    Parameters
    ----------
    names : tuple of str
        As the ledger had them.
    traces : tuple of Trace
        What is left, or cannot be told; none where nothing is.
    unread : tuple of str
        Shards that are not there any more, so that they were looked for by name alone.
    """

    names: tuple[str, ...]
    traces: tuple[Trace, ...]
    unread: tuple[str, ...]


def look_for_purged(
    store: MomentStore,
    shards: Sequence[str],
    storage_options: Mapping[str, object] | None = None,
) -> PurgedShards:
    """Look for all that a store's folder holds of some shards, by their names and contents.

    Raises
    ------
    StoreError
        The store cannot be read.
    """
    log = store.log()
    known = known_names(log, ledger_of_all(store.folder, log))
    names, marks, unread = set[str](), set[tuple[str, int]](), list[str]()
    for url in shards:
        for name in names_among(url, known, storage_options):
            names.add(name)
            if first_byte(name) is not None:
                unread.append(name)  # how long it was no file tells
                continue
            try:
                shard = Shard(name, 0, read_at=url if is_signed(url) else "")
                size = sum(state.size for state in files_of(shard, storage_options))
                marks.add((fingerprint(shard, storage_options), size))
            except ShardError:
                unread.append(name)
    traces = traces_of(store.folder, names, {mark for mark in marks if tells_content(mark[0])})
    inboxes = (Trace(*found) for found in left_in_inboxes(names, storage_options))
    return PurgedShards(tuple(sorted(names)), (*traces, *inboxes), tuple(sorted(unread)))


def known_names(log: Sequence[Commit], ledger: Ledger) -> set[str]:
    """All names that any version tells."""
    counted = {url for table in ledger.tables.values() for url in table["url"].to_pylist()}
    left_out = {url for commit in log for url, _ in commit.skipped}
    return counted | left_out | {one.url for commit in log for one in commit.forgotten.shards}
