"""Log: the versions of a store, the content of each version, and the names of all files."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.storage.log.commit_log import CommitConflict as CommitConflict
    from streaming_moments.storage.log.commit_log import CommitLog as CommitLog
    from streaming_moments.storage.log.commits import Commit as Commit
    from streaming_moments.storage.log.commits import Lineage as Lineage
    from streaming_moments.storage.log.commits import SegmentReference as SegmentReference
    from streaming_moments.storage.log.format import StoreFormat as StoreFormat
    from streaming_moments.storage.log.ledger import Ledger as Ledger
    from streaming_moments.storage.log.ledger import ShardRecord as ShardRecord
    from streaming_moments.storage.log.ledger import ShardsAlreadyCounted as ShardsAlreadyCounted
    from streaming_moments.storage.log.locks import Lock as Lock
    from streaming_moments.storage.log.locks import LockHeld as LockHeld
    from streaming_moments.storage.log.manifests import FileRecord as FileRecord
