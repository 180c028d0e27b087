"""Files at a URL: written as a whole, listed, and sealed by a hash."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.storage.files.filesystems import FileState as FileState
    from streaming_moments.storage.files.filesystems import open_file_system as open_file_system
    from streaming_moments.storage.files.folders import Folder as Folder
    from streaming_moments.storage.files.sealed import seal as seal
    from streaming_moments.storage.files.sealed import unseal as unseal
