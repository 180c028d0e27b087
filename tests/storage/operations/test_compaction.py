"""Compaction: the choice of segments, and their replacement by the sum."""

import dataclasses

import pytest

from streaming_moments.errors import BoundExceeded, StoreError
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.operations.compaction import (
    commit_compaction,
    compaction_groups,
    linked_groups,
    seal_sum,
    write_sum,
)
from streaming_moments.storage.operations.growth import grow
from streaming_moments.testing.small_store import (
    append,
    create,
    forget,
    record,
    summed,
    total,
)


def sizes(store, by="all"):
    groups = compaction_groups(store.commit.segments, store.ledger(), by)
    return [[part.shards * part.sign for part in group] for group in groups]


def test_segments_of_a_vocabulary_are_a_group_and_one_alone_is_none():
    store = append(append(create(), {"a": 1}), {"b": 2, "c": 3})
    assert sizes(store) == [[1, 2]]
    assert sizes(store, "day") == [[1, 2]], "without dates they are of one group"
    assert sizes(store.at(1)) == sizes(store.at(0)) == []
    grown = grow(store, ["steam"])
    assert sizes(grown) == [[1, 2]]


def test_what_is_taken_away_joins_the_groups_whose_shards_it_takes():
    store = append(append(append(create(), {"a": 1}), {"b": 2}), {"c": 3, "d": 4})
    store = forget(store, {"b": 2, "c": 3})
    segments = store.commit.segments
    linked = linked_groups(segments, store.ledger())
    assert [{part.shards * part.sign for part in group} for group in linked] == [{1}, {1, 2, -2}]
    assert {part.id for part in linked[0]} == {segments[0].id}
    assert linked_groups(segments[:1], store.ledger()) == ((segments[0],),)
    dates = [DateRange.from_json([f"2026-11-{day}"] * 2) for day in ("01", "02", "03", "04")]
    dated = [
        dataclasses.replace(part, dates=day) for part, day in zip(segments, dates, strict=True)
    ]
    [group] = compaction_groups(dated, store.ledger(), "day")
    assert {part.id for part in group} == {part.id for part in segments[1:]}
    months = compaction_groups(dated, store.ledger(), "month")
    assert [len(group) for group in months] == [4]


def test_the_sum_has_the_days_and_shards_of_all():
    store = append(append(create(), {"a": 1}), {"b": 2})
    first, second = (DateRange.from_json([day, day]) for day in ("2026-11-01", "2026-11-05"))
    sources, _ = summed(store)
    for dates, found in (
        ((first, second), DateRange(first.first, second.last)),
        ((first, None), None),
        ((None, None), None),
    ):
        dated = [
            dataclasses.replace(part, dates=day) for part, day in zip(sources, dates, strict=True)
        ]
        writer = store.new_segment()
        files = [
            file for index in range(store.row_blocks) for file in write_sum(writer, dated, index)
        ]
        ready = seal_sum(store, writer, files, dated, store.ledger())
        assert ready.reference.dates == found
        assert set(ready.shards) == {record("a", 1), record("b", 2)}
    with pytest.raises(StoreError):
        seal_sum(store, store.new_segment(), [])


def test_a_sum_takes_the_place_of_its_segments_and_of_no_others():
    store = append(append(create(), {"a": 1}), {"b": 2})
    sources, ready = summed(store)
    with pytest.raises(StoreError, match="lacks some of the 0 summed segments"):
        commit_compaction(store, [], ready)
    large = dataclasses.replace(ready.reference, largest=1 << 62)
    with pytest.raises(BoundExceeded):
        commit_compaction(store, sources, dataclasses.replace(ready, reference=large))
    later = append(store, {"c": 3})
    other = dataclasses.replace(sources[0], sign=-1)
    with pytest.raises(
        StoreError, match=f"version {later.version} lacks some of the 2 summed segments"
    ):
        commit_compaction(store, [other, sources[1]], ready)
    left = commit_compaction(store, sources, ready, "nightly")
    assert (left.commit.operation, left.commit.message) == ("compact", "nightly")
    assert left.commit.segments[0].id == ready.reference.id
    assert left.load() == total([1, 2, 3])
    # of shards that went nothing is left
    nothing = commit_compaction(left, left.commit.segments[:1], None)
    assert nothing.load() == total([3])
