"""Inbox: stores documents that arrive one by one, and joins them into shards."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    batches="Piece Submission",
    group_commit="GroupCommit InboxClosed",
    idempotency="KeyReused",
    inbox="Backlog Inbox",
    records="RecordShape",
    sealing="SealLog",
    seals="Seal",
)
