"""Files at a URL: written whole, listed, sealed by a hash."""

from streaming_moments.storage.files.filesystems import FileState, open_file_system
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal

__all__ = ["FileState", "Folder", "open_file_system", "seal", "unseal"]
