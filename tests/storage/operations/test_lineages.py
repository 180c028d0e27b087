"""Lineages: staged without an effect on readers, adopted in one commit."""

import pickle
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from streaming_moments.errors import BoundExceeded, ForeignStatistics, StoreError
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitConflict, CommitLog
from streaming_moments.storage.log.ledger import ShardsAlreadyCounted
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import last_published, rollback, tag
from streaming_moments.storage.operations.lineages import (
    LineageAstray,
    LineageBehind,
    adopt,
    give_up,
    stage,
    stage_segment,
    staged_store,
    states_compared,
    store_counting,
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
    create,
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
    with pytest.raises(ForeignStatistics, match="the segment has basis"):
        append(store, {"c": 3})


def test_shards_that_came_meanwhile_are_lacking(store):
    staged = aside(aside(begun(store), "a", 1), "b", 2)
    append(staged, {"c": 3})
    with pytest.raises(LineageBehind, match="not counted 1 shard of the store, such as c"):
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
    with pytest.raises(LineageAstray, match="a was forgotten or replaced"):
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
    with pytest.raises(StoreError, match="another rebase, or new words, came in between"):
        begun(store)
    adopted = adopt(aside(staged, "b", 2))
    with pytest.raises(StoreError, match="another rebase, or new words, came in between"):
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
    with pytest.raises(StoreError, match="never named another model than 'm0'"):
        last_published(store, "published")
    store = store.save_model("m3", model_of(3), tag=published_in(store))
    assert last_published(store, "published") == "m0"
    with pytest.raises(StoreError, match="has no tag 'live'; it has published$"):
        last_published(store, "live")
    with pytest.raises(StoreError, match="version 0 has no tag 'live'; it has none$"):
        last_published(store.at(0), "live")


def published_in(store):
    return TagMove("published", store.commit.tags.get("published"))


def _old(url, seed):
    return content(seed), [record(url, seed)]


def test_of_a_lineage_aside_nothing_is_put_into_the_log():
    """A commit on top of the staged store would be version 0, which exists."""
    store = create()
    view = staged_store(begun(store))
    assert view.commit.staged is None
    with pytest.raises(CommitConflict):
        CommitLog(store.folder).put(view.commit.successor("append", "aside"))


def test_a_lineage_is_written_before_its_commit_and_says_what_it_keeps(store, monkeypatch):
    synced, sync = [], Folder.sync

    def noted(folder, name):
        synced.append(name)
        sync(folder, name)

    monkeypatch.setattr(Folder, "sync", noted)
    assert store.halves
    staged = begun(store).commit.staged
    assert synced[0] == ""
    assert (staged.lineage.halves, staged.segments, staged.lineage.eras) == (True, (), ())
    store = give_up(store.latest())
    apart = stage(store, WORDS, None, NEW, {}, halves=False)
    assert not apart.commit.staged.lineage.halves
    assert apart.commit.operation == "stage"
    with pytest.raises(StoreError, match="another rebase, or new words, came in between"):
        stage(store, WORDS, None, NEW, {})


def test_words_and_a_basis_of_others_are_not_begun():
    store = create()
    before = store.folder.files("")
    with pytest.raises(ForeignStatistics):
        stage(store, VOCABULARY, None, NEW, {})
    assert store.folder.files("") == before


def test_a_segment_aside_keeps_its_bound_and_halves(store):
    staged = begun(store)
    ready = staged_store(staged).write_segment(anew(1), [recorded("a", 1)])
    large = replace(ready, reference=replace(ready.reference, largest=1 << 62))
    with pytest.raises(BoundExceeded):
        stage_segment(staged, large)
    with pytest.raises(ForeignStatistics, match="separate sums of one half"):
        stage_segment(staged, replace(ready, halves=False))
    assert stage_segment(staged, ready, "first").commit.message == "first"


def test_shards_left_out_are_said_unless_they_were_counted(store):
    staged = aside(aside(begun(store), "a", 1), "b", 2)
    adopted = adopt(staged, {"a": "was bad", "x": "is gone"})
    assert adopted.commit.skipped == (("x", "is gone"),)


def test_a_model_is_read_with_the_words_that_the_store_had_then(store):
    model = replace(model_of(1), vocabulary=VOCABULARY.fingerprint)
    store = store.save_model("first", model)
    assert store_for(store, "first", model) is store
    assert vocabulary_of(store, model) is store.vocabulary
    grown = grow(store, ["moon"])
    # rows of words that came later are behind those of the model
    assert store_counting(grown, "first", model) is grown
    assert store_for(grown, "first", model).version == store.models["first"].version
    assert vocabulary_of(grown, model).terms == VOCABULARY.terms
    adopted = adopt(aside(aside(begun(grown), "a", 1), "b", 2))
    assert store_counting(adopted, "first", model).version == store.models["first"].version


def clusters(dimension, k=2):
    means = np.arange(k * dimension, dtype=float).reshape(k, dimension)
    return GaussianMixture(means, np.full(k, 1 / k), np.ones((k, 1)))


def test_only_models_of_one_kind_of_words_or_rows_are_compared(store):
    model = model_of(1, 3)
    turned = replace(model, topics=model.topics[:, [2, 0, 1]])

    def pairs(one, two):
        found = states_compared((store, one), (store, two))
        return None if found is None else [(pair.before, pair.after) for pair in found.kept]

    assert pairs(model, turned) == [(0, 1), (1, 2), (2, 0)]
    assert pairs(clusters(3), clusters(3)) == [(0, 0), (1, 1)]
    assert pairs(clusters(3), clusters(4)) is None
    assert pairs(clusters(4), model) is None
    assert pairs(model, clusters(4)) is None
    fewer = replace(model, topics=model.topics[:3])
    assert pairs(fewer, model) is None
    # of the old words in another order and with one more
    adopted = adopt(aside(aside(begun(store), "a", 1), "b", 2))
    later = replace(
        model_of(1, 3), topics=model.topics[[3, 1, 0, 0, 2]] * [[1], [1], [0], [1], [1]]
    )
    sides = (
        (adopted, replace(model, vocabulary=VOCABULARY.fingerprint)),
        (adopted, replace(later, vocabulary=WORDS.fingerprint)),
    )
    kept = states_compared(*sides).kept
    assert [(pair.before, pair.after) for pair in kept] == [(0, 0), (1, 1), (2, 2)]
    assert max(pair.distance for pair in kept) < 1e-12


def test_a_lineage_that_is_behind_says_so_in_another_process():
    behind = LineageBehind(urls=("a", "b"))
    again = pickle.loads(pickle.dumps(behind))
    assert (again.urls, str(again)) == (("a", "b"), str(behind))
    assert "has not counted 2 shards of the store, such as a; run" in str(again)
