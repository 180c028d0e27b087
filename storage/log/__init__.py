"""Log: the versions of a store, the content of each version, and the names of all files."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    commit_log="CommitConflict CommitLog",
    commits="Commit Lineage SegmentReference",
    format="StoreFormat",
    ledger="Ledger ShardRecord ShardsAlreadyCounted",
    locks="Lock LockHeld",
    manifests="FileRecord",
)
