"""The store: reads a version, makes new versions, verifies files, and deletes garbage."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    changes="Recount",
    garbage="Garbage collect find_garbage",
    snapshot="Snapshot",
    store="MomentStore",
    verification="store_problems",
)
