"""One shard that cannot be counted is set aside, and keeps nothing else from going on."""

import errno
import json
import random
import time
from dataclasses import replace
from datetime import date

import fsspec.implementations.local as local
import pytest

from streaming_moments.errors import KillsWorkers, StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker import sealed_shards
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.validation import DOCUMENTS_OF_ROOM, Countable
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.records import RecordShape
from streaming_moments.storage.inbox.set_aside import all_set_aside
from streaming_moments.storage.store.store import MomentStore

TODAY = date(2026, 11, 23)
RULES = {"seal_after": "10ms", "seal_documents": 1}


def accumulating(store, embedded, clock=time.monotonic):
    """An accumulator of a store that seals each batch alone."""
    config = service_of({"store": str(store), "accumulate": RULES}, "service.toml")
    return Accumulator.of(config, Run(embedded), lambda line: None, clock)


@pytest.fixture
def accumulator(place, embedded):
    return accumulating(place / "store", embedded)


def put(accumulator, documents, shape=RecordShape()):
    """Documents as a version took them that did not judge how much one adds."""
    one, _ = shape.submission(documents, new_receipt(0), False, TODAY)
    accumulator.seals.inbox.put([one])
    return one.receipt


def huge(accumulator):
    """Documents that each fit into a sum of the store, and together do not."""
    store = MomentStore.open(accumulator.config.store)
    word = next(iter(store.vocabulary.terms))
    text = f"{word} " * 60_000
    bound = Countable(store).bound(json.dumps({"text": text}).encode() + b"\n")
    return [{"id": f"huge{n}", "text": text} for n in range(int(2 * 2**62 / bound) + 1)]


def test_a_shard_that_finds_no_room_is_set_aside_and_all_else_goes_on(
    accumulator, serve, place, run, monkeypatch
):
    with serve() as client:
        first = put(accumulator, [{"text": "a b c", "id": "one"}])
        poison = put(accumulator, huge(accumulator))
        last = put(accumulator, [{"text": "d e f"}])
        asked = client("DELETE", "/v1/documents?id=one").headers["Location"]
        turn = accumulator.turn()
        assert (turn.counted, turn.left_out, len(turn.set_aside)) == (2, (), 1)
        assert (turn.forgotten, client("GET", asked).json()["state"]) == (1, "done")
        client.service.current.look()
        told = {one: client("GET", f"/v1/receipts/{one}").json() for one in (first, poison, last)}
        states = [told[one]["state"] for one in (first, poison, last)]
        assert states == ["forgotten", "set_aside", "counted"]
        assert "2^62" in told[poison]["reason"]
        ready = client("GET", "/readyz")
        assert (ready.status_code, ready.json()["counting"]) == (200, True)
        (note,) = all_set_aside(accumulator.seals.inbox.folder)
        assert note.path in client("GET", "/health").text
        metrics = client("GET", "/metrics").text
        assert "streaming_moments_set_aside_shards 1.0" in metrics
        assert f"streaming_moments_set_aside_documents {note.documents}.0" in metrics
        # nothing is due, and later documents are counted
        assert accumulator.look() is None
        put(accumulator, [{"text": "g h i"}])
        assert accumulator.turn().counted == 1


def test_documents_deleted_from_a_shard_that_is_set_aside_make_it_count(accumulator, serve):
    with serve() as client:
        documents = huge(accumulator)
        receipt = put(accumulator, [*documents, {"text": "a b c", "id": "small"}])
        assert len(accumulator.turn().set_aside) == 1
        names = "&".join(f"id={one['id']}" for one in documents)
        client("DELETE", f"/v1/documents?{names}")
        assert accumulator.turn().forgotten == len(documents)
        assert accumulator.turn().counted == 1
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "counted"
        assert all_set_aside(accumulator.seals.inbox.folder) == ()
        # all of one is deleted: nothing is left to count
        gone = put(accumulator, documents)
        assert len(accumulator.turn().set_aside) == 1
        client("DELETE", f"/v1/documents?receipt={gone}")
        accumulator.turn()
        accumulator.turn()
        assert all_set_aside(accumulator.seals.inbox.folder) == ()
        client.service.current.look()
        assert client("GET", f"/v1/receipts/{gone}").json()["state"] == "forgotten"


def test_the_command_shows_what_is_set_aside_and_retries_or_refuses_it(
    accumulator, serve, place, run
):
    (place / "service.toml").write_text(
        f'store = "{place}/store"\n[accumulate]\nseal_after = "10ms"\nseal_documents = 1\n'
    )
    config = place / "service.toml"
    poison = put(accumulator, huge(accumulator))
    code, out, err = run("accumulate", config, "--once")
    assert (code, "--retry" in err, "2^62" in err) == (3, True, True)
    (note,) = all_set_aside(accumulator.seals.inbox.folder)
    code, out, _ = run("set-aside", config, "--json")
    assert code == 3
    assert json.loads(out)["set_aside"][0]["shard"] == note.path
    assert run("set-aside", config, "other")[0] == 2
    assert run("set-aside", config, "--retry", "--refuse")[0] == 2
    assert run("set-aside", config, note.path, "--retry")[0] == 0
    assert accumulator.look().set_aside[0][0].endswith(note.path)
    assert run("set-aside", config, "--refuse")[0] == 0
    assert run("set-aside", config)[0] == 0
    with serve() as client:
        told = client("GET", f"/v1/receipts/{poison}").json()
        assert (told["state"], "2^62" in told["reason"]) == ("refused", True)


def test_one_that_kills_workers_is_set_aside_and_counted_once_it_is_asked_for(
    accumulator, monkeypatch
):
    real = sealed_shards.update

    def deadly(store, listed, run, **how):
        result = real(store, listed[1:], run, **how)
        return replace(result, bad=(KillsWorkers(listed[0].url, "killed every worker"),))

    put(accumulator, [{"text": "a b c"}])
    put(accumulator, [{"text": "d e f"}])
    with monkeypatch.context() as patch:
        patch.setattr(sealed_shards, "update", deadly)
        turn = accumulator.turn()
    assert (turn.counted, len(turn.set_aside)) == (1, 1)
    assert len(all_set_aside(accumulator.seals.inbox.folder)) == 1
    assert accumulator.look() is None


def test_an_error_that_nobody_foresaw_is_of_its_shard_alone(accumulator, monkeypatch):
    from streaming_moments.pipelines.aggregation.reading import ReadingContext

    real = ReadingContext.prepared

    def broken(self, shard, content=None):
        for prepared, read in real(self, shard, content):
            if prepared.totals.n_documents == 2:
                raise OverflowError("int too big to convert")
            yield prepared, read

    for texts in (["a b c"], ["d", "e"], ["f g h"]):
        put(accumulator, [{"text": text} for text in texts])
    monkeypatch.setattr(ReadingContext, "prepared", broken)
    turn = accumulator.turn()
    assert (turn.counted, [reason for _, reason in turn.set_aside]) == (
        2,
        ["OverflowError: int too big to convert"],
    )


@pytest.mark.parametrize("kind", ["texts", "sequences"])
def test_a_storage_that_fails_once_is_a_turn_that_fails_and_no_refusal(
    kind, place, embedded, tmp_path, monkeypatch, run
):
    store, text = place / "store", "a b c"
    if kind == "sequences":
        draw = random.Random(3)
        lines = ("".join(draw.choices("abc", k=30)) + "\n" for _ in range(500))
        (tmp_path / "p.txt").write_text("".join(lines))
        store, text = tmp_path / "sequences", "abcabcabc"
        assert run("create", store, tmp_path / "p.txt", "--kind", "sequences")[0] == 0
    now = [0.0]
    accumulator = accumulating(store, embedded, lambda: now[0])
    put(accumulator, [{"text": text}] * 20)
    failed, opened = [], local.LocalFileOpener.__init__

    def faulty(self, path, mode, *rest, **options):
        if str(path).endswith("sealed.jsonl") and "r" in mode and not failed:
            failed.append(path)
            raise OSError(errno.EIO, "Input/output error", path)
        return opened(self, path, mode, *rest, **options)

    monkeypatch.setattr(local.LocalFileOpener, "__init__", faulty)
    [(step, error)] = accumulator.turn().failed
    assert step == "count"
    assert "although it is readable" in str(error)
    now[0] += 3600.0  # what failed is due again
    turn = accumulator.turn()
    assert (len(failed), turn.counted, turn.left_out, turn.set_aside) == (1, 20, (), ())


def test_no_document_adds_more_than_a_part_of_what_a_store_has_room_for(serve, place):
    judge = Countable(MomentStore.open(str(place / "store")))
    word = next(iter(judge.store.vocabulary.terms))

    def line(times):
        return json.dumps({"text": f"{word} " * times}).encode() + b"\n"

    assert judge.light < 1 << 15
    assert judge.why_not(line(judge.light)) is None
    most = next(n for n in range(judge.light, 1 << 16, 50) if judge.why_not(line(n)))
    assert judge.bound(line(most - 50)) * DOCUMENTS_OF_ROOM < 2**62
    with serve() as client:
        told = client.send([{"text": f"{word} " * most}])
        assert (
            told.status_code,
            "create the store with --passage-words" in told.json()["detail"],
        ) == (422, True)
        assert client.send([{"text": f"{word} " * (most - 50)}]).status_code == 202


def test_readiness_says_that_turns_fail(serve, accumulator, monkeypatch):
    from streaming_moments.pipelines.service.ingest_worker.accumulator import accumulate

    left, now = [0, 1], [0.0]
    accumulator = replace(accumulator, clock=lambda: now[0])

    def over(seconds):
        now[0] += 3600.0  # what failed is due again
        return not left or left.pop() < 0

    with serve(limits={"inbox_age": "1h"}) as client:
        put(accumulator, [{"text": "a b c"}])
        with monkeypatch.context() as patch:
            failing = StoreError("the disk is gone")
            patch.setattr(sealed_shards, "update", lambda *a, **k: (_ for _ in ()).throw(failing))
            accumulate(accumulator, over)
        client.service.current.look()
        told = client("GET", "/readyz")
        assert (told.status_code, told.json()["counting"]) == (200, False)
        assert told.json()["problems"] == ["counting"]
        assert "the disk is gone" in client("GET", "/health").text
        assert "counting_stalled_seconds 0.0\n" not in client("GET", "/metrics").text
        left += [0]
        accumulate(accumulator, over)
        client.service.current.look()
        assert client("GET", "/readyz").json()["counting"]
    with serve(limits={"inbox_age": "1ms"}) as client:
        put(accumulator, [{"text": "a b c"}])
        accumulator.seals.seal_next()
        client.service.current.look()
        client.service.current.look()
        told = client("GET", "/readyz")
        assert (told.status_code, told.json()["counting"]) == (503, False)
