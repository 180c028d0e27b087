"""Which sealed shards are given to an update, and how."""

from types import SimpleNamespace

from sent_documents import sent

from streaming_moments.pipelines.jobs.update import UpdateResult
from streaming_moments.pipelines.service.ingest_worker import sealed_shards
from streaming_moments.pipelines.service.ingest_worker.sealed_shards import count_sealed
from streaming_moments.storage.inbox.deletions import note_gone
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of


def test_what_is_counted_or_all_deleted_is_not_counted_again(tmp_path, monkeypatch):
    log, given = SealLog(Inbox.open(str(tmp_path / "inbox"))), []
    shards = []
    for text in ("counted", "gone", "counted and gone", "new"):
        log.inbox.put([sent(text)])
        shards += log.seal_next().shards
    for shard in shards[1:3]:
        log.inbox.folder.delete([shard.path])
        note_gone(log.inbox.folder, shard.path, [0], None, "a" * 32)
    urls = [log.inbox.folder.shard(shard.path) for shard in shards]
    records = [ShardRecord(url, 9, "etag:0", 1, 1) for url in (urls[0], urls[2])]
    ledger = Ledger({"0a": table_of(records)})
    store = SimpleNamespace(ledger=lambda: ledger, form=SimpleNamespace(kind=None))

    def update(store, listed, run, **how):
        given.append(([one.url for one in listed], how))
        return UpdateResult(store, 1, 0, 1, 1, 0, ())

    monkeypatch.setattr(sealed_shards, "update", update)
    found = count_sealed(store, log.inbox, shards, SimpleNamespace(storage_options=None))
    assert (found.store, found.bad) == (store, ())
    # one that cannot be read keeps no other from being counted
    assert given == [([urls[3]], {"skip_bad_shards": True})]
