"""Staleness: documents counted and forgotten after a fit, net for each shard."""

import uuid
from datetime import timedelta

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.history import rollback, tag
from streaming_moments.storage.operations.lineages import adopt, stage
from streaming_moments.storage.operations.staleness import (
    Staleness,
    forgotten_since,
    staleness,
)
from streaming_moments.storage.store.changes import Recount
from streaming_moments.testing.small_store import (
    BASIS,
    NEW,
    VOCABULARY,
    WORDS,
    append,
    aside,
    compact,
    create,
    forget,
    model_of,
)


def shard(store, url, documents, mark):
    """A sealed segment of one shard with documents of one word each."""
    batch = CountBatch.from_csr([[1, 0, 0, 0]] * documents, VOCABULARY.fingerprint)
    record = ShardRecord(url, 10, f"sha256:{mark}", documents, documents)
    return store.write_segment(MomentStatistics.of(batch, BASIS), [record])


def replaced(store, url, old, new):
    """Replace the content of a shard, given as number of documents and mark."""
    parts = (shard(store, url, *new),), (shard(store, url, *old),)
    return commit_recount(store, Recount("replace", "", *parts))


def since(store, model=None):
    found = staleness(store, model)
    return found.counted, found.forgotten, forgotten_since(store, model)


@pytest.fixture
def store():
    """A store with three documents, and a model of them, at version 1."""
    made = create(f"memory://{uuid.uuid4().hex}")
    return made.append(shard(made, "a", 3, 1)).save_model("m", model_of(0))


def test_a_model_is_stale_once_anything_changed_or_nobody_can_tell():
    changes = [(0, 0), (1, 0), (0, 1), (None, None)]
    assert [Staleness("m", 1, *one).is_stale for one in changes] == [False, True, True, True]


def test_documents_are_net_of_each_shard(store):
    assert staleness(store) == Staleness("m", 1, 0, 0)
    begun = store.version
    store = store.append(shard(store, "b", 5, 1))
    assert since(store) == (5, 0, 0)
    # a shard that came and went since is neither
    store = commit_recount(store, Recount("forget", "", removed=(shard(store, "b", 5, 1),)))
    assert since(store) == (0, 0, 5)
    store = replaced(store, "a", (3, 1), (7, 2))
    assert since(store) == (4, 0, 8)
    store = replaced(store, "a", (7, 2), (2, 3))
    assert since(store) == (0, 1, 15)
    # other content of as many documents
    store = replaced(store, "a", (2, 3), (3, 4))
    assert since(store) == (3, 3, 17)
    store = compact(store)
    assert since(store) == (3, 3, 17)
    # and the content that it was fitted on
    assert since(replaced(store, "a", (3, 4), (3, 1))) == (0, 0, 20)
    assert since(rollback(store, begun)) == (0, 0, 0)
    assert since(rollback(store, begun + 1)) == (5, 0, 0)
    with pytest.raises(StoreError, match="no model 'none'"):
        staleness(store, "none")


def test_documents_are_net_where_one_shard_came_and_another_went(store):
    store = store.append(shard(store, "b", 5, 1))
    store = commit_recount(store, Recount("forget", "", removed=(shard(store, "a", 3, 1),)))
    assert since(store) == (5, 3, 3)
    store = replaced(store, "b", (5, 1), (4, 2))
    assert since(store) == (4, 3, 8)


def test_documents_that_came_while_a_model_was_fitted_are_counted_since():
    store = create()
    fitted = store.append(shard(store, "a", 3, 1))
    fitted.append(shard(store, "b", 5, 1))
    store = fitted.save_model("late", model_of(1))
    assert (store.models["late"].version, since(store)) == (1, (5, 0, 0))
    store = commit_recount(store, Recount("forget", "", removed=(shard(store, "a", 3, 1),)))
    assert since(store) == (5, 3, 3)


def test_what_is_only_forgotten_or_comes_back_is_told(store):
    store = store.append(shard(store, "b", 5, 1)).save_model("late", model_of(1))
    store = tag(store, "live", "m")
    fitted = store.version
    store = commit_recount(store, Recount("forget", "", removed=(shard(store, "b", 5, 1),)))
    assert since(store) == (0, 5, 5)
    assert (since(store, "m"), since(store, "live")) == ((0, 0, 5), (0, 0, 5))
    assert staleness(store, "live").model == "m"
    assert since(rollback(store, fitted), "late") == (0, 0, 0)


def test_documents_of_a_segment_that_is_dropped_are_forgotten(store):
    store = compact(store.append(shard(store, "b", 5, 1))).save_model("late", model_of(1))
    # with other segments, and the same documents
    assert since(store, "m") == (5, 0, 0)
    store = compact(store.append(shard(store, "c", 2, 1)))
    assert since(store) == (2, 0, 0)
    store = commit_recount(store, Recount("forget", "", dropped=store.commit.segments))
    assert since(store) == (0, 8, 10)


def test_a_model_of_a_version_from_which_the_store_went_back_is_told_by_shard(store):
    begun = store.version
    store = store.append(shard(store, "b", 5, 1))
    fitted = rollback(store, begun).append(shard(store, "c", 2, 1))
    store = rollback(fitted, store.version)
    # saved by who began before the store went back
    store = fitted.save_model("late", model_of(1))
    assert since(store) == (5, 2, 2)


def test_versions_that_are_no_longer_kept_cannot_be_told(store):
    store = store.append(shard(store, "b", 5, 1))
    store = store.append(shard(store, "c", 2, 1))
    # all since but one are kept
    left, dropped = expire(store, 2, timedelta(0))
    assert (dropped.versions, dropped.held) == ((0, 2), {1: "model m"})
    assert since(left) == (None, None, None)
    assert staleness(left).is_stale


def test_shards_that_a_rebase_leaves_out_are_forgotten():
    stores = [append(append(create(), {"a": 1}), {"b": 2}) for _ in range(2)]
    store, other = (one.save_model("m", model_of(0)) for one in stores)
    staged = aside(stage(store, WORDS, None, NEW, {}), "a", 1)
    assert since(adopt(staged, {"b": "is gone"})) == (0, 6, 6)
    assert since(forget(other, {"a": 1})) == (0, 6, 6)
