"""The store: one version at a time, its changes, its verification and its garbage."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.storage.store.changes import Recount as Recount
    from streaming_moments.storage.store.garbage import Garbage as Garbage
    from streaming_moments.storage.store.garbage import collect as collect
    from streaming_moments.storage.store.garbage import find_garbage as find_garbage
    from streaming_moments.storage.store.snapshot import Snapshot as Snapshot
    from streaming_moments.storage.store.store import MomentStore as MomentStore
    from streaming_moments.storage.store.verification import store_problems as store_problems
