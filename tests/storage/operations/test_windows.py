"""Windows: the sum of the segments of some days equals a count of their shards."""

import uuid
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from forgery import resealed
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.statistics.counts.statistics import MomentStatistics, merge_blocks
from streaming_moments.statistics.counts.weighted import WeightedStatistics
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.operations.compaction import (
    commit_compaction,
    compaction_groups,
    seal_sum,
    write_sum,
)
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.windows import Window, WindowedStore, windowed
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    BASIS,
    VOCABULARY,
    append,
    compact,
    content,
    record,
    total,
)

FIRST = date(2026, 1, 25)


def day(number):
    return FIRST + timedelta(days=number)


def new_store():
    url = f"memory://windows/{uuid.uuid4().hex}"
    return MomentStore.create(url, VOCABULARY, None, BASIS, ShardFormat())


def segment(store, shards, days):
    """A sealed segment of shards, given as seeds by URL, with days."""
    records = [record(url, seed) for url, seed in shards.items()]
    return store.write_segment(total(shards.values()), records, days)


def grown(store, number, shards):
    return store.append(segment(store, shards, DateRange(day(number), day(number))))


def forgotten(store, number, shards):
    removed = (segment(store, shards, DateRange(day(number), day(number))),)
    return commit_recount(store, Recount("forget", "", removed=removed))


def compacted(store, by="day"):
    for sources in compaction_groups(store.commit.segments, store.ledger(), by):
        summed = None
        if len(store.ledger().of_segments(sources)):
            writer = store.new_segment()
            files = [f for i in range(store.row_blocks) for f in write_sum(writer, sources, i)]
            summed = seal_sum(store, writer, files, sources)
        store = commit_compaction(store, sources, summed)
    return store


def loaded(window):
    return merge_blocks([window.load_block(index) for index in range(window.row_blocks)])


def drawn_store(rng, steps):
    """A store after random appends, forgets and compactions, and its expected content."""
    store, held = new_store(), {}
    for number in range(steps):
        choice = rng.random()
        if choice < 0.2 and held:
            url = str(rng.choice([*held]))
            when, seed = held.pop(url)
            store = forgotten(store, when, {url: seed})
        elif choice < 0.35:
            store = compacted(store)
        else:
            when = int(rng.integers(12))
            new = {f"s{number}-{i}": 10 * number + i for i in range(int(rng.integers(1, 3)))}
            store = grown(store, when, new)
            held |= {url: (when, seed) for url, seed in new.items()}
    return store, held


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_a_window_is_what_counting_its_shards_gives_bit_for_bit(seed):
    rng = np.random.default_rng(seed)
    store, held = drawn_store(rng, 8)
    assert store.verify() == []
    first, last = sorted(int(x) for x in rng.integers(12, size=2))
    inside = {url: s for url, (when, s) in held.items() if first <= when <= last}
    wanted = Window(day(first), day(last))
    if not any(wanted.meets(part.dates) for part in store.commit.segments):
        with pytest.raises(InvalidInput, match="no document"):
            WindowedStore.of(store, wanted)
        assert not inside
        return
    window = WindowedStore.of(store, wanted)
    assert loaded(window) == total(inside.values())
    assert window.length_histogram() == total(inside.values()).length_histogram
    assert {shard.url for shard in window.ledger()} == inside.keys()


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 30))
@settings(max_examples=8)
def test_a_half_life_weighs_each_document_by_its_age(seed, half_life):
    rng = np.random.default_rng(seed)
    store, held = drawn_store(rng, 8)
    if not held:
        return
    window = WindowedStore.of(store, Window(until=day(20), half_life=half_life))
    weights = {url: 2 ** ((when - 20) / half_life) for url, (when, _) in held.items()}
    lengths = window.length_histogram()
    assert lengths.weight == pytest.approx(
        sum(weights[url] * content(s).n_documents for url, (_, s) in held.items())
    )
    assert lengths.n_documents == sum(content(s).n_documents for _, s in held.values())
    for index in range(store.row_blocks):
        block = window.load_block(index)
        assert isinstance(block, WeightedStatistics)
        rows = block.block.rows
        for name in ("word_counts", "pair_counts", "triple_sketch", "codocuments"):
            parts = [weights[u] * content(s).arrays()[name][rows] for u, (_, s) in held.items()]
            np.testing.assert_allclose(getattr(block, name), sum(parts), rtol=1e-12, atol=1e-9)


def test_compaction_keeps_days_apart_unless_asked():
    store = new_store()
    for number, when in enumerate([0, 0, 1, 1, 1, 40, 400]):
        store = grown(store, when, {f"s{number}": number})
    whole = store.load()
    by_day = compacted(store)
    assert sorted(str(part.dates) for part in by_day.commit.segments) == sorted(
        str(day(when)) for when in (0, 1, 40, 400)
    )
    assert compacted(by_day).version == by_day.version, "nothing is left to be done"
    by_year = compacted(by_day, "year")
    assert [part.shards for part in by_year.commit.segments] == [6, 1]
    assert by_year.commit.segments[0].dates == DateRange(day(0), day(40))
    one = compacted(by_year, "all")
    assert [str(part.dates) for part in one.commit.segments] == [f"{day(0)} to {day(400)}"]
    for version in (by_day, by_year, one):
        assert version.load() == whole
        assert version.verify() == []


def test_what_is_taken_away_goes_with_the_segment_that_holds_it():
    store = new_store()
    for number in range(4):
        store = grown(store, number, {f"s{number}": number})
    store = compacted(store, "month")
    store = forgotten(store, 2, {"s2": 2})
    store = grown(store, 2, {"s9": 9})
    with pytest.raises(InvalidInput, match=r"s2 was forgotten .* run `streaming-moments compact`"):
        WindowedStore.of(store, Window(half_life=3))
    store = compacted(store)
    assert store.load() == total([0, 1, 3, 9])
    assert [part.sign for part in store.commit.segments] == [1]
    WindowedStore.of(store, Window(half_life=3))


def test_a_window_that_cuts_a_segment_is_refused_with_the_remedy():
    store = new_store()
    days = DateRange(day(0), day(6))
    store = store.append(segment(store, {"week": 1}, days))
    early = store.version
    store = grown(store, 7, {"s": 2})
    cut = Window(day(3), day(7))
    with pytest.raises(InvalidInput, match=r"documents of 2026-01-25 to 2026-01-31, .*an earlier"):
        WindowedStore.of(store, cut)
    assert loaded(WindowedStore.of(store, Window(until=day(6)))) == content(1)
    assert loaded(WindowedStore.of(store, Window(since=day(7)))) == content(2)
    assert loaded(WindowedStore.of(store.at(early), Window(day(0), day(6)))) == content(1)


def test_segments_without_dates_have_no_window():
    store = append(grown(new_store(), 0, {"dated": 1}), {"undated": 2})
    with pytest.raises(InvalidInput, match=r"no dates, in 1 of 2 segments, .*--date-column"):
        WindowedStore.of(store, Window(since=day(0)))
    both = compact(store)
    assert [part.dates for part in both.commit.segments] == [None]
    assert compaction_groups(store.commit.segments, store.ledger()) == ()


def test_windows_that_are_none_are_refused():
    store = grown(new_store(), 3, {"s": 1})
    with pytest.raises(InvalidInput, match=r"no documents .* documents: 2026-01-28"):
        WindowedStore.of(store, Window(until=day(2)))
    with pytest.raises(InvalidInput, match="days with documents: none"):
        WindowedStore.of(new_store(), Window(until=day(2)))
    with pytest.raises(InvalidInput, match="before it begins"):
        Window(day(2), day(1))
    with pytest.raises(InvalidInput, match="half-life is 0"):
        Window(half_life=0)


def test_days_are_kept_in_manifest_and_commit_and_must_agree(tmp_path):
    store = MomentStore.create(str(tmp_path / "s"), VOCABULARY, None, BASIS, ShardFormat())
    store = grown(store, 0, {"s": 1})
    opened = MomentStore.open(store.url)
    assert opened.commit.segments[0].dates == DateRange(day(0), day(0))
    path = next((tmp_path / "s" / "commits").glob("*1.json"))
    assert '"dates":["2026-01-25","2026-01-25"]' in path.read_text().replace(" ", "")
    forged = opened.extended(
        lambda head: head.successor("forged", "", segments=(_later(head.segments[0]),))
    )
    [problem] = forged.verify()
    assert "days of its documents are 2026-01-25 in its manifest, 2026-01-26 in the" in problem


def _later(part):
    return replace(part, dates=DateRange(day(1), day(1)))


def test_a_damaged_range_of_days_is_no_commit(tmp_path):
    store = MomentStore.create(str(tmp_path / "s"), VOCABULARY, None, BASIS, ShardFormat())
    store = grown(store, 0, {"s": 1})
    path = next((tmp_path / "s" / "commits").glob("*1.json"))
    for dates in (["2026-01-26", "2026-01-25"], ["soon", "later"], "x", [1, 2], []):

        def forged(read, dates=dates):
            return {**read, "segments": [{**part, "dates": dates} for part in read["segments"]]}

        resealed(path, forged)
        with pytest.raises(StoreError, match="is not a valid commit"):
            MomentStore.open(store.url)


def test_weighted_sums_of_integers_are_the_sums():
    parts = [content(1), content(2)]
    ones = WeightedStatistics.of([(1.0, part) for part in parts])
    both = sum(parts, MomentStatistics.zero(BASIS))
    for name, array in both.arrays().items():
        assert np.array_equal(getattr(ones, name), array)
    lengths = both.length_histogram
    for name in ("C1", "C2", "C3", "n_documents", "weight"):
        assert getattr(ones.length_histogram, name) == getattr(lengths, name)
    assert ones.length_histogram.effective_documents == pytest.approx(lengths.effective_documents)


def test_a_segment_of_many_days_is_as_old_as_the_middle_of_them():
    store = new_store()
    days = DateRange(day(0), day(6))
    store = store.append(segment(store, {"week": 1}, days))
    half_life = 2.0
    window = WindowedStore.of(store, Window(until=day(7), half_life=half_life))
    # its middle is day 3, four days before the end: its first day is seven, its last one
    assert [weight for weight, _ in window.groups] == [2.0 ** (-4 / half_life)]
    assert window.length_histogram().weight == content(1).n_documents / 4


def test_a_window_holds_a_range_of_days_or_meets_it_as_each_of_its_days_does():
    bounds = [None, *map(day, range(5))]
    windows = [
        Window(since, until)
        for since in bounds
        for until in bounds
        if since is None or until is None or since <= until
    ]
    for window in windows:
        inside = {
            number
            for number in range(-1, 6)
            if (window.since is None or window.since <= day(number))
            and (window.until is None or day(number) <= window.until)
        }
        for first in range(5):
            for last in range(first, 5):
                days, own = DateRange(day(first), day(last)), {*range(first, last + 1)}
                assert window.holds(days) == (own <= inside)
                assert window.meets(days) == bool(own & inside)


def test_windows_are_told_apart_by_their_names():
    assert (Window().suffix, Window().is_everything) == ("", True)
    whole = Window(day(0), day(1), 2.5)
    assert (whole.suffix, whole.is_everything) == ("-from2026-01-25-to2026-01-26-half2.5", False)
    assert Window(until=day(0)).suffix == "-to2026-01-25"
    assert Window(half_life=1_000_000).suffix == "-half1e+06"
    assert Window(day(1), day(1)).suffix == "-from2026-01-26-to2026-01-26"


@pytest.mark.parametrize("half_life", [None, 3.0])
def test_a_window_says_of_its_store_what_a_fit_asks(half_life):
    store = grown(grown(grown(new_store(), 0, {"a": 1}), 3, {"b": 2}), 3, {"c": 3})
    window = windowed(store, Window(since=day(1), half_life=half_life))
    for name in ("basis", "row_blocks", "codocuments", "halves", "layout", "version"):
        assert getattr(window, name) == getattr(store, name)
    assert window.codocuments
    assert window.groups == ((1.0, store.commit.segments[1:]),)
    assert window.segments == store.commit.segments[1:]
    assert windowed(store, Window()) is store
    assert window.totals().whole.n_documents == 12
    assert {one.url for one in window.ledger()} == {"b", "c"}
    assert window.length_histogram().n_documents == 12
    block = window.load_block(0, halves=False)
    # all of them are of the last day
    wanted = (content(2) + content(3)).arrays()["pair_counts"][: block.pair_counts.shape[0]]
    np.testing.assert_array_equal(block.pair_counts, wanted)
    if half_life is None:
        assert window.load_block(0).even_pair_counts is not None
        assert block.even_pair_counts is None


def test_without_an_end_a_window_ends_on_its_last_day():
    store = grown(grown(new_store(), 0, {"a": 1}), 3, {"b": 2})
    window = WindowedStore.of(store, Window(half_life=3.0))
    assert [weight for weight, _ in window.groups] == [0.5, 1.0]
    assert [[part.id for part in own] for _, own in window.groups] == [
        [part.id] for part in store.commit.segments
    ]
