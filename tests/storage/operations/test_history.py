"""History: every change is a commit, exact, and can be undone exactly."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from streaming_moments.errors import BoundExceeded, ForeignStatistics, InvalidInput, StoreError
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.ledger import ShardsAlreadyCounted
from streaming_moments.storage.operations import forgetting
from streaming_moments.storage.operations.compaction import commit_compaction
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import counted_again, difference, rollback, tag
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    BASIS,
    append,
    compact,
    content,
    create,
    forget,
    model_of,
    record,
    replace,
    segment,
    summed,
    total,
)

NO_GRACE = timedelta(0)


@pytest.fixture
def store():
    return append(append(create(), {"a": 1, "b": 2}), {"c": 3})


def urls(store):
    return sorted(shard.url for shard in store.ledger())


def test_rollback_is_a_commit_that_names_the_old_list(store):
    store = store.save_model("m", model_of(0))
    back = rollback(store, 1)
    assert (back.version, back.commit.operation) == (4, "rollback")
    assert back.commit.message == "rollback to version 1"
    assert back.load() == total([1, 2])
    assert urls(back) == ["a", "b"]
    assert not back.models
    assert append(back, {"c": 4}).load() == total([1, 2, 4])
    forth = rollback(back, 3, "all of it again")
    assert forth.load() == total([1, 2, 3])
    assert [*forth.models] == ["m"]
    assert forth.at(2).load() == store.load()
    assert forth.verify() == []
    with pytest.raises(StoreError, match="no version 9; it has 0 to 6"):
        rollback(store, 9)


def test_rollback_from_a_stale_snapshot_goes_on_top_of_the_latest(store):
    append(store, {"d": 4})
    assert rollback(store.at(1), 1).version == 4


def test_what_a_stale_snapshot_would_refuse_the_latest_version_decides(store):
    append(store, {"d": 4})
    assert forget(store, {"d": 4}).load() == total([1, 2, 3])
    forget(store, {"c": 3})
    assert append(store, {"c": 5}).load() == total([1, 2, 5])


def test_tags_move_in_one_commit(store):
    store = store.save_model("may", model_of(0)).save_model("june", model_of(1))
    store = tag(store, "production", "may")
    assert (store.commit.operation, store.commit.message) == ("tag", "tag production: may")
    assert store.load_model("production").topics.tolist() == model_of(0).topics.tolist()
    moved = tag(tag(store, "next", "june"), "production", "next", "after review")
    assert dict(moved.commit.tags) == {"production": "june", "next": "june"}
    assert moved.commit.message == "after review"
    assert moved.at(store.version).load_model("production").topics[0, 0] == model_of(0).topics[0, 0]
    assert MomentStore.open(store.url).commit == moved.commit
    with pytest.raises(InvalidInput, match="'may' is the name of a model"):
        tag(store, "may", "june")
    with pytest.raises(StoreError, match="no model 'absent'; it has may, june, production, next"):
        tag(moved, "production", "absent")
    with pytest.raises(StoreError, match="'next' is a tag of model 'june'; choose a new name"):
        moved.save_model("next", model_of(2))
    with pytest.raises(InvalidInput, match="cannot be named"):
        tag(moved, "../up", "may")


def test_difference_names_documents_tokens_and_shards(store):
    store = replace(store, {"a": 1}, {"a": 5})
    store = append(store, {"d": 4})
    found = difference(store, 1, store.version)
    assert found.documents == 12
    assert found.tokens == store.commit.tokens - store.at(1).commit.tokens
    assert found.added == (record("a", 5), record("c", 3), record("d", 4))
    assert found.removed == (record("a", 1),)
    assert difference(store, store.version, 1).added == found.removed
    assert found.moved == {}


def test_difference_matches_the_topics_of_tagged_models(store):
    store = tag(store.save_model("one", model_of(0, 3)), "live", "one")
    before = store.version
    first = model_of(0, 3)
    order = dataclasses.replace(first, topics=first.topics[:, [2, 0]], weights=first.weights[:2])
    store = tag(store.save_model("two", order), "live", "two")
    moved = difference(store, before, store.version).moved["live"]
    assert (moved.before, moved.after) == ("one", "two")
    assert moved.pairs == ((0, 1, 0.0), (2, 0, 0.0))
    assert (moved.gone, moved.new) == ((1,), ())
    same = difference(store, before, store.version, "one").moved["one"]
    assert [distance for _, _, distance in same.pairs] == [0, 0, 0]
    with pytest.raises(StoreError, match="no model 'live' at version 1, nor any other"):
        difference(store, 1, store.version, "live")


def test_forgotten_documents_leave_what_would_be_there_had_they_never_come(store):
    after = forget(store, {"a": 1, "c": 3})
    assert after.load() == total([2])
    assert after.length_histogram() == content(2).length_histogram
    assert urls(after) == ["b"]
    assert (after.commit.documents, after.commit.shards) == (6, 1)
    assert MomentStore.open(store.url).ledger().find("a") is None
    assert after.verify() == []
    again = append(after, {"a": 9})
    assert again.load() == total([2, 9])
    assert again.ledger().find("a") == record("a", 9)
    empty = forget(forget(again, {"b": 2}), {"a": 9})
    assert empty.load() == MomentStatistics.zero(BASIS)
    assert len(empty.ledger()) == 0


def test_only_what_was_counted_can_be_forgotten(store):
    with pytest.raises(InvalidInput, match="d is not counted, so it cannot be subtracted"):
        forget(store, {"a": 1, "d": 4})
    with pytest.raises(InvalidInput, match="a was counted as sha256:1 and is now sha256:7; only"):
        forget(store, {"a": 7})
    other = dataclasses.replace(record("a", 1), documents=5)
    wrong = dataclasses.replace(segment(store, {"a": 1}), shards=(other,))
    with pytest.raises(InvalidInput, match="read it with the version"):
        commit_recount(store, Recount("forget", "", removed=(wrong,)))
    one = segment(store, {"a": 1})
    with pytest.raises(InvalidInput, match="given twice in one commit"):
        commit_recount(store, Recount("forget", "", removed=(one, segment(store, {"a": 1}))))
    assert store.latest().version == store.version
    gone = forget(store, {"a": 1})
    with pytest.raises(InvalidInput, match="a is not counted"):
        forget(gone, {"a": 1})


def test_no_count_falls_below_zero(store):
    """The ledger agrees but the statistics differ: a reader changed, or the ledger is wrong."""
    lie = dataclasses.replace(segment(store, {"a": 4}), shards=(record("a", 1),))
    with pytest.raises(InvalidInput, match="subtract only added documents"):
        commit_recount(store, Recount("forget", "", removed=(lie,)))
    excused = Recount("replace", "", (segment(store, {"a": 4}),), (lie,))
    with pytest.raises(InvalidInput, match="subtract only added documents"):
        commit_recount(store, excused)
    assert store.latest().version == store.version


def test_what_was_checked_before_a_conflict_is_checked_again_after_it(store):
    lie = dataclasses.replace(segment(store, {"a": 4}), shards=(record("a", 1),))
    recount = Recount("forget", "", removed=(lie,))
    taken = recount.references
    checked = (*store.commit.segments, *taken)
    assert commit_recount(store, recount, checked).version == 3, "vouched for by the caller"
    store = rollback(store, 2)
    compact(store)
    with pytest.raises(InvalidInput, match="subtract only added documents"):
        commit_recount(store, recount, checked)


def test_what_was_never_there_is_not_replaced(store):
    lie = dataclasses.replace(segment(store, {"a": 4}), shards=(record("a", 1),))
    before = store.latest().version
    with pytest.raises(InvalidInput, match="subtract only added documents"):
        commit_recount(store, Recount("replace", "", (segment(store, {"a": 5}),), (lie,)))
    assert store.latest().version == before


def test_a_negative_state_is_not_compacted(store):
    lie = dataclasses.replace(segment(store, {"a": 4}), shards=(record("a", 1),))
    recount = Recount("forget", "", removed=(lie,))
    checked = (*store.commit.segments, *recount.references)
    store = commit_recount(store, recount, checked)
    with pytest.raises(InvalidInput, match="subtract only added documents"):
        compact(store)
    assert store.latest().version == store.version


def test_a_negative_state_is_found_by_verify(store):
    lie = dataclasses.replace(segment(store, {"a": 4}), shards=(record("a", 1),))
    recount = Recount("forget", "", removed=(lie,))
    wrong = commit_recount(store, recount, (*store.commit.segments, *recount.references))
    assert any("subtract only added documents" in line for line in wrong.verify())
    extra = segment(store, {"x": 1}).reference
    taken = dataclasses.replace(extra, sign=-1)
    wrong = store.extended(lambda head: head.successor("?", "", segments=(taken,)))
    assert "shard x is subtracted but was not counted" in wrong.verify()


def test_a_changed_shard_is_replaced_in_one_commit(store):
    after = replace(store, {"b": 2}, {"b": 8})
    assert (after.version, after.commit.operation) == (3, "replace")
    assert after.load() == total([1, 8, 3])
    assert after.ledger().find("b") == record("b", 8)
    assert after.verify() == []
    with pytest.raises(ShardsAlreadyCounted):
        replace(after, {"a": 1}, {"c": 8})


def test_compaction_keeps_the_state_and_forgets_the_forgotten(store):
    store = forget(replace(store, {"b": 2}, {"b": 8}), {"c": 3})
    assert len(store.commit.segments) == 5
    after = compact(store)
    [reference] = after.commit.segments
    assert reference.sign == 1
    assert after.load() == store.load() == total([1, 8])
    assert set(after.ledger()) == {record("a", 1), record("b", 8)}
    assert len(after.ledger().tables[reference.id]) == 2
    assert (after.commit.documents, after.commit.tokens) == (12, store.commit.tokens)
    assert after.verify() == []
    assert after.at(2).load() == total([1, 2, 3])
    nothing = compact(forget(after, {"a": 1, "b": 8}))
    assert nothing.commit.segments == ()
    assert nothing.load() == MomentStatistics.zero(BASIS)


def test_a_compaction_replaces_exactly_what_it_summed(store):
    sources, ready = summed(store)
    store = forget(append(store, {"d": 4}), {"a": 1})
    after = commit_compaction(store, sources, ready)
    assert len(after.commit.segments) == 3
    assert after.load() == total([2, 3, 4])
    assert urls(after) == ["b", "c", "d"]
    with pytest.raises(StoreError, match="lacks some of the 2 summed segments"):
        commit_compaction(after, sources, ready)
    assert compact(after).load() == total([2, 3, 4])


def test_the_bound_of_compacted_segments_is_that_of_their_sum(store):
    with pytest.raises(ForeignStatistics):
        commit_compaction(
            store,
            store.commit.segments,
            dataclasses.replace(segment(store, {"a": 1}), basis="0" * 64),
        )
    large = segment(store, {"z": 1})
    large = dataclasses.replace(
        large, reference=dataclasses.replace(large.reference, largest=2**62)
    )
    with pytest.raises(BoundExceeded, match="run `streaming-moments compact`"):
        store.append(large)


def test_commits_with_impossible_signs_or_tags_are_refused(tmp_path):
    store = append(create(tmp_path / "store"), {"a": 1})
    path = Path(store.url) / "commits" / f"{1:020d}.json"
    whole = unseal(path.read_bytes(), "")
    zero = [{**whole["segments"][0], "sign": 0}]
    for wrong in ({"segments": zero}, {"tags": {"live": "absent"}}, {"tags": {"../x": "m"}}):
        path.write_bytes(seal({**whole, **wrong}))
        with pytest.raises(StoreError, match="is not a valid commit"):
            MomentStore.open(store.url)
    earlier = {key: value for key, value in whole.items() if key != "tags"}
    del earlier["segments"][0]["sign"]
    path.write_bytes(seal(earlier))
    assert MomentStore.open(store.url).load() == content(1)


def test_a_ledger_of_many_shards_nets_fast_enough_to_open(tmp_path):
    store = create(tmp_path / "store")
    template = dataclasses.replace(record("x", 1), documents=0, tokens=0)
    many = [dataclasses.replace(template, url=f"s3://bucket/{i}") for i in range(20_000)]
    store = store.append(store.write_segment(MomentStatistics.zero(BASIS), many))
    few = store.write_segment(MomentStatistics.zero(BASIS), many[::2])
    store = commit_recount(store, Recount("forget", "", removed=(few,)))
    opened = MomentStore.open(store.url)
    assert len(opened.ledger()) == 10_000
    assert opened.ledger().find("s3://bucket/0") is None
    assert np.all([opened.ledger().find(f"s3://bucket/{i}") == many[i] for i in (1, 19_999)])


def test_what_was_forgotten_is_listed_unless_the_version_gone_back_to_counts_it(store):
    def listed(version):
        return [one.url for one in version.commit.forgotten.shards]

    away = [segment(store, {"c": 3}), segment(store, {"a": 1, "b": 2})]
    one = commit_recount(store, Recount("forget", "", removed=(away[0],), lists=True))
    both = commit_recount(one, Recount("forget", "", removed=(away[1],), lists=True))
    assert (listed(one), listed(both)) == (["c"], ["a", "b", "c"])
    assert counted_again(both.commit, store.at(1)) == ("a", "b")
    assert counted_again(store.commit, both) == ()
    back = rollback(both, 1)
    assert back.commit.message == ("rollback to version 1; counted again: 2 forgotten shards")
    # c came later, and stays forgotten
    assert listed(back) == ["c"]
    # what the version lists itself stays so, too
    assert listed(rollback(back, both.version)) == ["a", "b", "c"]
    assert rollback(both, both.version).commit.message == f"rollback to version {both.version}"


def test_models_are_compared_that_both_versions_have_and_that_differ(store):
    begun, first = store.version, store.save_model("m", model_of(0))
    # another of the same name, after the store went back
    second = rollback(first, begun).save_model("m", model_of(1))
    assert difference(second, first.version, -1).moved.keys() == {"m"}
    assert difference(second, first.version, begun).moved == {}
    assert difference(second, begun, -1).moved == {}


def test_differences_of_the_latest_version_and_of_any_model(store):
    found = difference(store, 0, -1)
    assert (found.before, found.after, found.documents) == (0, store.version, 18)
    assert [one.url for one in found.added] == ["a", "b", "c"]
    assert difference(store, -1, 1).documents == -6
    store = store.save_model("clusters", clusters(2)).save_model("topics", model_of(0))
    store = tag(store, "live", "topics")
    before = store.version
    store = tag(store.save_model("wider", clusters(3)), "live", "wider")
    # topics and clusters are nothing to compare
    assert difference(store, before, store.version).moved == {}
    with pytest.raises(
        StoreError,
        match="the models named 'live' cannot be compared: they have neither topics or states over",
    ):
        difference(store, before, store.version, "live")
    store = tag(store.save_model("more", model_of(0, 3)), "live", "more")
    moved = difference(store, before, store.version).moved["live"]
    assert (moved.gone, len(moved.new), len(moved.pairs)) == ((), 1, 2)


def test_models_that_have_nothing_to_be_matched_are_told_so(store):
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    for name in ("first", "second"):
        factors = IndependentFactors(turn, turn, np.zeros(2))
        store = tag(store.save_model(name, factors), "live", name)
    before = store.version - 2
    assert difference(store, before, -1).moved == {}
    with pytest.raises(StoreError, match="model live has no topics, states or clusters to match"):
        difference(store, before, -1, "live")


def clusters(dimension):
    means = np.arange(2 * dimension, dtype=float).reshape(2, dimension)
    return GaussianMixture(means, np.full(2, 0.5), np.ones((2, 1)))


def test_a_count_is_checked_where_words_were_added_since(store):
    """A writer with the old vocabulary subtracts a segment with the old words."""
    lie = dataclasses.replace(segment(store, {"a": 4}), shards=(record("a", 1),))
    true = segment(store, {"a": 1})
    grow(store, ["steam"])
    with pytest.raises(InvalidInput, match="subtract only added documents"):
        commit_recount(store, Recount("forget", "", removed=(lie,)))
    assert commit_recount(store, Recount("forget", "", removed=(true,))).verify() == []


def test_what_another_counted_since_a_check_needs_none(store, monkeypatch):
    """Only added segments cannot make a non-negative sum negative."""
    read, asked = forgetting.require_non_negative, []

    def noted(*given):
        asked.append(given)
        read(*given)

    monkeypatch.setattr(forgetting, "require_non_negative", noted)
    recount = Recount("forget", "", removed=(segment(store, {"a": 1}),))
    checked = (*store.commit.segments, *recount.references)
    append(store, {"d": 4})
    left = commit_recount(store, recount, checked)
    assert (asked, urls(left)) == ([], ["b", "c", "d"])
    forget(left, {"b": 2})
    assert len(asked) == left.row_blocks
    # nothing is taken away
    assert commit_recount(left.latest(), Recount("append", "", (segment(left, {"e": 5}),)))
    assert len(asked) == left.row_blocks
