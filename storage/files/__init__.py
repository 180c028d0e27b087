"""Files at a URL: write them as a whole, list them, and seal them by a hash."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    filesystems="FileState open_file_system",
    folders="Folder",
    sealed="seal unseal",
)
