"""Recover the counts of shards whose content is gone, from other versions of the store.

After a rollback a version may count content that was replaced or deleted since. Subtracting it
needs no copy of that content, because the earlier subtraction stored its statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import summed
from streaming_moments.storage.log.commits import Lineage, SegmentReference
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, read_ledger
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.store.store import MomentStore

_AT_ONCE = 64  # segments whose records are read together


def recovered(
    store: MomentStore, records: Sequence[ShardRecord], run: Run
) -> dict[ShardRecord, Segment]:
    """Copy the counts of shards to new segments, each from a segment that holds this shard alone.

    Searches all stored versions, the latest first. `records` are those of the latest version.
    Shards that no segment of the same vocabulary holds alone are left out.
    """
    wanted = {record: _words_of(store, record) for record in records}
    found: dict[ShardRecord, Segment] = {}
    candidates, looked_at = _alone(store), 0
    while len(found) < len(wanted) and (parts := list(islice(candidates, _AT_ONCE))):
        ledger = read_ledger(store.folder, parts, Ledger({}))
        for part in parts:
            (record,) = ledger.records(part.id)
            if record not in found and wanted.get(record, ()) == (part.words,):
                found[record] = summed(store, [part], ledger, run)
        looked_at += len(parts)
        run.progress.advance("looking for counted content in other versions", looked_at, looked_at)
    return found


def _words_of(store: MomentStore, record: ShardRecord) -> tuple[int | None, ...]:
    """Words of the vocabulary that counted a shard, by which a version names its segments."""
    ledger, parts = store.ledger(), store.commit.segments
    return tuple(
        words
        for words in dict.fromkeys(part.words for part in parts)
        if ledger.of_segments([part for part in parts if part.words == words]).find(record.url)
    )


def _alone(store: MomentStore) -> Iterator[SegmentReference]:
    """Segments of one shard in any version, named as in the latest version."""
    head = store.commit.lineage
    words = {head.basis: None, **{era.basis: era.words for era in head.eras}}
    seen = set[str]()
    for commit in store.log():
        lineage = commit.lineage
        if _cut(lineage) != _cut(head):
            continue
        for part in commit.segments:
            basis = lineage.basis if part.words is None else lineage.era(part.words).basis
            if part.shards == 1 and part.id not in seen and basis in words:
                seen.add(part.id)
                # also a copy of what an origin counted
                yield replace(part, sign=1, words=words[basis], origin=None)


def _cut(lineage: Lineage) -> tuple[object, ...]:
    """Identity that two lineages share if their segments can be added up."""
    halves = lineage.halves, lineage.halves_by_content
    return lineage.kind, lineage.row_blocks, lineage.codocuments, halves
