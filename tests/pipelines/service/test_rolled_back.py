"""A rollback beneath a service: receipts say what the latest version counts; no turn undoes it."""

from pathlib import Path

import pytest
from service_answers import due

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.tracking import Tracker
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.store.store import MomentStore


@pytest.fixture
def accumulator(place, embedded):
    content = {"store": str(place / "store"), "accumulate": {"seal_after": "10ms"}}
    return Accumulator.of(service_of(content, "service.toml"), Run(embedded), lambda line: None)


def told(client, receipt):
    client.service.current.look()
    found = client("GET", f"/v1/receipts/{receipt}").json()
    return found["state"], found["version"], found["reason"]


def test_what_a_rollback_counts_no_more_is_uncounted_until_an_update(serve, accumulator, planted):
    sealed = Path(accumulator.seals.inbox.folder.url) / "sealed"
    with serve() as client:
        first = client.send([{"text": planted[0]}], "k").json()["receipt"]
        assert due(accumulator).version == 3
        second = client.send([{"text": text} for text in planted[1:3]]).json()["receipt"]
        due(accumulator)
        store = MomentStore.open(accumulator.config.store)
        before = store.load()
        assert [told(client, one)[:2] for one in (first, second)] == [
            ("counted", 3),
            ("counted", 4),
        ]
        rollback(store, 3)
        assert told(client, first) == ("counted", 3, "")
        state, version, reason = told(client, second)
        assert (state, version) == ("uncounted", None)
        assert "version 4 counted the documents, but version 5 does not" in reason
        # nor does what comes then bring it back, nor that it is sent again
        client.send([{"text": planted[0]}], "k")
        third = client.send([{"text": planted[3]}]).json()["receipt"]
        assert due(accumulator).counted == 1
        assert [told(client, one)[0] for one in (second, third)] == ["uncounted", "counted"]
        store = rollback(store, 3)
        listed = list_shards([f"{sealed}/**/*.jsonl"])
        assert update(store, listed, accumulator.run).documents == 3
        assert {told(client, one)[0] for one in (first, second, third)} == {"counted"}
        store = forget(
            store.latest(), list_shards([str(max(sealed.rglob("*.jsonl")))]), accumulator.run
        )
        # forgotten and not merely uncounted: neither a turn nor an update counts it again
        assert told(client, third)[0] == "forgotten"
        assert store.load() == before
        client.send([{"text": planted[4]}])
        assert due(accumulator).counted == 1
        assert update(store, list_shards([f"{sealed}/**/*.jsonl"]), accumulator.run).documents == 0
        assert told(client, third)[0] == "forgotten"


def test_what_was_deleted_since_is_counted_again_until_it_is_replaced(serve, accumulator, planted):
    sealed = Path(accumulator.seals.inbox.folder.url) / "sealed"
    with serve() as client:
        client.send([{"text": text, "id": place} for place, text in enumerate(planted[:2])])
        gone = client.send([{"text": planted[2], "id": "2"}]).json()["receipt"]
        due(accumulator)
        client("DELETE", "/v1/documents", params={"receipt": gone})
        assert due(accumulator).forgotten == 1
        assert told(client, gone)[0] == "forgotten"
        store = MomentStore.open(accumulator.config.store)
        once = store.load()
        store = rollback(store, 3)
        assert store.commit.documents == 903
        # counted again, and said so
        assert told(client, gone)[0] == "counted"
    listed = list_shards([f"{sealed}/**/*.jsonl"])
    with pytest.raises(InvalidInput, match="--replace"):
        update(store, listed, accumulator.run)
    store = update(store, listed, accumulator.run, old=()).store
    assert (store.commit.documents, store.load()) == (902, once)


def test_a_version_that_is_not_looked_at_yet_is_believed(serve, accumulator, planted):
    with serve() as client:
        receipt = client.send([{"text": planted[0]}]).json()["receipt"]
        early = MomentStore.open(accumulator.config.store)
        tracker = Tracker(accumulator.seals)
        assert tracker.find(receipt, early).state == "accepted"
        due(accumulator)
        assert early.version == 2
        found = tracker.find(receipt, early)
        assert (found.state, found.version) == ("counted", 3)
