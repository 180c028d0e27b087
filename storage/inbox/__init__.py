"""The inbox: documents that come one by one, durable at once, and sealed into shards."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.inbox.batches import Piece, Submission
    from streaming_moments.storage.inbox.group_commit import GroupCommit, InboxClosed, KeyReused
    from streaming_moments.storage.inbox.inbox import Backlog, Inbox
    from streaming_moments.storage.inbox.records import RecordShape
    from streaming_moments.storage.inbox.sealing import SealLog
    from streaming_moments.storage.inbox.seals import Seal

__all__ = [
    "Backlog",
    "GroupCommit",
    "Inbox",
    "InboxClosed",
    "KeyReused",
    "Piece",
    "RecordShape",
    "Seal",
    "SealLog",
    "Submission",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "batches": ("Piece", "Submission"),
            "group_commit": ("GroupCommit", "InboxClosed", "KeyReused"),
            "inbox": ("Backlog", "Inbox"),
            "records": ("RecordShape",),
            "sealing": ("SealLog",),
            "seals": ("Seal",),
        },
    )
