"""What is acknowledged is counted once, by whoever accumulates."""

import json
import os
import re
import shutil
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from mortal_folder import Killed, mortal
from service_answers import due

from streaming_moments.errors import InvalidInput, ShardError, StoreError
from streaming_moments.pipelines.aggregation import counting
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.nightly.config import read_config
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.pipelines.service import config as config_module
from streaming_moments.pipelines.service.config import night_of, read_service, service_of
from streaming_moments.pipelines.service.ingest_worker import accumulator as module
from streaming_moments.pipelines.service.ingest_worker import deleting, quarantine, sealed_shards
from streaming_moments.pipelines.service.ingest_worker.accumulator import (
    Accumulator,
    accumulate,
)
from streaming_moments.pipelines.service.ingest_worker.locking import locked
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.batches import Piece
from streaming_moments.storage.inbox.deletions import Deletions
from streaming_moments.storage.inbox.expiry import Expired
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.records import RecordShape
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import Lock, LockHeld
from streaming_moments.storage.store.store import MomentStore

SOON = {"seal_after": "10ms"}
TODAY = date(2026, 11, 23)


@pytest.fixture
def accumulator(place, embedded):
    """One of the store, whose clock is told."""
    config = service_of({"store": str(place / "store"), "accumulate": SOON}, "service.toml")
    return Accumulator.of(config, Run(embedded), lambda line: None)


def killed(*told, **how):
    raise Killed


def of_files(place, planted, run):
    """Statistics of the same documents, counted from a file of lines by an update."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in planted)
    (place / "same.jsonl").write_text(lines)
    return update(
        MomentStore.open(str(place / "twin")), list_shards([str(place / "same.jsonl")]), run
    )


def test_what_came_is_counted_as_an_update_counts_it(serve, accumulator, place, planted):
    shutil.copytree(place / "store", place / "twin")
    with serve() as client:
        assert accumulator.look() is None
        texts = [{"text": text} for text in planted[:20]]
        first = client.send(texts[:15], "k").json()["receipt"]
        second = client.send(texts[15:]).json()["receipt"]
        client.send(texts[:15], "k")
        turn = due(accumulator)
        assert (turn.sealed, turn.counted) == (20, 20)
        client.service.current.look()
        told = client("GET", f"/v1/receipts/{first}").json()
        assert (told["state"], told["version"], told["documents"]) == ("counted", 3, 15)
        assert client("GET", f"/v1/receipts/{second}").json()["state"] == "counted"
        assert client.send(texts[:15], "k").json()["receipt"] == first
        # comes to nothing, and leaves no commit
        turn = due(accumulator)
        assert (turn.sealed, turn.counted) == (0, 0)
    store = MomentStore.open(str(place / "store"))
    twin = of_files(place, planted[:20], accumulator.run).store
    assert store.version == 3
    assert store.commit.documents == 920
    assert store.length_histogram() == twin.length_histogram()
    assert (store.load().pair_counts == twin.load().pair_counts).all()
    assert (store.load().triple_sketch == twin.load().triple_sketch).all()
    assert store.verify() == []


def test_a_turn_that_died_is_ended_by_the_next(accumulator, serve, monkeypatch):
    with serve() as client:
        client.send([{"text": "a b c"}])
        monkeypatch.setattr(sealed_shards, "update", killed)
        with pytest.raises(Killed):
            due(accumulator)
        monkeypatch.undo()
        again = Accumulator.of(accumulator.config, accumulator.run, lambda line: None)
        # sealed but not counted: due at once
        turn = again.look()
        assert (turn.sealed, turn.counted) == (0, 1)
        # counted but not noted: counted no more
        monkeypatch.setattr(quarantine, "note_reached", killed)
        client.send([{"text": "d e f"}])
        with pytest.raises(Killed):
            due(again)
        monkeypatch.undo()
        assert again.look().counted == 0
        assert MomentStore.open(again.config.store).commit.documents == 902


def test_while_nothing_can_be_counted_what_came_waits_where_it_is_seen(
    accumulator, serve, monkeypatch
):
    with serve() as client:
        client.send([{"text": "a b c"}])
        with monkeypatch.context() as patch:
            patch.setattr(sealed_shards, "update", killed)
            for _ in range(2):
                with pytest.raises(Killed):
                    due(accumulator)
                client.send([{"text": "d e f"}])
        # by its age and its bytes others are refused
        assert accumulator.seals.inbox.backlog().documents == 2
        turn = due(accumulator)
        assert (turn.sealed, turn.counted) == (2, 3)
        assert turn.version == MomentStore.open(accumulator.config.store).version


def test_a_seal_that_was_cut_off_before_its_shards_is_ended_and_counted(accumulator, serve):
    with serve() as client:
        client.send([{"text": "a b c"}])
        # batches are read, the seal is made, and then it dies
        with pytest.raises(Killed):
            SealLog(mortal(accumulator.seals.inbox.folder, 2)).seal_next()
        assert (accumulator.seals.latest(), accumulator.seals.inbox.backlog().documents) == (1, 1)
        assert due(accumulator).counted == 1


def test_documents_without_a_known_word_are_counted_too(accumulator, serve):
    """What came beside them is chance: alone in a shard they are no bad shard."""
    with serve() as client:
        receipt = client.send([{"text": "Meer und Schiff"}, {"text": ""}]).json()["receipt"]
        assert due(accumulator).counted == 2
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"


def test_what_failed_around_a_shard_is_no_reason_to_drop_it(accumulator, serve, monkeypatch):
    def failing(shard, options):
        raise ShardError(shard.url, "cannot be read (connection reset)")

    with serve() as client:
        receipt = client.send([{"text": "a b c"}]).json()["receipt"]
        with monkeypatch.context() as patch:
            patch.setattr(counting, "content_of", failing)
            with pytest.raises(StoreError, match=r"reset\)\), although it is readable"):
                due(accumulator)
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "accepted"
        assert due(accumulator).counted == 1
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"


def test_what_nobody_can_read_is_refused_and_the_rest_is_counted(accumulator, serve):
    good, _ = RecordShape().submission([{"text": "a"}], new_receipt(0), False, TODAY)
    content = b'{"text": 5}\n'
    bad = replace(
        good,
        receipt=new_receipt(0),
        pieces=(Piece(date(2026, 11, 20), 1, len(content)),),
        content=content,
    )
    accumulator.seals.inbox.put([good, bad])
    turn = due(accumulator)
    assert (turn.counted, len(turn.left_out)) == (1, 1)
    assert accumulator.look() is None
    with serve() as client:
        told = client("GET", f"/v1/receipts/{bad.receipt}").json()
        assert (told["state"], bool(told["reason"])) == ("refused", True)
        assert client("GET", f"/v1/receipts/{good.receipt}").json()["state"] == "counted"


def test_a_deletion_is_of_all_that_came_before_it_also_in_the_middle_of_a_turn(
    accumulator, serve, monkeypatch
):
    asked, counted = [], Accumulator._counted

    def slow(self, journal):
        if not asked:
            client.send([{"text": "a b c", "id": "late"}])
            asked.append(client("DELETE", "/v1/documents?id=late").headers["Location"])
        return counted(self, journal)

    with serve() as client:
        client.send([{"text": "d e f"}])
        monkeypatch.setattr(Accumulator, "_counted", slow)
        assert due(accumulator).counted == 1
        assert client("GET", asked[0]).json()["state"] == "accepted"
        due(accumulator)
        assert client("GET", asked[0]).json()["documents"] == 1
        assert MomentStore.open(accumulator.config.store).commit.documents == 901


def test_a_deletion_waits_until_all_is_sealed_that_came_before_it(accumulator, serve, monkeypatch):
    monkeypatch.setattr(module, "_MOST_SEALS", 1)
    rules = replace(accumulator.rules, seal_documents=1)
    ours = replace(accumulator, config=replace(accumulator.config, accumulate=rules))
    with serve() as client:
        for _ in range(2):
            client.send([{"text": "a b c", "id": "one"}])
        asked = client("DELETE", "/v1/documents?id=one").headers["Location"]
        due(ours)
        assert client("GET", asked).json()["state"] == "accepted"
        due(ours)
        assert client("GET", asked).json()["documents"] == 2


def test_one_of_several_accumulates(accumulator, serve):
    with serve() as client:
        client.send([{"text": "a"}])
        lock = Lock.acquire(Folder.at(accumulator.config.store), timedelta(minutes=5))
        assert accumulator.look() is None
        lock.release()
        assert due(accumulator).counted == 1


def test_a_night_follows_when_enough_came(accumulator, serve, place):
    inbox = accumulator.seals.inbox.folder.url
    (place / "night.toml").write_text(
        f'store = "{place}/store"\nshards = "{inbox}/sealed/**/*.jsonl"\noutput = "{place}/out"\n'
        "[refit]\ntopics = 2\nalpha0 = 1\n"
    )
    rules = {**SOON, "night": str(place / "night.toml"), "refit_documents": 2}
    config = service_of({"store": str(place / "store"), "accumulate": rules}, "service.toml")
    told = []
    ours = Accumulator.of(config, accumulator.run, told.append)
    with serve(refresh="10s") as client:
        client.send([{"text": "a b c"}, {"text": "d e f"}])

        def over(seconds):
            return any("night" in line for line in told)

        accumulate(ours, over)
        assert told[-1] == "night: published"
        client.service.current.look()
        assert client("GET", "/v1/models").json()["answering"].startswith("night-v")


def test_a_night_by_cron_waits_for_a_turn_of_who_counts(accumulator, place, monkeypatch):
    (place / "night.toml").write_text(
        f'store = "{place}/store"\nshards = "{place}/none/*.jsonl"\noutput = "{place}/out"\n'
        'wait = "10m"\n[refit]\ntopics = 2\nalpha0 = 1\n'
    )
    night, cluster = read_config(place / "night.toml"), accumulator.run.cluster
    refused, real = threading.Event(), Lock._acquired

    def taken(folder, expiry):
        try:
            return real(folder, expiry)
        except LockHeld:
            refused.set()
            raise

    monkeypatch.setattr(Lock, "_acquired", taken)
    with ThreadPoolExecutor(1) as pool:
        with locked(accumulator.config):
            with pytest.raises(LockHeld):
                nightly(replace(night, wait=timedelta(0)), cluster, lambda step: None)
            refused.clear()
            waiting = pool.submit(nightly, night, cluster, lambda step: None)
            assert refused.wait(60)
            assert not waiting.done()
        assert waiting.result(120).outcome == "published"
    # of a service it is tried again, and does not keep it from counting
    rules = {**SOON, "night": str(place / "night.toml"), "refit_documents": 2}
    content = {"store": str(place / "store"), "accumulate": rules}
    assert night_of(service_of(content, "service.toml")).wait == timedelta(0)


def test_a_night_of_another_store_is_refused(place):
    (place / "night.toml").write_text(
        'store = "other"\nshards = "x.txt"\noutput = "out"\n[refit]\ntopics = 2\n'
    )
    rules = {"night": str(place / "night.toml"), "refit_every": "1h"}
    config = service_of({"store": "mine", "accumulate": rules}, "service.toml")
    with pytest.raises(InvalidInput, match="names the store"):
        night_of(config)


def test_a_failure_is_told_and_tried_again(accumulator, monkeypatch):
    told, others, now = [], [], [0.0]

    def over(seconds):
        now[0] += seconds
        return now[0] > 20 * accumulator.pause

    failing = replace(accumulator, tell=others.append, warn=told.append, clock=lambda: now[0])
    monkeypatch.setattr(
        Accumulator, "look", lambda self: (_ for _ in ()).throw(InvalidInput("no such thing"))
    )
    accumulate(failing, over)
    # after 1 pause, 2 more, 4 and 8
    assert len([line for line in told if "no such thing" in line]) == 4
    assert others == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "lacks 'store'"),
        ({"store": "s", "stroe": 1}, "did you mean 'store'"),
        ({"store": "s", "listen": {"host": "0.0.0.0"}}, "there are no tokens"),
        ({"store": "s", "listen": {"certificate": "c"}}, "add key"),
        ({"store": "s", "listen": {"origins": ["https://a"]}}, "only with tokens"),
        ({"store": "s", "accumulate": {"night": "n"}}, "add refit_every"),
        ({"store": "s", "limits": {"seconds": "0s"}}, "seconds"),
        ({"store": "s", "limits": {"document": "17MiB"}}, "reads at most 16,777,216"),
    ],
)
def test_a_wrong_configuration_is_named(content, told):
    with pytest.raises(InvalidInput, match=told):
        service_of(content, "service.toml")


def test_the_configuration_of_the_page_is_one():
    page = Path(__file__).parents[3] / "docs" / "operation" / "service_details.md"
    [example] = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    config = service_of(tomllib.loads(example), "service.toml")
    assert config.limits.inbox_age == timedelta(minutes=15)


def test_a_configuration_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "bad.toml").write_text("store = ")
    for name, told in (("bad.toml", "not TOML"), ("none.toml", "cannot be read")):
        with pytest.raises(InvalidInput, match=told):
            read_service(tmp_path / name)


def deleted(client, accumulator, **named):
    """A deletion, once it is done."""
    asked = client("DELETE", "/v1/documents", params=named)
    assert asked.status_code == 202
    assert client("GET", asked.headers["Location"]).json()["state"] == "accepted"
    due(accumulator)
    return client("GET", asked.headers["Location"]).json()


def test_documents_are_forgotten_exactly_by_receipt_and_by_id(serve, accumulator, place, planted):
    shutil.copytree(place / "store", place / "twin")
    store, twin = (MomentStore.open(str(place / name)) for name in ("store", "twin"))
    with serve() as client:
        texts = [{"text": text, "id": number} for number, text in enumerate(planted[:12])]
        some = [*texts[:4], {"text": "a", "date": "of nobody"}]
        first = client.send(some, params={"skip_bad": "true"}).json()["receipt"]
        second = client.send(texts[4:], "k").json()["receipt"]
        due(accumulator)
        client.service.current.look()
        told = client("GET", f"/v1/receipts/{first}").json()
        assert (told["state"], told["left_out"][0]["document"]) == ("counted", 4)
        told = deleted(client, accumulator, receipt=first)
        assert (told["state"], told["documents"]) == ("done", 4)
        told = client("GET", f"/v1/receipts/{first}").json()
        assert (told["state"], told["left_out"]) == ("forgotten", [])
        assert deleted(client, accumulator, id=["5", "11"])["documents"] == 2
        assert deleted(client, accumulator, id="5")["documents"] == 0
        assert client("GET", f"/v1/receipts/{second}").json()["state"] in ("counted", "accepted")
        # sent again under its key they stay forgotten
        client.send(texts[4:], "k")
        due(accumulator)
        left = [one["text"] for one in texts if one["id"] in (4, 6, 7, 8, 9, 10)]
        twin = of_files(place, left, accumulator.run).store
        store = store.latest()
        assert store.commit.documents == 906
        assert (store.load().pair_counts == twin.load().pair_counts).all()
        assert (store.load().triple_sketch == twin.load().triple_sketch).all()
        assert deleted(client, accumulator, receipt=second)["documents"] == 6
        assert store.latest().commit.documents == 900
        assert store.latest().verify() == []
    inbox = accumulator.seals.inbox.folder
    everything = b"".join(
        inbox.read(file.path) for file in inbox.files("") if not file.path.startswith("claims")
    )
    assert not any(one["text"].encode() in everything for one in texts)


@pytest.mark.parametrize("dies_in", ["update", "forget_counted", "finish", "withdraw"])
def test_a_deletion_that_died_is_ended_by_the_next_turn(
    serve, accumulator, planted, monkeypatch, dies_in
):
    with serve() as client:
        first = client.send([{"text": text} for text in planted[:3]]).json()["receipt"]
        whole = dies_in == "forget_counted"
        if not whole:
            client.send([{"text": planted[4]}])
        due(accumulator)
        asked = client("DELETE", "/v1/documents", params={"receipt": first}).headers["Location"]
        place = Deletions if dies_in in ("finish", "withdraw") else deleting
        real = getattr(place, dies_in)

        def dying(*told, **how):
            if place is deleting:
                real(*told, **how)
            raise Killed

        monkeypatch.setattr(place, dies_in, dying)
        with pytest.raises(Killed):
            accumulator.look()
        monkeypatch.undo()
        again = Accumulator.of(accumulator.config, accumulator.run, lambda line: None)
        due(again)
        assert client("GET", asked).json()["documents"] == 3
        store = MomentStore.open(accumulator.config.store)
        assert store.commit.documents == 900 + (not whole)
        assert store.verify() == []


def test_what_is_counted_and_old_goes_by_the_word_of_the_ledger(
    serve, accumulator, place, planted, monkeypatch
):
    inbox = Path(accumulator.seals.inbox.folder.url)
    keep = config_module.KeepSection(timedelta(days=30), timedelta(days=30))
    ours = replace(accumulator, config=replace(accumulator.config, keep=keep))

    def older(days):
        for path in [one for one in inbox.rglob("*") if one.is_file()]:
            then = path.stat().st_mtime - days * 86_400
            os.utime(path, (then, then))

    with serve() as client:
        receipts = []
        for number, text in enumerate(planted[:3]):
            receipts.append(client.send([{"text": text}], f"k{number}").json()["receipt"])
            if number == 2:
                # the third is sealed, and dies before it is counted
                monkeypatch.setattr(sealed_shards, "update", killed)
                with pytest.raises(Killed):
                    due(ours)
                monkeypatch.undo()
            else:
                due(ours)
        older(29)
        assert not ours.expire_if_due()
        older(2)
        ours._expired = None
        assert ours.expire_if_due() == Expired(shards=2, seals=2, claims=3)
        assert ours.expire_if_due() is None
        assert len(list((inbox / "sealed").rglob("*.jsonl"))) == 1
        ours.look()
        client.service.current.look()
        store = MomentStore.open(accumulator.config.store)
        assert store.commit.documents == 903
        found = [client("GET", f"/v1/receipts/{one}").status_code for one in receipts]
        assert found == [404, 404, 404]
        # a night over the whole inbox counts nothing twice, and what comes goes on
        listed = list_shards([f"{inbox}/sealed/**/*.jsonl"])
        assert update(store, listed, accumulator.run).documents == 0
        receipt = client.send([{"text": planted[3]}], "k3").json()["receipt"]
        assert due(ours).counted == 1
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"
    with pytest.raises(InvalidInput, match="keys"):
        service_of({"store": "s", "keep": {"keys": "1h"}}, "service.toml")
