"""A sum of all days: it is read in place of the many parts that levels leave; equal results."""

import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_json import commit_to_json
from streaming_moments.storage.log.covering import Summed, covered, reference_of, without_whole
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.operations.compaction import SegmentsChanged
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.operations.levels import parts_of_whole, parts_to_sum, sums_gone
from streaming_moments.storage.operations.windows import Window, WindowedStore
from streaming_moments.storage.segments import blocks
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    create,
    forget,
    purge,
    record,
    sum_beside,
    total,
)

FIRST, AFTER = date(2026, 1, 1), 4


def day(number):
    return FIRST + timedelta(days=number)


def counted(store, number):
    """Append a shard of one day."""
    dates = DateRange(day(number), day(number))
    ready = store.write_segment(total([number]), [record(f"{number:03}", number)], dates)
    return store.append(ready)


def merged(store):
    """Sum as an update does after counting, without a cluster."""
    gone = sums_gone(store)
    while parts := parts_to_sum(store.commit, AFTER, gone=gone):
        store = sum_beside(store, parts, gone)
    while parts := parts_of_whole(store.commit, AFTER, gone=gone):
        store = sum_beside(store, parts, gone, whole=True)
    return store


def daily(days, url=None):
    store = create(url)
    for number in range(days):
        store = merged(counted(store, number))
    return store


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Folder of a store of 23 days."""
    place = tmp_path_factory.mktemp("whole") / "store"
    daily(23, place)
    return place


@pytest.fixture
def store(stored, tmp_path):
    shutil.copytree(stored, tmp_path / "store")
    return MomentStore.open(str(tmp_path / "store"))


def whole_of(store):
    [one] = [one for one in store.commit.sums if one.whole]
    return one


def folder_of(store, one):
    return Path(store.url) / "segments" / one.id


def require(store, numbers):
    assert store.load() == total(numbers)
    assert store.totals() == total(numbers).totals
    assert set(store.ledger()) == {record(f"{number:03}", number) for number in numbers}


def test_a_bounded_number_of_parts_is_read_after_any_number_of_days():
    store = create()
    for number in range(40):
        store = merged(counted(store, number))
        # the sum of all days, one day less than the next sum of them needs, and the latest day
        assert len(store.parts) <= AFTER // 2 + 1
    require(store, range(40))
    assert store.verify() == []
    # the levels are as they would be without it, so windows read them
    levels = covered(store.commit.segments, without_whole(store.commit.sums))
    assert 1 < len(levels) <= 3 * (AFTER - 1) + 1
    assert len([one for one in store.commit.sums if one.whole]) == 1


def test_windows_read_the_sums_within_them(store):
    for since, until in ((0, 22), (0, 21), (3, 20), (12, 12)):
        found = WindowedStore.of(store, Window(day(since), day(until)))
        assert found.totals() == total(range(since, until + 1)).totals
        expected = total(range(since, until + 1)).pair_counts
        for block in found.load_blocks(range(store.row_blocks)):
            assert block.pair_counts.tolist() == expected[block.block.rows].tolist()


def test_small_segments_are_read_by_the_same_requests(store, monkeypatch):
    calls, read_all = [], Folder.read_all

    def counting(folder, names, limits=None):
        calls.append(len(names))
        return read_all(folder, names, limits)

    monkeypatch.setattr(Folder, "read_all", counting)
    indices, parts = range(store.row_blocks), len(store.parts)
    found = store.load_blocks(indices)
    # manifests, then files
    assert parts > 2
    assert calls == [parts, sum(calls[1:])]
    calls.clear()
    # of blocks that are smaller than the files of all parts, those of a part wait for the others
    monkeypatch.setattr(blocks, "_SMALL", 0)
    monkeypatch.setattr(SegmentLayout, "block_bytes", 1)
    assert store.load_blocks(indices) == found
    assert len(calls) == 1 + 2 * parts


def test_of_sums_that_are_read_together_a_damaged_one_alone_is_replaced(store):
    found, one = store.load(), whole_of(store)
    [path] = folder_of(store, one).glob("pair_counts/c.0.*")
    path.write_bytes(b"damaged" + path.read_bytes())
    assert store.load() == found
    path.unlink()
    assert store.load() == found


def test_blocks_that_are_read_at_once_are_those_that_are_read_one_by_one(store):
    indices = range(store.row_blocks)
    for halves in (True, False):
        each = [store.load_block(index, halves) for index in indices]
        assert store.load_blocks(indices, halves) == each
    fading = WindowedStore.of(store, Window(half_life=5))
    for one, index in zip(fading.load_blocks(indices), indices, strict=True):
        assert one.pair_counts.tolist() == fading.load_block(index).pair_counts.tolist()


@pytest.mark.parametrize("harm", ["gone", "damaged", "no manifest"])
def test_without_it_the_sums_of_levels_are_read_and_the_next_update_writes_it_anew(store, harm):
    place = folder_of(store, whole_of(store))
    if harm == "gone":
        shutil.rmtree(place)
    elif harm == "no manifest":
        (place / "manifest.json").unlink()
    else:
        content = (place / "zarr.json").read_bytes()
        (place / "zarr.json").write_bytes(content.replace(b"group", b"groop"))
    again = MomentStore.open(store.url)
    require(again, range(23))
    problems = again.verify()
    assert problems
    assert all(place.name in line and "Delete this folder" in line for line in problems)
    shutil.rmtree(place, ignore_errors=True)
    healed = merged(again)
    assert whole_of(healed).id != place.name
    require(healed, range(23))
    assert healed.verify() == []


def test_damage_to_a_sum_of_a_level_that_it_hides_is_named(store):
    hidden = [one for one in store.commit.sums if not one.whole]
    read = {reference_of(part).id for part in store.parts}
    assert not read & {one.id for one in hidden}
    shutil.rmtree(folder_of(store, hidden[0]))
    require(MomentStore.open(store.url), range(23))
    assert any(hidden[0].id in line for line in store.verify())
    healed = merged(store)
    assert healed.verify() == []
    require(healed, range(23))


def test_replaced_ones_are_garbage_and_no_version_misses_them(store):
    wholes = {one.id for commit in store.log() for one in commit.sums if one.whole}
    replaced = wholes - {whole_of(store).id}
    assert replaced
    garbage = find_garbage(store.folder, timedelta(0))
    assert {heap.path.rpartition("/")[2] for heap in garbage} == replaced
    assert find_garbage(store.folder) == []
    collect(store.folder, garbage)
    for commit in store.log():
        if commit.segments and len(commit.segments) % 7 == 0:
            earlier = store.at(commit.version)
            require(earlier, range(len(commit.segments)))
            assert earlier.verify() == []
    version = next(one.version for one in store.log() if len(one.segments) == 15)
    back = rollback(store, version)
    assert back.verify() == []
    assert not any(one.whole for one in back.commit.sums)
    require(merged(back), range(15))


def test_what_is_forgotten_or_purged_is_in_none(store):
    left = merged(forget(store, {"004": 4, "017": 17}))
    numbers = [number for number in range(23) if number not in (4, 17)]
    require(left, numbers)
    assert left.verify() == []
    purged = merged(purge(left, ["009"]))
    require(purged, [number for number in numbers if number != 9])
    assert purged.verify() == []
    assert find_garbage(purged.folder, timedelta(0)) == []


def test_it_is_made_of_the_one_before_and_of_the_days_since(store):
    later, number = store, 23
    while not (parts := parts_of_whole(later.commit, AFTER)):
        later, number = counted(later, number), number + 1
    before = whole_of(later)
    shutil.rmtree(folder_of(later, next(one for one in later.commit.sums if one.id in before.of)))
    made = sum_beside(later, parts, whole=True)
    require(made, range(number))
    assert whole_of(made).id != before.id


def test_of_two_writers_one_is_told_that_the_other_came_first(store):
    later, number = store, 23
    while not parts_to_sum(later.commit, AFTER):
        later, number = counted(later, number), number + 1
    parts = parts_of_whole(later.commit, 2)
    other = sum_beside(later, parts_to_sum(later.commit, AFTER))
    with pytest.raises(SegmentsChanged):
        sum_beside(later, parts, whole=True)
    require(other, range(number))


def test_days_of_a_smaller_vocabulary_have_one_of_their_own(store):
    grown = grow(store, ["steam"])
    assert merged(grown).commit.sums == grown.commit.sums
    words = {reference_of(part).words for part in grown.parts}
    assert words == {4}
    assert any(isinstance(part, Summed) for part in grown.parts)
    assert grown.load().word_counts[:4].tolist() == total(range(23)).word_counts.tolist()


def test_commits_without_one_are_written_as_before(store):
    told = [one.get("whole") for one in commit_to_json(store.commit)["sums"]]
    assert set(told) == {None, True}
    assert told.count(True) == 1


def test_a_day_itself_is_not_to_be_missed(store):
    shutil.rmtree(Path(store.url) / "segments" / store.commit.segments[-1].id)
    with pytest.raises(StoreError, match="is missing"):
        MomentStore.open(store.url)
