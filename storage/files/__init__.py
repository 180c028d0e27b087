"""Files at a URL: written as a whole, listed, and sealed by a hash."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    filesystems="FileState open_file_system",
    folders="Folder",
    sealed="seal unseal",
)
