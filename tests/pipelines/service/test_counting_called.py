"""What is sealed is counted, refused, set aside and deleted, on a store that is small."""

import platform
from dataclasses import replace
from types import SimpleNamespace

import own_words
import pytest
from mortal_folder import Killed, mortal
from sent_documents import SHAPE, TODAY, sealed_texts, sent

from streaming_moments import PilotOptions, create_store
from streaming_moments.errors import KillsWorkers, NoRoom, ShardError, StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.http.problems import problem_of
from streaming_moments.pipelines.service.ingest_worker import (
    accumulator,
    sealed_shards,
    selecting,
)
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.ingest_worker.counted import (
    Counted,
    counted_up_to,
    read_counted,
)
from streaming_moments.pipelines.service.ingest_worker.deleting import Deleting, read_honoured
from streaming_moments.pipelines.service.ingest_worker.quarantine import (
    Outcomes,
    fails_alone,
    outcomes,
)
from streaming_moments.pipelines.service.ingest_worker.sealed_shards import count_sealed
from streaming_moments.pipelines.service.ingest_worker.selecting import compare, found_selection
from streaming_moments.storage.counting.tokenisers import registry
from streaming_moments.storage.counting.tokenisers.base import TokeniserMissing
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.batches import Piece
from streaming_moments.storage.inbox.deletions import Deletion, read_gone
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.rejected import LeftOut, note_left_out, read_left_out
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.set_aside import all_set_aside
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.store.store import MomentStore


class Place:
    """A store as 0.2.0 wrote it, with what accumulates; its progress is kept."""

    def __init__(self, store, cluster):
        self.lines, self.steps = [], []
        content = {"store": str(store), "accumulate": {"seal_after": "10ms"}}
        run = Run(cluster, progress=self)
        self.ours = Accumulator.of(service_of(content, "t"), run, self.lines.append)
        self.inbox, self.seals = self.ours.seals.inbox, self.ours.seals

    def advance(self, step, done, total):
        self.steps.append(step)

    @property
    def store(self):
        return MomentStore.open(self.ours.config.store)

    def put(self, *texts):
        """Documents whose ids are their texts; their receipt."""
        records = [{"text": text, "id": text} for text in texts]
        one = SHAPE.submission(records, new_receipt(0), False, TODAY)[0]
        self.inbox.put([one])
        return one.receipt

    def put_bad(self):
        """A document that no shard may hold, as an earlier version took it."""
        content = b'{"text": 5}\n'
        good = sent("a")
        piece = (Piece(TODAY, 1, len(content)),)
        self.inbox.put([replace(good, pieces=piece, content=content)])

    def deleted(self, by, *names):
        """A deletion that a turn has carried out."""
        identity = self.ours.deletions.ask(Deletion(by, names))
        turn = self.ours.turn()
        assert turn.failed == ()
        assert turn.forgotten == self.ours.deletions.done(identity).documents
        return self.ours.deletions.done(identity)


@pytest.fixture
def place(archived, embedded):
    return Place(archived("night"), embedded)


@pytest.fixture(scope="module")
def cut_by_a_function(tmp_path_factory, embedded):
    """A store that counts by a function, which fails on some documents."""
    url = str(tmp_path_factory.mktemp("cut") / "store")
    texts = ["sea ship port", "law tax trade"] * 20
    pilot = PilotOptions(min_documents=2, max_document_fraction=1)
    named = {"client": embedded.client, "max_topics": 2, "pilot": pilot}
    create_store(url, texts, source="texts", tokeniser="own_words:unlucky", **named)
    return url


def test_documents_wait_for_the_tokeniser_of_their_store(cut_by_a_function, embedded, monkeypatch):
    place = Place(cut_by_a_function, embedded)
    place.put("sea law")
    with monkeypatch.context() as elsewhere:
        registry.tokeniser_called.cache_clear()
        elsewhere.setattr(own_words.unlucky, "version", "2")
        ((step, error),) = place.ours.turn().failed
    registry.tokeniser_called.cache_clear()
    assert (step, type(error)) == ("count", TokeniserMissing)
    assert "has version 2" in str(error)
    # callers are not told where the service runs
    told = problem_of(error)
    assert (told.status, platform.node() in told.detail) == (503, False)
    assert (all_set_aside(place.inbox.folder), counted_up_to(place.inbox)) == ((), 0)
    assert Place(cut_by_a_function, embedded).ours.turn().counted == 1


def test_documents_beside_one_on_which_a_tokeniser_fails_are_set_aside(cut_by_a_function, embedded):
    place = Place(cut_by_a_function, embedded)
    place.put("sea 13", "sea ship")
    turn = place.ours.turn()
    assert (turn.failed, turn.left_out) == ((), ())
    (note,) = all_set_aside(place.inbox.folder)
    told = "tokeniser own_words:unlucky failed on a text of 6 characters: ZeroDivisionError"
    assert (note.documents, note.reason) == (2, f"document 1: {told}")


def test_turns_count_once_and_note_how_far(place):
    before = place.store.commit.documents
    place.put("wd wc", "wd")
    turn = place.ours.turn()
    assert (turn.sealed, turn.counted, turn.version, turn.left_out, turn.failed) == (
        *(2, 2, 5),
        *((), ()),
    )
    assert (counted_up_to(place.inbox), read_counted(place.inbox, 1).version) == (1, 5)
    assert place.ours._since == 2
    assert place.store.commit.documents == before + 2
    turn = place.ours.turn()
    assert (turn.sealed, turn.counted, turn.version, place.store.version) == (0, 0, None, 5)
    # sealed by one that died: its shards are finished, and counted
    place.put("wd wd")
    place.seals.seal_next()
    place.put("wc wc", "wd")
    assert place.ours.turn().counted == 3
    assert (place.ours._since, counted_up_to(place.inbox)) == (5, 3)
    assert place.store.verify() == []
    assert "reading shards" in place.steps


def test_what_nobody_can_read_is_refused_and_what_finds_no_room_is_set_aside(place, monkeypatch):
    place.put("wd wc")
    place.seals.seal_next()
    place.put_bad()
    place.seals.seal_next()
    place.put("wd wc wc")
    turn = place.ours.turn()
    assert (turn.counted, len(turn.left_out), turn.set_aside) == (2, 1, ())
    assert [len(read_counted(place.inbox, number).left_out) for number in (1, 2, 3)] == [0, 1, 0]
    shards = [shard for number in (1, 2, 3) for shard in place.seals.read(number).shards]
    run, store = place.ours.run, place.store
    assert fails_alone(store, place.inbox, shards[0], run) is None
    alone = fails_alone(store, place.inbox, shards[1], run)
    assert (type(alone), alone.url) == (ShardError, place.inbox.folder.shard(shards[1].path))
    urls = [place.inbox.folder.shard(shard.path) for shard in shards]

    def found(*errors):
        told = outcomes(store, place.inbox, shards, errors, run)
        return told.refused, told.aside, told.failing

    assert found() == ({}, {}, {})
    assert found(NoRoom(urls[0], "full"), KillsWorkers(urls[1], "killed")) == (
        {},
        {shards[0].path: "full", shards[1].path: "killed"},
        {},
    )
    assert found(ShardError(urls[0], "reset"), ShardError(urls[1], "bad")) == (
        {shards[1].path: "bad"},
        {},
        {shards[0].path: "reset"},
    )
    assert isinstance(outcomes(store, place.inbox, shards, (), run), Outcomes)
    place.inbox.folder.write(shards[0].path, b"another\n")
    with pytest.raises(
        StoreError, match="has changed since it was sealed; restore it from a backup"
    ):
        fails_alone(store, place.inbox, shards[0], run)


def test_an_error_of_one_shard_keeps_no_other_from_being_counted(place, monkeypatch):
    for text in ("wd", "wc", "wd wc"):
        place.put(text)
        place.seals.seal_next()
    shards = [shard for number in (1, 2, 3) for shard in place.seals.read(number).shards]
    bad, update, calls = shards[1], sealed_shards.update, []

    def failing(store, listed, run, **how):
        calls.append([one.url for one in listed])
        if any(one.url.endswith(bad.path) for one in listed):
            raise OverflowError("int too big")
        return update(store, listed, run, **how)

    def alone(store, inbox, shard, run):
        return ShardError(inbox.folder.shard(shard.path), "it fails") if shard == bad else None

    monkeypatch.setattr(sealed_shards, "update", failing)
    with monkeypatch.context() as patch:
        patch.setattr(sealed_shards, "fails_alone", lambda *told: None)
        with pytest.raises(OverflowError):
            count_sealed(place.store.writable(), place.inbox, shards, place.ours.run)
    monkeypatch.setattr(sealed_shards, "fails_alone", alone)
    result = count_sealed(place.store.writable(), place.inbox, shards, place.ours.run)
    assert (result.documents, [error.reason for error in result.bad]) == (2, ["it fails"])
    assert [len(one) for one in calls] == [3, 3, 2]
    only = count_sealed(place.store.writable(), place.inbox, [bad], place.ours.run)
    assert (only.documents, len(only.bad), only.store.version) == (0, 1, 5)
    assert list(vars(only).values())[1:6] == [0] * 5
    for error in (StoreError("away"), OSError("away")):

        def away(*told, error=error, **how):
            raise error

        monkeypatch.setattr(sealed_shards, "update", away)
        with pytest.raises(type(error), match="away"):
            count_sealed(place.store.writable(), place.inbox, [bad], place.ours.run)


def test_documents_are_deleted_by_id_and_by_receipt_and_stay_so_after_a_rollback(place):
    first = place.put("wd wc", "wd", "wc")
    place.ours.turn()
    second = place.put("wd wd")
    place.ours.turn()
    version = place.store.version
    done = place.deleted("id", "wd", "none")
    assert (done.documents, done.version) == (1, version + 1)
    assert sealed_texts(place.inbox) == ["wc", "wd wc", "wd wd"]
    assert "searching for ids" in place.steps
    assert "deleting old content" in place.steps
    done = place.deleted("receipt", second)
    assert (done.documents, done.version) == (1, version + 2)
    assert place.store.commit.documents == 240 + 2
    assert place.store.commit.message == "forget: 1 document by request"
    assert place.deleted("id", "none").version is None
    # a turn takes out what a rollback brings back
    rollback(place.store, version)
    assert place.store.commit.documents == 240 + 4
    turn = place.ours.turn()
    assert turn.failed == ()
    assert place.store.commit.documents == 240 + 2
    assert place.lines == [
        "deleted documents were counted again in 2 shards; subtracted them again"
    ]
    assert read_honoured(place.inbox) > version
    assert place.ours.turn().failed == ()
    assert place.lines[1:] == []
    assert place.store.verify() == []
    assert place.deleted("receipt", first).documents == 2


def test_what_failed_around_a_shard_fails_the_turn_and_is_counted_by_the_next(place, monkeypatch):
    place.put("wd wc")
    update = sealed_shards.update

    def reset(store, listed, run, **how):
        bad = tuple(ShardError(one.url, "reset") for one in listed)
        return replace(update(store, [], run, **how), bad=bad)

    with monkeypatch.context() as patch:
        patch.setattr(sealed_shards, "update", reset)
        [(step, error)] = place.ours.turn().failed
        assert (step, "(reset), although it is readable" in str(error)) == ("count", True)
        assert (counted_up_to(place.inbox), read_counted(place.inbox, 1)) == (0, Counted())
    place.ours.steps._next.clear()
    assert (place.ours.turn().counted, counted_up_to(place.inbox)) == (1, 1)


def test_segments_are_put_together_after_a_turn_that_counted(place, monkeypatch):
    asked = []

    def compacted(store, after, run):
        asked.append((store.version, after))
        return SimpleNamespace(version=77)

    monkeypatch.setattr(accumulator, "compact_when_many", compacted)
    place.put("wd wc")
    assert place.ours.turn().version == 77
    assert asked == [(5, accumulator.COMPACT_AFTER)]


def test_deletions_of_a_shard_that_was_purged_are_not_done_again(place):
    place.put("wd wc", "wd")
    place.ours.turn()
    version = place.store.version
    place.deleted("id", "wd")
    rollback(place.store, version)
    deleting = Deleting(place.ours.deletions, place.store.writable, place.ours.run)
    place.inbox.folder.write("expired.json", seal({"seal": 1}))
    assert place.seals.expired() == 1
    assert deleting.delete_again() == 0


def test_a_seal_that_was_cut_off_before_its_shards_is_finished_and_counted(place):
    place.put("wd wc")
    with pytest.raises(Killed):
        SealLog(mortal(place.inbox.folder, 2)).seal_next()
    assert (place.seals.latest(), place.ours.turn().counted) == (1, 1)


def test_what_is_noted_of_documents_that_were_left_out_goes_with_them(place):
    folder = place.inbox.folder
    first, second, third = (place.put(text) for text in ("wd", "wc", "wd wc"))
    bad = LeftOut(0, "text", "of no kind", "x"), LeftOut(1, "text", "of no kind", "y")
    for receipt in (first, second, third):
        note_left_out(folder, receipt, bad)
    place.ours.turn()
    place.deleted("receipt", first)
    assert [len(read_left_out(folder, one)) for one in (first, second, third)] == [0, 2, 2]
    place.deleted("id", "x")
    assert [len(read_left_out(folder, one)) for one in (first, second, third)] == [0, 1, 1]


def test_what_is_left_of_a_shard_must_be_what_deletions_left(place):
    place.put("wd wc", "wd", "wc")
    place.ours.turn()
    version = place.store.version
    place.deleted("id", "wd")
    (shard,) = place.seals.read(1).shards
    content = place.inbox.folder.read(shard.path)
    assert read_gone(place.inbox.folder, shard.path).lines == (1,)
    rollback(place.store, version)
    deleting = Deleting(place.ours.deletions, lambda: place.store.writable(), place.ours.run)
    place.inbox.folder.write(shard.path, b"another\n")
    with pytest.raises(StoreError, match="differs from the result of its deletions; restore it"):
        deleting.delete_again()
    place.inbox.folder.delete([shard.path])
    with pytest.raises(StoreError, match="the other documents of this shard have expired"):
        deleting.delete_again()
    assert read_honoured(place.inbox) < place.store.version
    place.inbox.folder.write(shard.path, content)
    assert deleting.delete_again() == 1
    assert deleting.delete_again() == 0


def test_numbers_are_compared_and_left_for_the_page(place, monkeypatch):
    store, inbox, run = place.store, place.inbox, place.ours.run
    asked = []

    def select(*told):
        asked.append(told)

    monkeypatch.setattr(selecting, "select", select)
    selecting.ask_selection(inbox, 4)
    found = compare(store, inbox, run)
    assert (found.version, found.selection, found.refusal, found.by_night) == (4, None, "", False)
    [(of, numbers, alphas, told)] = asked
    assert (of, told) == (store, run)
    assert list(numbers) == list(selecting.numbers_of_topics(store.basis, 10_000))
    assert alphas == [store.load_any_model("night-v3").alpha0]
    assert not selecting.selection_is_asked(inbox)
    assert found_selection(inbox) == found
    bare = replace(store, commit=replace(store.commit, models={}))
    assert selecting._alpha0(bare) == "auto"

    def failing(*told):
        raise StoreError("away")

    selecting.ask_selection(inbox, 4)
    monkeypatch.setattr(selecting, "select", failing)
    with pytest.raises(StoreError, match="away"):
        compare(store, inbox, run)
    assert selecting.selection_is_asked(inbox)


def test_of_states_one_to_eight_are_compared(archived, monkeypatch):
    store, asked = MomentStore.open(str(archived("sequences"))), []
    monkeypatch.setattr(
        selecting, "select_states", lambda store, model, options, run: asked.append(options)
    )
    selecting._selection(store, None)
    assert [one.topics for one in asked[0]] == list(range(1, 9))
