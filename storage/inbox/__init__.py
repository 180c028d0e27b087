"""Inbox: stores documents that arrive one by one, and joins them to shards."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.storage.inbox.batches import Piece as Piece
    from streaming_moments.storage.inbox.batches import Submission as Submission
    from streaming_moments.storage.inbox.group_commit import GroupCommit as GroupCommit
    from streaming_moments.storage.inbox.group_commit import InboxClosed as InboxClosed
    from streaming_moments.storage.inbox.idempotency import KeyReused as KeyReused
    from streaming_moments.storage.inbox.inbox import Backlog as Backlog
    from streaming_moments.storage.inbox.inbox import Inbox as Inbox
    from streaming_moments.storage.inbox.records import RecordShape as RecordShape
    from streaming_moments.storage.inbox.sealing import SealLog as SealLog
    from streaming_moments.storage.inbox.seals import Seal as Seal
