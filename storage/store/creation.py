"""Creation: the files of an empty store."""

from __future__ import annotations

from streaming_moments.errors import StoreError
from streaming_moments.statistics.base import Foundation
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitConflict, CommitLog
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.format import StoreFormat, write_format
from streaming_moments.storage.segments.foundations import write_foundation, write_vocabulary


def create_files(
    folder: Folder,
    store_format: StoreFormat,
    commit: Commit,
    foundation: Foundation,
    words: tuple[Vocabulary, TokenPolicy | None] | None,
) -> None:
    """Write the files of an empty store, its first commit last.

    Files of an interrupted creation are written again. Raises StoreError if there is a store
    already, or the storage does not refuse a second writer.
    """
    require_absent(folder)
    log = CommitLog(folder, store_format.single_writer)
    log.probe()
    write_format(folder, store_format)
    if words is not None:
        write_vocabulary(folder, *words)
    write_foundation(folder, foundation)
    folder.sync("")
    try:
        log.put(commit)
    except CommitConflict as error:
        raise StoreError(_exists(folder)) from error


def require_absent(folder: Folder) -> None:
    """Raise StoreError if a folder holds a store, before any work is spent on creating one."""
    if CommitLog(folder).latest_version() is not None:
        raise StoreError(_exists(folder))


def _exists(folder: Folder) -> str:
    return (
        f"there is already a store at {folder.url}; count into that one, or create the new one at "
        "another URL"
    )
