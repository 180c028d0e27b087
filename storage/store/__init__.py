"""The store: one version of it at a time, its changes, its verification, its garbage."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.store.changes import Recount
    from streaming_moments.storage.store.garbage import Garbage, collect, find_garbage
    from streaming_moments.storage.store.snapshot import Snapshot
    from streaming_moments.storage.store.store import MomentStore
    from streaming_moments.storage.store.verification import store_problems

__all__ = [
    "Garbage",
    "MomentStore",
    "Recount",
    "Snapshot",
    "collect",
    "find_garbage",
    "store_problems",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "changes": ("Recount",),
            "garbage": ("Garbage", "collect", "find_garbage"),
            "snapshot": ("Snapshot",),
            "store": ("MomentStore",),
            "verification": ("store_problems",),
        },
    )
