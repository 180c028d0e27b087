"""Count sealed shards as an update does, except those that no reader can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streaming_moments.errors import ShardError, StoreError
from streaming_moments.pipelines.cluster.cluster import SchedulerLost
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost
from streaming_moments.pipelines.jobs.update import UpdateResult, update
from streaming_moments.pipelines.service.ingest_worker.quarantine import fails_alone, is_there
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.seals import SealedShard
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore


def count_sealed(
    store: MomentStore, inbox: Inbox, shards: Sequence[SealedShard], run: Run
) -> UpdateResult:
    """Count those shards that the store has not counted; `bad` of the result has left-out shards.

    `store` is writable. A shard whose documents were all deleted is skipped. If the storage or the
    cluster fails, the error is raised. After any other error of `update`, each shard is read alone,
    and shards that fail alone are left out. If no shard fails alone, the error of `update` is
    raised.
    """
    ledger = store.ledger()
    names = {inbox.folder.shard(shard.path): shard for shard in shards}
    # Compare names and not contents: an interrupted deletion may have rewritten the file of a
    # counted shard, and this shard must not be counted again.
    new = {
        name: shard
        for name, shard in names.items()
        if ledger.find(name) is None and is_there(inbox, shard)
    }
    bad = list[ShardError]()
    while True:
        left_out = {error.url for error in bad}
        wanted = [name for name in new if name not in left_out]
        if not wanted:
            return UpdateResult(store, 0, 0, 0, 0, 0, tuple(bad))
        listed = list_shards(wanted, run.storage_options, store.form.kind)
        try:
            result = update(store, listed, run, skip_bad_shards=True)
        except (StoreError, WorkersLost, SchedulerLost, OSError):
            raise
        except Exception:
            # catch any other error, because one shard that fails must not keep the others from
            # being counted
            alone = (fails_alone(store, inbox, new[name], run) for name in wanted)
            found = [error for error in alone if error is not None]
            if not found:
                raise
            bad += found
        else:
            return replace(result, bad=(*bad, *result.bad))
