"""Lineages: gathered aside without a reader's notice, adopted in one commit."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streaming_moments.errors import ForeignStatistics, StoreError
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.storage.log.ledger import ShardsAlreadyCounted
from streaming_moments.storage.operations.history import last_published, rollback, tag
from streaming_moments.storage.operations.lineages import (
    LineageAstray,
    LineageBehind,
    adopt,
    give_up,
    stage,
    stage_segment,
    staged_store,
    store_for,
    vocabulary_of,
)
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.garbage import find_garbage
from streaming_moments.storage.store.model_changes import TagMove
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    BASIS,
    NEW,
    VOCABULARY,
    WORDS,
    anew,
    append,
    aside,
    compact,
    content,
    forget,
    model_of,
    record,
    recorded,
)

OTHER = Basis(NEW.matrix[::-1].copy(), 5, WORDS.fingerprint)


@pytest.fixture
def store(place):
    made = MomentStore.create(f"{place}/s", VOCABULARY, None, BASIS, ShardFormat())
    return append(append(made, {"a": 1}), {"b": 2})


def begun(store):
    return stage(store, WORDS, None, NEW, {"seed": 0}, "begin")


def test_what_is_staged_changes_nothing_for_readers_and_writers(store):
    before = store.load()
    staged = aside(begun(store), "a", 1)
    for opened in (staged, MomentStore.open(store.url)):
        assert opened.load() == before
        assert {shard.url for shard in opened.ledger()} == {"a", "b"}
        assert opened.vocabulary.terms == VOCABULARY.terms
        assert opened.verify() == []
    grown = append(staged, {"c": 3})
    assert len(grown.commit.staged.segments) == 1, "other commits carry it along"
    assert compact(grown).commit.staged == grown.commit.staged
    assert find_garbage(store.folder, timedelta(0)) == []


def test_one_commit_adopts_it_and_older_versions_stay_readable(store):
    old = store.load()
    store = store.save_model("first", model_of(1))
    staged = aside(aside(begun(store), "b", 2), "a", 1)
    adopted = adopt(staged, message="new words")
    for opened in (adopted, MomentStore.open(store.url)):
        assert opened.vocabulary.terms == WORDS.terms
        assert opened.load() == anew(1) + anew(2)
        assert (opened.commit.operation, opened.commit.staged) == ("rebase", None)
        assert opened.commit.lineage.pilot == {"seed": 0}
        assert opened.verify() == []
        assert opened.at(store.version).load() == old
        assert opened.at(store.version).vocabulary.terms == VOCABULARY.terms
        assert [*opened.models] == ["first"]
    back = rollback(adopted, store.version)
    assert (back.load(), back.basis) == (old, BASIS)
    assert append(back, {"c": 3}).verify() == []
    assert find_garbage(store.folder, timedelta(0)) == []


def test_the_old_words_are_no_longer_written(store):
    adopted = adopt(aside(aside(begun(store), "a", 1), "b", 2))
    assert adopted.version == store.version + 4
    with pytest.raises(ForeignStatistics, match="the segment is of basis"):
        append(store, {"c": 3})


def test_shards_that_came_meanwhile_are_lacking(store):
    staged = aside(aside(begun(store), "a", 1), "b", 2)
    append(staged, {"c": 3})
    with pytest.raises(LineageBehind, match="not counted 1 shards of the store, such as c"):
        adopt(staged)
    adopted = adopt(staged, {"c": "is gone"})
    assert adopted.commit.skipped == (("c", "is gone"),)
    assert {shard.url for shard in adopted.ledger()} == {"a", "b"}


@pytest.mark.parametrize("again", [False, True])
def test_shards_that_were_forgotten_meanwhile_are_not_adopted(store, again):
    staged = aside(aside(begun(store), "a", 1), "b", 2)
    gone = forget(staged, {"a": 1})
    if again:
        append(gone, {"a": 9})
    with pytest.raises(LineageAstray, match="a was forgotten, or replaced"):
        adopt(staged)
    assert store.latest().commit.lineage == store.commit.lineage


def test_a_shard_is_staged_once(store):
    staged = aside(begun(store), "a", 1)
    with pytest.raises(ShardsAlreadyCounted):
        aside(staged, "a", 1)
    with pytest.raises(ForeignStatistics, match="another rebase has begun"):
        stage_segment(staged, store.write_segment(*_old("b", 2)))
    with pytest.raises(StoreError, match="no staged lineage"):
        stage_segment(give_up(staged), store.write_segment(*_old("b", 2)))


def test_nothing_is_committed_through_what_is_aside(store):
    staged = aside(begun(store), "a", 1)
    view = staged_store(staged)
    segment = view.write_segment(anew(2), [recorded("b", 2)])
    with pytest.raises(ForeignStatistics):
        view.append(segment)
    assert store.latest().version == staged.version


def test_a_rebase_that_slept_takes_the_place_of_no_later_one(store):
    staged = aside(begun(store), "a", 1)
    with pytest.raises(StoreError, match="another rebase, or new words, came meanwhile"):
        begun(store)
    adopted = adopt(aside(staged, "b", 2))
    with pytest.raises(StoreError, match="another rebase, or new words, came meanwhile"):
        begun(store)
    for late in (adopt, give_up):
        with pytest.raises(StoreError, match="no staged lineage"):
            late(staged)
    # one that is known may be replaced
    other = stage(begun(adopted), WORDS, None, OTHER, {"seed": 1})
    assert other.commit.staged.lineage.basis == OTHER.fingerprint
    for late in (adopt, give_up):
        with pytest.raises(ForeignStatistics, match="another rebase has begun"):
            late(staged)
    assert other.latest().commit == other.commit
    assert give_up(other).commit.staged is None


def test_a_model_of_earlier_words_is_read_with_them(store):
    model = model_of(1)
    store = store.save_model("first", replace(model, vocabulary=VOCABULARY.fingerprint))
    adopted = adopt(aside(aside(begun(store), "a", 1), "b", 2))
    first = adopted.load_model("first")
    assert vocabulary_of(adopted, first).terms == VOCABULARY.terms
    assert store_for(adopted, "first", first).vocabulary.terms == VOCABULARY.terms
    assert store_for(adopted, "first", model).vocabulary.terms == WORDS.terms


def test_the_model_published_before_is_found_step_by_step(store):
    for number in range(3):
        store = store.save_model(f"m{number}", model_of(number), tag=published_in(store))
    assert store.commit.tags == {"published": "m2"}
    assert last_published(store, "published") == "m1"
    store = tag(store, "published", "m1")
    assert last_published(store, "published") == "m0"
    store = tag(store, "published", "m0")
    with pytest.raises(StoreError, match="stood for no model before 'm0'"):
        last_published(store, "published")
    store = store.save_model("m3", model_of(3), tag=published_in(store))
    assert last_published(store, "published") == "m0"
    with pytest.raises(StoreError, match="has no tag 'live'"):
        last_published(store, "live")


def published_in(store):
    return TagMove("published", store.commit.tags.get("published"))


def _old(url, seed):
    return content(seed), [record(url, seed)]
