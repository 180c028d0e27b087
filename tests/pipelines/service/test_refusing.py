"""What becomes of shards that an update left out, by what each holds when it is read alone."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from sent_documents import sent

from streaming_moments.errors import KillsWorkers, NoRoom, ShardError, StoreError
from streaming_moments.pipelines.service.ingest_worker import quarantine
from streaming_moments.pipelines.service.ingest_worker.quarantine import (
    due_again,
    fails_alone,
    outcomes,
)
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.set_aside import all_set_aside, retry, set_aside

RUN = SimpleNamespace(limits=None)


@pytest.fixture
def log(tmp_path):
    return SealLog(Inbox.open(str(tmp_path / "inbox")))


def sealed(log, text):
    log.inbox.put([sent(text)])
    return log.seal_next().shards[0]


@pytest.fixture
def fails(log, monkeypatch):
    """Errors with which a reader fails, by the content; it needs no store."""
    errors = {}

    def prepared(content):
        yield 1
        if content in errors:
            raise errors[content]
        yield 2

    @contextmanager
    def as_shard(content):
        yield content

    context = SimpleNamespace(prepared=prepared)
    monkeypatch.setattr(
        quarantine, "ReadingContext", SimpleNamespace(of=lambda store, limits, ids: context)
    )
    monkeypatch.setattr(quarantine, "as_shard", as_shard)

    def fail(shard, error):
        errors[log.inbox.folder.read(shard.path)] = error

    return fail


def test_a_shard_is_read_alone_as_it_was_sealed(log, fails):
    shard = sealed(log, "a")
    url = log.inbox.folder.shard(shard.path)
    assert fails_alone(None, log.inbox, shard, RUN) is None
    fails(shard, ShardError("memory", "bad"))
    found = fails_alone(None, log.inbox, shard, RUN)
    assert (found.url, found.reason) == (url, "bad")
    fails(shard, OverflowError("int too big"))
    found = fails_alone(None, log.inbox, shard, RUN)
    assert (found.url, found.reason) == (url, "OverflowError: int too big")
    log.inbox.folder.write(shard.path, b"another\n")
    with pytest.raises(
        StoreError, match="has changed since it was sealed; restore it from a backup"
    ):
        fails_alone(None, log.inbox, shard, RUN)


def test_what_was_left_out_is_refused_for_what_it_holds_alone(log, fails):
    fine, full, deadly, bad, odd, reset = (sealed(log, text) for text in "abcdef")
    url = log.inbox.folder.shard
    fails(bad, ShardError("memory", "in memory"))
    fails(odd, OverflowError("int too big"))
    errors = (
        NoRoom(url(full.path), "full"),
        KillsWorkers(url(deadly.path), "killed"),
        ShardError(url(bad.path), "no text"),
        ShardError(url(odd.path), "a worker failed"),
        ShardError(url(reset.path), "reset"),
    )
    shards = (fine, full, deadly, bad, odd, reset)
    found = outcomes(None, log.inbox, shards, errors, RUN)
    assert found.refused == {bad.path: "no text"}
    assert found.aside == {
        full.path: "full",
        deadly.path: "killed",
        odd.path: "OverflowError: int too big",
    }
    assert found.failing == {reset.path: "reset"}


def test_of_shards_that_are_due_again_a_turn_takes_some(log, monkeypatch):
    shards = [sealed(log, text) for text in "abc"]
    paths = [shard.path for shard in shards]
    for shard in shards:
        set_aside(log.inbox.folder, shard.path, 1, "full")
    retry(log.inbox.folder, paths)
    assert due_again(log) == tuple(shards)
    monkeypatch.setattr(quarantine, "_RETRIED", 2)
    assert due_again(log) == tuple(shards[:2])
    assert [one.path for one in all_set_aside(log.inbox.folder)] == paths


def test_of_a_seal_that_has_expired_nothing_is_due_again(log):
    shards = [sealed(log, text) for text in "ab"]
    for shard in shards:
        set_aside(log.inbox.folder, shard.path, 1, "full")
    retry(log.inbox.folder, [shard.path for shard in shards])
    log.inbox.folder.write("expired.json", seal({"seal": 1}))
    assert due_again(log) == (shards[1],)
    assert [one.path for one in all_set_aside(log.inbox.folder)] == [shards[1].path]
