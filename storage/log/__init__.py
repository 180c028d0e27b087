"""The log: which versions a store has, what each is made of, and what its files are called."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.log.commit_log import CommitConflict, CommitLog
    from streaming_moments.storage.log.commits import Commit, Lineage, SegmentReference
    from streaming_moments.storage.log.format import StoreFormat
    from streaming_moments.storage.log.ledger import Ledger, ShardRecord, ShardsAlreadyCounted
    from streaming_moments.storage.log.locks import Lock, LockHeld
    from streaming_moments.storage.log.manifests import FileRecord

__all__ = [
    "Commit",
    "CommitConflict",
    "CommitLog",
    "FileRecord",
    "Ledger",
    "Lineage",
    "Lock",
    "LockHeld",
    "SegmentReference",
    "ShardRecord",
    "ShardsAlreadyCounted",
    "StoreFormat",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "commit_log": ("CommitConflict", "CommitLog"),
            "commits": ("Commit", "Lineage", "SegmentReference"),
            "format": ("StoreFormat",),
            "ledger": ("Ledger", "ShardRecord", "ShardsAlreadyCounted"),
            "locks": ("Lock", "LockHeld"),
            "manifests": ("FileRecord",),
        },
    )
