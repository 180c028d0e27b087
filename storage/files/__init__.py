"""Files at a URL: write whole files, list files, and add a hash that detects damage."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    filesystems="FileState open_file_system",
    folders="Folder",
    sealed="seal unseal",
)
