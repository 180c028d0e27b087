"""The store: one version at a time, its changes, its verification and its garbage."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    changes="Recount",
    garbage="Garbage collect find_garbage",
    snapshot="Snapshot",
    store="MomentStore",
    verification="store_problems",
)
