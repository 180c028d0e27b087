"""A purge as the law may ask reaches the inbox: no file of it tells of the documents."""

import hashlib
import shutil
from pathlib import Path

import pytest
from service_answers import due

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import purge as module
from streaming_moments.pipelines.jobs.purge import look_for_purged, purge
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker import quarantine
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.storage.files.sealed import unseal
from streaming_moments.storage.inbox.deletions import Deletion
from streaming_moments.storage.store.store import MomentStore


def everything(folder):
    return b"\n".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())


@pytest.mark.parametrize("dies", [False, True])
def test_nothing_of_what_is_purged_is_left_in_the_inbox(
    serve, place, embedded, planted, monkeypatch, dies
):
    content = {"store": str(place / "store"), "accumulate": {"seal_after": "10ms"}}
    run = Run(embedded)
    accumulator = Accumulator.of(service_of(content, "service.toml"), run, lambda line: None)
    inbox = Path(accumulator.seals.inbox.folder.url)
    with serve() as client:
        documents = [{"text": text, "id": place} for place, text in enumerate(planted[:3])]
        some = [*documents, {"text": "a", "date": "a day of secrets"}]
        first = client.send(some, "k", params={"skip_bad": "true"}).json()["receipt"]
        due(accumulator)
        [shard] = (inbox / "sealed").rglob("*.jsonl")
        told = [hashlib.sha256(shard.read_bytes()).hexdigest()]
        claim = (inbox / "claims" / f"{first}.json").read_bytes()
        told.append(unseal(claim, "claim")["digest"])
        other = client.send([{"text": planted[3]}], "other").json()["receipt"]
        due(accumulator)
        client("DELETE", "/v1/documents", params={"id": "1"})
        due(accumulator)
        told.append(hashlib.sha256(shard.read_bytes()).hexdigest())
        told += [one["text"] for one in documents if one["id"] != 1] + [some[-1]["date"]]
        assert all(one.encode() in everything(inbox) for one in told)
        asked = [client("GET", f"/v1/receipts/{one}").json()["state"] for one in (first, other)]
        assert asked == ["counted", "counted"]
        # sent again, it waits
        client.send(documents, "k")
        store = MomentStore.open(str(place / "store"))
        assert [trace.path for trace in look_for_purged(store, [str(shard)]).traces]
        if dies:
            monkeypatch.setattr(module, "purge_inboxes", lambda *told: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                purge(store, [str(shard)], run)
            monkeypatch.undo()
            assert look_for_purged(store.latest(), [str(shard)]).traces
            again = purge(store.latest(), [str(shard)], run)
            assert again.before == (str(shard),)
            assert str(shard) in again.erased
        else:
            erased = purge(store, [str(shard)], run).erased
            assert str(shard) in erased
        assert not [one for one in told if one.encode() in everything(inbox)]
        store = store.latest()
        assert look_for_purged(store, [str(shard)]).traces == ()
        assert (store.commit.documents, store.verify()) == (901, [])
        client.service.current.look()
        states = [client("GET", f"/v1/receipts/{one}").json()["state"] for one in (first, other)]
        assert states == ["forgotten", "counted"]
        # what comes again under the key is nobody's to tell from another
        assert client.send(documents, "k").status_code == 422
        assert due(accumulator).counted == 0
        assert not [one for one in told if one.encode() in everything(inbox)]


def test_a_purge_waits_for_a_deletion_that_is_asked_for(serve, place, embedded, planted):
    content = {"store": str(place / "store"), "accumulate": {"seal_after": "10ms"}}
    run = Run(embedded)
    accumulator = Accumulator.of(service_of(content, "service.toml"), run, lambda line: None)
    with serve() as client:
        client.send([{"text": planted[0]}])
        due(accumulator)
    [shard] = Path(accumulator.seals.inbox.folder.url, "sealed").rglob("*.jsonl")
    accumulator.deletions.ask(Deletion("id", ("7",)))
    with pytest.raises(InvalidInput, match="accumulate --once"):
        purge(MomentStore.open(str(place / "store")), [str(shard)], run)
    assert shard.exists()


def test_a_turn_that_died_before_a_purge_goes_on_after_it(
    serve, place, embedded, planted, monkeypatch
):
    """What it counted and did not note is not looked for where it was."""
    content = {"store": str(place / "store"), "accumulate": {"seal_after": "10ms"}}
    run = Run(embedded)
    accumulator = Accumulator.of(service_of(content, "service.toml"), run, lambda line: None)
    with serve() as client:
        client.send([{"text": planted[0]}])
        monkeypatch.setattr(quarantine, "note_counted", lambda *told: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            due(accumulator)
        monkeypatch.undo()
        [shard] = Path(accumulator.seals.inbox.folder.url, "sealed").rglob("*.jsonl")
        purge(MomentStore.open(str(place / "store")), [str(shard)], run)
        client.send([{"text": planted[1]}])
        # the first turn may come before the batch is old enough: it ends what the dead one left
        assert (due(accumulator).counted or due(accumulator).counted) == 1
    assert MomentStore.open(str(place / "store")).commit.documents == 901


@pytest.fixture
def counting(place, embedded):
    """An accumulator of the store, and its inbox."""
    content = {"store": str(place / "store"), "accumulate": {"seal_after": "10ms"}}
    found = Accumulator.of(service_of(content, "service.toml"), Run(embedded), lambda line: None)
    return found, Path(found.seals.inbox.folder.url)


def files(*roots):
    """Every file but those of locks, which a command takes and gives back."""
    return {
        str(path): path.read_bytes()
        for root in roots
        for path in Path(root).rglob("*")
        if path.is_file() and "locks" not in path.parts and path.name != "clock"
    }


def refused(store, shards, said, *roots):
    """A purge says why it does nothing, and does nothing."""
    before = files(*roots)
    with pytest.raises(InvalidInput, match=said):
        purge(store, [str(shard) for shard in shards], Run(None))
    assert files(*roots) == before


def test_a_refused_purge_leaves_a_sealed_shard_that_is_not_counted_yet(
    serve, place, counting, planted
):
    accumulator, inbox = counting
    with serve() as client:
        receipt = client.send([{"text": text} for text in planted[:3]], "k").json()["receipt"]
        # a turn that dies between sealing and counting
        accumulator.seals.seal_next()
        [shard] = (inbox / "sealed").rglob("*.jsonl")
        store = MomentStore.open(str(place / "store"))
        refused(store, [shard], "accumulate --once", store.url, inbox)
        assert due(accumulator).counted == 3
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"


def test_a_purge_of_another_store_leaves_the_inbox(serve, place, counting, planted):
    accumulator, inbox = counting
    staging = shutil.copytree(place / "store", place / "staging")
    with serve() as client:
        receipt = client.send([{"text": planted[0]}]).json()["receipt"]
        due(accumulator)
        [shard] = (inbox / "sealed").rglob("*.jsonl")
        store = MomentStore.open(str(staging))
        refused(store, [shard], f"no version of {staging} counts it", staging, inbox)
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"


def test_a_purge_of_a_copy_leaves_the_inbox_of_the_store(serve, place, counting, planted, embedded):
    """The copy counts the shard too, and its purge is its own alone."""
    accumulator, inbox = counting
    told = []
    with serve() as client:
        receipt = client.send([{"text": planted[0]}]).json()["receipt"]
        due(accumulator)
        [shard] = (inbox / "sealed").rglob("*.jsonl")
        staging = shutil.copytree(place / "store", place / "staging")
        before = everything(inbox)
        result = purge(
            MomentStore.open(str(staging)), [str(shard)], Run(embedded, tell=told.append)
        )
        assert result.purge.shards == (str(shard),)
        assert everything(inbox) == before
        assert [line for line in told if f"belongs to the store {place / 'store'}" in line]
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"


def test_one_right_name_and_one_misspelt_change_nothing(serve, place, counting, planted):
    accumulator, inbox = counting
    with serve() as client:
        client.send([{"text": planted[0]}])
        due(accumulator)
    [shard] = (inbox / "sealed").rglob("*.jsonl")
    store = MomentStore.open(str(place / "store"))
    misspelt = str(shard).replace("1.sealed", "9.sealed")
    refused(store, [shard, misspelt], "9.sealed.jsonl", store.url, inbox)
