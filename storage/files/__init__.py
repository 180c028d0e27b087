"""Files at a URL: written whole, listed, sealed by a hash."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.files.filesystems import FileState, open_file_system
    from streaming_moments.storage.files.folders import Folder
    from streaming_moments.storage.files.sealed import seal, unseal

__all__ = ["FileState", "Folder", "open_file_system", "seal", "unseal"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "filesystems": ("FileState", "open_file_system"),
            "folders": ("Folder",),
            "sealed": ("seal", "unseal"),
        },
    )
