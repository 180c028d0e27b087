"""Refusing: a shard is left out for good only for what it holds, not for what failed around it."""

from __future__ import annotations

import hashlib

from streaming_moments.errors import ShardError, StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.storage.inbox.gone import digests_of
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.seals import SealedShard
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore


def require_refused(
    store: MomentStore, inbox: Inbox, shard: SealedShard, reason: str, run: Run
) -> None:
    """Make sure that a shard that an update left out cannot be counted, whoever reads it.

    What was acknowledged is in it: a storage or a worker that failed is no reason to drop that.

    Parameters
    ----------
    store : MomentStore
        That left it out.
    inbox : Inbox
        Where it is.
    shard : SealedShard
        As it was sealed.
    reason : str
        Why it was left out.
    run : Run
        Whose limits hold.

    Raises
    ------
    StoreError
        It is not as it was sealed, cannot be fetched, or can be read: it is to be counted later.
    """
    url = inbox.folder.shard(shard.path)
    content = inbox.folder.read(shard.path)
    if hashlib.sha256(content).hexdigest() not in digests_of(inbox.folder, shard):
        raise StoreError(f"{url} is not as it was sealed; restore it from a copy")
    if store.kind == SequencesFoundation.kind:
        return  # of two pieces that overlap each alone can be read
    (listed,) = list_shards([url], run.storage_options, store.form.kind)
    try:
        for _ in ReadingContext.of(store, run.limits, run.storage_options).prepared(listed):
            pass
    except ShardError:
        return
    raise StoreError(
        f"{url} was not counted ({reason}), though it can be read; it is tried again, check "
        "workers and their connection"
    )
