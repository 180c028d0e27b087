"""Purging: the parts of a store that a purge drops, and those that stay."""

import dataclasses
from datetime import timedelta

import pytest

from streaming_moments.errors import BoundExceeded, InvalidInput, StoreError
from streaming_moments.storage.log.forgotten import ForgottenShard
from streaming_moments.storage.log.ledger import Ledger, ShardRecord
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.operations.lineages import stage
from streaming_moments.storage.operations.purges.purging import (
    Holdings,
    Purge,
    Replacement,
    commit_purge,
    holdings_of,
    ledger_of_all,
    planned_purge,
    require_no_copies,
)
from streaming_moments.storage.store.changes import Recount
from streaming_moments.testing.small_store import (
    NEW,
    WORDS,
    append,
    aside,
    compact,
    content,
    create,
    forget,
    model_of,
    purge,
    segment,
    total,
)

ONE, TWO = (f"sha256:{digit * 64}" for digit in "ab")


def held(store, *names):
    log = store.log()
    return holdings_of(log, ledger_of_all(store.folder, log), set(names))


@pytest.fixture
def store(tmp_path):
    """Version 1 counts a, 2 has a model of it, 3 counts b, 4 has a model of both."""
    store = append(create(tmp_path / "store"), {"a": 1}).save_model("of-a", model_of(1))
    return append(store, {"b": 2}).save_model("of-both", model_of(2))


def test_a_model_goes_with_a_version_that_held_the_shard(store):
    found = held(store, "b")
    assert (found.versions, len(found.models), found.copies) == ((3, 4), 1, ())
    assert found.models[0].startswith("models/of-both/")


def test_a_model_of_a_version_that_is_no_longer_kept_goes_as_nobody_can_tell(store):
    store, _ = expire(store, 1, timedelta(0))
    # version 1, on which the first model was fitted, is not kept
    assert not store.commit.keeps(1)
    found = held(store, "b")
    assert sorted(one.split("/")[1] for one in found.models) == ["of-a", "of-both"]
    assert planned_purge(store.commit, found).models == ("of-a", "of-both")
    assert [*purge(store, {"b"}).models] == []


def test_tags_go_with_their_models_and_others_stay(store):
    store = tag(tag(store, "live", "of-both"), "old", "of-a")
    left = purge(store, {"b"})
    assert ([*left.models], left.commit.tags) == (["of-a"], {"old": "of-a"})
    assert left.load() == total([1])


def test_a_lineage_gathered_aside_goes_if_it_counts_the_shard(store):
    staged = stage(store, WORDS, None, NEW, {"seed": 0})
    kept = aside(staged, "a", 1)
    assert not planned_purge(kept.commit, held(kept, "b")).staged
    assert purge(kept, {"b"}).commit.staged == kept.commit.staged
    again = append(kept.latest(), {"c": 3})
    both = aside(again, "c", 3)
    assert planned_purge(both.commit, held(both, "c")).staged
    assert purge(both, {"c"}).commit.staged is None


def test_a_sum_above_the_bound_is_refused_and_nothing_is_dropped(store):
    anew = segment(store, {"a": 1})
    large = dataclasses.replace(anew.reference, largest=1 << 62)
    replaced = [Replacement(store.commit.segments, (dataclasses.replace(anew, reference=large),))]
    with pytest.raises(BoundExceeded):
        commit_purge(store, {"b"}, replaced)
    assert store.latest().version == 4


def test_segments_that_another_writer_has_changed_are_refused(store):
    stale = [Replacement(store.commit.segments[1:], ())]
    assert purge(store, {"b"}).load() == total([1])
    with pytest.raises(StoreError, match="another writer has changed the segments"):
        commit_purge(store, {"b"}, stale)
    other = append(store.latest(), {"c": 3})
    with pytest.raises(StoreError, match="another writer has changed the segments"):
        commit_purge(other, {"c"}, ())


@pytest.mark.parametrize(
    ("message", "reason", "tells"),
    [
        ("about b", "", True),
        ("took 'b', then c", "", True),
        ("about nothing", "", False),
        ("", "has the content of b; leave it out", True),
        ("", "was bad", False),
    ],
)
def test_a_commit_that_names_a_shard_goes(tmp_path, message, reason, tells):
    store = create(tmp_path / "store")
    store = store.append(None, message, [("x", reason)])
    store = append(store, {"b": 2})
    assert (1 in held(store, "b").versions) == tells


def test_a_name_with_a_folder_is_found_within_any_text(tmp_path):
    store = create(tmp_path / "store").append(None, "see(/corpus/b.txt)", [("x", "was bad")])
    assert held(append(store, {"/corpus/b.txt": 2}), "/corpus/b.txt").versions == (1, 2)


def test_a_shard_that_was_left_out_is_known_though_it_was_never_counted(tmp_path):
    store = create(tmp_path / "store").append(None, "", [("x", "was bad")])
    assert (held(store, "x").known, held(store, "x").versions) == ({"x"}, (1,))
    assert held(store, "y").known == frozenset()


@pytest.mark.parametrize(
    ("mark", "size", "copied"),
    [(ONE, 10, True), (ONE, 11, False), (TWO, 10, False)],
    ids=["same", "of another size", "of another content"],
)
def test_a_copy_has_the_fingerprint_and_the_size(tmp_path, mark, size, copied):
    store = create(tmp_path / "store")
    for url, seed, told in (("a", 1, (10, ONE)), ("b", 2, (size, mark)), ("c", 3, (10, TWO))):
        histogram = content(seed).length_histogram
        counts = (histogram.n_documents, histogram.n_tokens, 2)
        store = store.append_statistics(content(seed), [ShardRecord(url, *told, *counts)])
    found = held(store, "a")
    assert found.copies == ((("b", "a"),) if copied else ())
    if copied:
        with pytest.raises(InvalidInput, match="b has the content of a. Their documents"):
            require_no_copies(found)
    else:
        require_no_copies(found)
    # what is named is no copy of what is named
    assert held(store, "a", "b").copies == (() if mark == ONE else (("c", "b"),))


def test_a_message_that_names_the_shard_is_refused(store):
    with pytest.raises(InvalidInput, match="the message names a shard"):
        commit_purge(store, {"b"}, (), "b by request")


def test_a_commit_of_a_purge_names_no_shard_and_lists_what_went(store):
    left = purge(store, {"b"})
    assert (left.commit.operation, left.commit.message) == ("purge", "purge: 1 shard")
    assert left.commit.forgotten.has_purged("b")
    assert not left.commit.forgotten.has_purged("a")
    assert left.commit.kept == ((0, 2), (5, 5))


def test_models_of_versions_that_hold_a_model_which_goes_go_too(store):
    """A version with a model of the shard is dropped, and so are models fitted to that version."""
    store = append(store, {"c": 3}).save_model("later", model_of(3))
    found = held(store, "b")
    assert found.versions == (3, 4, 5, 6)
    assert [one.split("/")[1] for one in found.models] == ["later", "of-both"]
    assert found.known == {"b"}
    planned = planned_purge(tag(store, "live", "later").commit, found)
    assert planned == Purge(("b",), found.versions, ("later", "of-both"), ("live",), False)


def test_versions_that_name_a_model_which_goes_go_though_the_shard_was_forgotten_before(store):
    store = compact(forget(store, {"b": 2}))
    assert "b" not in {one.url for one in store.ledger()}
    store = store.save_model("later", model_of(3))
    found = held(store, "b")
    assert found.versions == (3, 4, 5, 6, 7)
    assert [one.split("/")[1] for one in found.models] == ["later", "of-both"]


def test_contents_that_are_known_beside_the_ledger_are_looked_for(tmp_path):
    store = create(tmp_path / "store")
    histogram = content(1).length_histogram
    record = ShardRecord("b", 10, ONE, histogram.n_documents, histogram.n_tokens, 2)
    store = store.append_statistics(content(1), [record])
    removed = (store.write_segment(content(1), [record]),)
    store = commit_recount(store, Recount("forget", "", removed=removed, lists=True))
    log = store.log()
    ledger = ledger_of_all(store.folder, log)
    found = holdings_of(log, ledger, {"x"}, {(ONE, 10)})
    # the list of what was forgotten tells the content
    assert (found.versions, found.copies) == ((2,), (("b", "a shard given"),))
    assert holdings_of(log, ledger, {"x"}, {(ONE, 11)}).versions == ()
    assert holdings_of(log, ledger, {"x"}, {("sha256:1", 10)}).versions == ()
    named = holdings_of(log, ledger, {"b"})
    assert (named.versions, named.shards) == ((1, 2), (ForgottenShard("b", ONE, 10),))
    # also where no segment holds it any more
    listed = holdings_of(log, Ledger({}), {"b"})
    assert (listed.versions, listed.shards) == ((2,), named.shards)


@pytest.mark.parametrize("copies", [5, 6, 7])
def test_the_first_copies_are_shown(copies):
    pairs = tuple((f"{number}.txt", "a") for number in range(copies))
    with pytest.raises(InvalidInput) as refused:
        require_no_copies(Holdings(frozenset("a"), {}, (), (), pairs))
    shown = "; ".join(f"{number}.txt has the content of a" for number in range(5))
    more = f"; and {copies - 5} more" if copies > 5 else ""
    assert str(refused.value).startswith(f"{shown}{more}. Their documents would remain")


def test_a_shard_with_a_copy_that_is_not_named_is_not_purged(tmp_path):
    store = create(tmp_path / "store")
    histogram = content(1).length_histogram
    for url in ("1.txt", "2.txt"):
        record = ShardRecord(url, 10, ONE, histogram.n_documents, histogram.n_tokens, 2)
        store = store.append_statistics(content(1), [record])
    first = [Replacement(store.commit.segments[:1], ())]
    with pytest.raises(InvalidInput, match="2.txt has the content of 1.txt"):
        commit_purge(store, {"1.txt"}, first)
    both = [Replacement(store.commit.segments, ())]
    left, purged = commit_purge(store, {"1.txt", "2.txt"}, both, "by request")
    assert (purged.shards, purged.versions, purged.staged) == (("1.txt", "2.txt"), (1, 2), False)
    assert (len(left.ledger()), left.commit.message) == (0, "by request")
