"""Levels: few segments are read after any number of commits, with equal results."""

import dataclasses
import hashlib
import shutil
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commit_json import commit_from_json, commit_to_json
from streaming_moments.storage.log.commits import SegmentReference, SegmentSum
from streaming_moments.storage.log.covering import (
    Summed,
    added,
    covered,
    reference_of,
    sums_among,
)
from streaming_moments.storage.log.layout import SHARDS
from streaming_moments.storage.log.ledger import (
    Ledger,
    ShardsAlreadyCounted,
    read_ledger,
    table_of,
)
from streaming_moments.storage.operations.compaction import (
    SegmentsChanged,
    commit_compaction,
    seal_sum,
    write_sum,
)
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import difference, rollback
from streaming_moments.storage.operations.levels import (
    level_of,
    parts_to_sum,
    segments_to_replace,
    sums_gone,
)
from streaming_moments.storage.operations.purges.traces import traces_of
from streaming_moments.storage.operations.windows import Window, WindowedStore
from streaming_moments.storage.store.garbage import find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    append,
    create,
    forget,
    purge,
    record,
    replace,
    sum_beside,
    total,
)

FIRST = date(2026, 1, 1)


def day(number):
    return FIRST + timedelta(days=number)


def counted(store, number, name=None):
    """Append a shard of one day to a store."""
    ready = store.write_segment(
        total([number]),
        [record(name or f"{number:03}", number)],
        DateRange(day(number), day(number)),
    )
    return store.append(ready)


def merged(store, after, by="day"):
    """Merge as an update does after counting, without a cluster."""
    while sources := segments_to_replace(store.commit.segments, store.ledger(), after, by):
        writer = store.new_segment()
        blocks = range(store.row_blocks)
        files = [file for index in blocks for file in write_sum(writer, sources, index)]
        ready = seal_sum(store, writer, files, sources) if len(own(store, sources)) else None
        store = commit_compaction(store, sources, ready)
    while parts := parts_to_sum(store.commit, after, by, sums_gone(store)):
        store = sum_beside(store, parts, sums_gone(store))
    return store


def own(store, sources):
    return store.ledger().of_segments(sources)


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Folders of a store that counts a day at a time, as it was after some numbers of days."""
    folder, found = tmp_path_factory.mktemp("grown"), {}
    store = create(folder / "store")
    for days in range(1, 31):
        store = merged(counted(store, days - 1), 3)
        if days in (4, 7, 9, 10, 12, 20, 30):
            found[days] = shutil.copytree(store.url, folder / str(days))
    return found


@pytest.fixture
def daily(grown, tmp_path):
    """Gives a copy of that store, to be changed."""

    def copied(days):
        return MomentStore.open(str(shutil.copytree(grown[days], tmp_path / "store")))

    return copied


def require(store, seeds):
    assert store.load() == total(seeds)
    assert store.totals() == total(seeds).totals
    assert set(store.ledger()) == {record(f"{number:03}", number) for number in seeds}


@pytest.mark.parametrize(("after", "days"), [(2, 24), (3, 30)])
def test_few_segments_are_read_after_any_number_of_days(after, days):
    store = create()
    levels = level_of(7 * days, after) + 1
    for number in range(days):
        store = merged(counted(store, number), after)
        assert len(store.commit.segments) == number + 1, "each day has its segment"
        # as many of each level as are not merged, and the latest day
        assert len(store.parts) <= (after - 1) * levels + 1
    require(store, range(days))
    assert store.verify() == []
    # none was summed more often than there are levels
    summed = Counter(part for one in store.commit.sums for part in one.of)
    assert set(summed.values()) == {1}
    depths = [depth(part) for part in store.parts]
    assert max(depths) <= levels
    assert sum(map(width, store.parts)) == days
    assert len([one for one in store.commit.sums if len(one.of) == after]) == len(store.commit.sums)


def depth(part):
    return 1 + max(map(depth, part.of)) if isinstance(part, Summed) else 0


def width(part):
    return sum(map(width, part.of)) if isinstance(part, Summed) else 1


def test_windows_are_those_of_the_days_and_read_sums_within_them(daily):
    store = daily(30)
    for since, until in ((0, 29), (3, 27), (5, 6), (12, 12), (1, 28)):
        window = Window(day(since), day(until))
        found = WindowedStore.of(store, window)
        blocks = [found.load_block(index) for index in range(store.row_blocks)]
        expected = total(range(since, until + 1))
        for block in blocks:
            for name, array in block.arrays().items():
                assert array.tolist() == expected.arrays()[name][block.block.rows].tolist()
        assert found.totals() == expected.totals
        assert len(found.ledger()) == until - since + 1
    half = WindowedStore.of(store, Window(half_life=4))
    plain = dataclasses.replace(store, commit=dataclasses.replace(store.commit, sums=()))
    other = WindowedStore.of(plain, Window(half_life=4))
    for index in range(store.row_blocks):
        one, two = half.load_block(index), other.load_block(index)
        assert one.pair_counts.tolist() == two.pair_counts.tolist()


def test_segments_of_one_day_are_replaced_and_those_of_days_gone_by_sooner():
    store = create()
    for name in range(5):
        store = merged(append_on(store, 0, name), 3)
    # 3 became one, and the other two wait for a third
    assert sorted(part.shards for part in store.commit.segments) == [1, 1, 3]
    assert store.commit.sums == ()
    store = merged(append_on(store, 1, 9), 3)
    assert sorted(part.shards for part in store.commit.segments) == [1, 2, 3]
    assert store.load() == total([*range(5), 9])
    # but not where there are few
    store = create()
    for name, number in enumerate((0, 0, 1)):
        store = merged(append_on(store, number, name), 4)
    assert len(store.commit.segments) == 3


def append_on(store, number, name):
    ready = store.write_segment(
        total([name]), [record(f"n{name}", name)], DateRange(day(number), day(number))
    )
    return store.append(ready)


def test_what_is_taken_away_is_folded_in_once_there_is_much():
    store = append(create(), {name: seed for seed, name in enumerate("abcdef")})
    for seed, name in enumerate("abcd"):
        store = merged(forget(store, {name: seed}), 4)
    assert len(store.commit.segments) <= 4
    assert store.load() == total([4, 5])
    assert store.verify() == []
    # a shard that is counted again is in no sum twice
    store = append(store, {"a": 0})
    store = merged(forget(store, {"a": 0}), 2)
    store = merged(append(store, {"a": 0}), 2)
    assert store.load() == total([0, 4, 5])
    assert {one.url for one in store.ledger()} == {"a", "e", "f"}


def test_what_was_forgotten_over_several_days_is_summed_apart_by_sign(daily):
    store = daily(12)
    seeds = set(range(12))
    for pair in ((0, 1), (4, 5), (6, 7), (2, 3), (8, 9)):
        store = forget(store, {f"{number:03}": number for number in pair})
        store = merged(store, 2)
        seeds -= {*pair}
        require(store, seeds)
    assert {one.sign for one in store.commit.live_sums} == {1, -1}
    assert store.verify() == []
    again = replace(store, {"010": 10}, {"010": 77})
    assert again.load() == total([11, 77])


def test_a_sum_that_is_gone_or_damaged_is_not_read_and_is_written_anew(daily):
    store = daily(10)
    top = max(store.parts, key=width)
    place = Path(store.url) / "segments" / top.reference.id
    chunk = next(
        path
        for path in (place / "pair_counts").rglob("*")
        if path.suffix != ".json" and path.is_file()
    )
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    require(MomentStore.open(store.url), range(10))
    problems = store.verify()
    assert len(problems) == 1
    assert "damaged" in problems[0]
    assert "Delete this folder" in problems[0]
    chunk.unlink()
    require(MomentStore.open(store.url), range(10))
    shutil.rmtree(place)
    again = MomentStore.open(store.url)
    require(again, range(10))
    assert all(top.reference.id in line for line in again.verify())
    assert sums_gone(again) == {top.reference.id}
    healed = merged(again, 3)
    assert len(healed.parts) == len(store.parts)
    assert sums_gone(healed) == frozenset()
    require(healed, range(10))
    assert healed.verify() == []
    # also one that another sum is made of
    inner = next(one for part in healed.parts if depth(part) > 1 for one in part.of)
    shutil.rmtree(Path(store.url) / "segments" / inner.reference.id)
    assert len(healed.verify()) == 1
    require(MomentStore.open(store.url), range(10))
    healed = merged(healed, 3)
    require(healed, range(10))
    assert healed.verify() == []
    # a day itself is not to be missed
    shutil.rmtree(Path(store.url) / "segments" / healed.commit.segments[0].id)
    assert healed.verify() != []
    with pytest.raises(StoreError):
        WindowedStore.of(healed, Window(day(0), day(0))).load_block(0)


def test_a_sum_of_other_segments_than_it_says_is_found_out(daily):
    store = daily(9)
    sums = store.commit.sums
    other = dataclasses.replace(sums[0], of=sums[1].of)
    forged = dataclasses.replace(store.commit, sums=(other,))
    found = dataclasses.replace(store, commit=forged).verify()
    assert any("is not the sum of its segments" in line for line in found)


def ledgers_read(store, monkeypatch):
    """The shards of a store that is opened anew, and the ledgers that are read for them."""
    read, find = [], Folder.find_all

    def finding(folder, names, limits=None):
        read.extend(name.split("/")[1] for name in names if name.endswith(SHARDS))
        return find(folder, names, limits)

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "find_all", finding)
        return list(MomentStore.open(store.url).ledger()), read


def test_as_few_ledgers_are_read_as_segments(daily, monkeypatch):
    store = daily(30)
    store = merged(forget(store, {"004": 4, "017": 17}), 3)
    shards, read = ledgers_read(store, monkeypatch)
    assert sorted(read) == sorted(reference_of(part).id for part in store.parts)
    assert len(read) < len(store.commit.segments) / 3
    # in the order of the segments, whatever sums they are read from
    assert shards == list(read_ledger(store.folder, store.commit.segments, Ledger({})))
    assert len(shards) == 28


def without_records(store, one):
    """The store where a sum has no records, as an earlier version of the package wrote it."""
    place = Path(store.url) / "segments" / one.id
    manifest = unseal((place / "manifest.json").read_bytes(), "")
    del manifest["files"][SHARDS]
    content = seal(manifest)
    (place / "manifest.json").write_bytes(content)
    (place / SHARDS).unlink()
    sums = [
        dataclasses.replace(own, manifest=hashlib.sha256(content).hexdigest())
        if own.id == one.id
        else own
        for own in store.commit.sums
    ]
    commit = store.commit.successor("compact", "", sums=tuple(sums))
    return store.extended(lambda head: commit)


def test_of_a_sum_without_records_those_of_what_it_is_made_of_are_read(daily, monkeypatch):
    store = daily(20)
    top = max(store.parts, key=width)
    bare = without_records(
        store, next(one for one in store.commit.sums if one.id == top.reference.id)
    )
    shards, read = ledgers_read(bare, monkeypatch)
    assert shards == list(store.ledger())
    assert {one.reference.id for one in top.of} <= {*read}
    assert top.reference.id not in read
    assert len(read) == len(store.parts) - 1 + len(top.of)
    assert bare.verify() == []
    healed = merged(counted(bare, 20), 3)
    require(healed, range(21))


@pytest.mark.parametrize("harm", ["gone", "damaged"])
def test_records_of_a_sum_that_are_gone_or_damaged_are_read_elsewhere(daily, harm):
    store = daily(10)
    top = max(store.parts, key=width)
    place = Path(store.url) / "segments" / top.reference.id / SHARDS
    if harm == "gone":
        place.unlink()
    else:
        place.write_bytes(place.read_bytes()[:-1] + b"?")
    again = MomentStore.open(store.url)
    require(again, range(10))
    [problem] = again.verify()
    assert "Delete this folder" in problem
    with pytest.raises(ShardsAlreadyCounted):
        counted(again, 3)


def test_a_sum_with_other_records_than_its_segments_is_found_out(daily):
    store = daily(4)
    [one] = store.commit.sums
    writer, parts = store.new_segment(), [added(part) for part in store.commit.segments[:3]]
    files = [file for index in range(store.row_blocks) for file in write_sum(writer, parts, index)]
    ledger = Ledger({part: table_of([record("forged", 7)]) for part in one.of})
    digest, _ = writer.seal_beside(total(range(3)).totals, ledger, files)
    forged = dataclasses.replace(one, id=writer.id, manifest=digest)
    commit = dataclasses.replace(store.commit, sums=(forged,))
    [problem] = dataclasses.replace(store, commit=commit).verify()
    assert "has records that differ from its segments" in problem


def test_of_two_writers_that_sum_the_same_one_is_told_that_the_other_came_first():
    store = create()
    for number in range(4):
        store = counted(store, number)
    parts = parts_to_sum(store.commit, 3)
    assert [reference_of(part).dates.first for part in parts] == [day(0), day(1), day(2)]
    first = sum_beside(store, parts)
    with pytest.raises(SegmentsChanged, match="another writer was faster"):
        sum_beside(store, parts)
    assert first.latest().version == first.version
    assert parts_to_sum(first.commit, 3) == ()
    # what was read before reads on, and an update between is no obstacle
    require(store, range(4))
    later = counted(first, 4)
    assert len(later.parts) == 3
    require(later, range(5))


def test_sums_of_segments_that_went_are_no_longer_named(daily, tmp_path):
    store = daily(9)
    held = [one for one in store.commit.sums if store.commit.segments[0].id in one.of]
    purged = purge(store, ["000"])
    assert not {one.id for one in held} & {one.id for one in purged.commit.sums}
    require(purged, range(1, 9))
    assert traces_of(purged.folder, {"000"}) == ()
    assert not any((tmp_path / "store" / "segments" / one.id).exists() for one in held)
    assert purged.verify() == []
    # a writer that knows no sums names them on: they are as if they were not there
    left = dataclasses.replace(purged.commit, sums=store.commit.sums)
    old = dataclasses.replace(purged, commit=left)
    assert {one.id for one in left.live_sums} == {one.id for one in purged.commit.sums}
    require(old, range(1, 9))


def test_going_back_and_expiring_keep_the_sums_of_what_is_kept(daily, tmp_path):
    store = daily(9)
    version = next(one.version for one in reversed(store.log()) if len(one.segments) == 6)
    back = rollback(counted(store, 20), version)
    require(back, range(6))
    assert back.commit.sums == store.at(version).commit.live_sums
    assert len(difference(back, version, back.version).added) == 0
    kept, dropped = expire(back, 1, timedelta(0))
    assert dropped.versions
    require(MomentStore.open(kept.url), range(6))
    assert kept.verify() == []
    assert find_garbage(kept.folder, timedelta(0)) == []
    named = {*(part.id for part in kept.commit.segments), *(one.id for one in kept.commit.sums)}
    assert {path.name for path in (tmp_path / "store" / "segments").iterdir()} == named


def test_segments_of_a_smaller_vocabulary_are_summed_apart(daily):
    store = grow(daily(7), ["steam"])
    assert len(store.parts) < 7
    words = {reference_of(part).words for part in store.parts}
    assert words == {4}
    assert store.load().word_counts[:4].tolist() == total(range(7)).word_counts.tolist()
    assert parts_to_sum(store.commit, 3) == ()
    assert store.verify() == []


def test_a_sum_holds_one_of_what_is_taken_away_twice():
    [one, two] = [SegmentReference(name * 32, "0" * 64, 1, 1, 1, 1) for name in "ab"]
    made = SegmentSum("c" * 32, "0" * 64, (one.id, two.id))
    found = covered([one, two, one], [made])
    assert sorted(reference_of(part).id[0] for part in found) == ["a", "c"]
    # nothing is held twice, whatever is named
    for sums in (
        [made, SegmentSum("d" * 32, "0" * 64, (one.id,))],
        [SegmentSum("d" * 32, "0" * 64, (one.id, one.id))],
        [SegmentSum("d" * 32, "0" * 64, ())],
        [SegmentSum("d" * 32, "0" * 64, (one.id, two.id), sign=-1)],
    ):
        assert sum(reference_of(part).documents for part in covered([one, two], sums)) == 2
    era = dataclasses.replace(two, words=3)
    assert covered([one, era], [made]) == (one, era)
    assert sums_among([one, two], [made])[0].of == (one, two)


def test_a_commit_keeps_what_later_versions_say_of_sums_and_refuses_what_is_none(daily):
    store = daily(4)
    content = commit_to_json(store.commit)
    content["sums"][0]["of a later version"] = {"x": [1]}
    assert commit_to_json(commit_from_json(content, "it")) == content
    assert "sums" not in commit_to_json(store.at(1).commit), "as it was before there were any"
    [first, *rest] = content["sums"]
    for wrong in ({"id": "../../outside"}, {"manifest": "0"}, {"of": ["../x"]}, {"sign": "1"}):
        with pytest.raises(StoreError, match="is not a valid commit"):
            commit_from_json({**content, "sums": [{**first, **wrong}, *rest]}, "it")
    # of no sign there are no segments
    odd = commit_from_json({**content, "sums": [{**first, "sign": 2}]}, "it")
    assert odd.live_sums == ()


def test_segments_of_many_days_that_end_alike_are_summed_too():
    store = create()
    for number in range(20):
        dates = DateRange(day(number), day(20))
        ready = store.write_segment(total([number]), [record(f"{number:03}", number)], dates)
        store = merged(store.append(ready), 3)
    assert len(store.commit.segments) == 20
    assert len(store.parts) <= 8
    require(store, range(20))


def test_undated_segments_beside_dated_ones_are_merged_among_themselves():
    store = create()
    for number in range(6):
        store = merged(counted(store, number), 3)
        store = merged(append(store, {f"u{number}": 50 + number}), 3)
    assert store.load() == total([*range(6), *range(50, 56)])
    assert len([part for part in store.commit.segments if part.dates is None]) < 6
    assert store.verify() == []
