"""Creation: writes the files of an empty store."""

from __future__ import annotations

from collections.abc import Callable

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitConflict, CommitLog
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.format import StoreFormat, write_format


def create_files(
    folder: Folder,
    store_format: StoreFormat,
    commit: Commit,
    write: Callable[[Folder], None],
) -> None:
    """Write the files of an empty store, and then its first commit.

    The function `write` writes the foundation of the store. Files that an interrupted creation has
    left are written again. If the creation fails before it writes a file, no new folder remains.
    Raises StoreError if there is a store already, or if the storage cannot refuse a second writer
    of the same file.
    """
    require_absent(folder)
    log = CommitLog(folder, store_format.single_writer)
    with folder.removed_if_empty():
        log.probe()
        write_format(folder, store_format)
        write(folder)
        folder.sync("")
        try:
            log.put(commit)
        except CommitConflict as error:
            raise StoreError(_exists(folder)) from error


def require_absent(folder: Folder) -> None:
    """Raise StoreError if a folder holds a store already, or if its bucket does not exist.

    Call it before any costly work for a new store.
    """
    if CommitLog(folder).latest_version() is not None:
        raise StoreError(_exists(folder))
    folder.require_bucket()


def _exists(folder: Folder) -> str:
    return (
        f"there is already a store at {folder.url}; count into that one, or create the new one at "
        "another URL"
    )
