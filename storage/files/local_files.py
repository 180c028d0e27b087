"""Local files: each written atomically, and synced so that it survives a power cut.

No other module of the store writes to a local disk. Sizes are in bytes, paths are absolute.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterator

PARTIAL = ".partial"

# errors that mean that no hard link is possible: another disk, a missing permission, a disk without
# links, too many names, or a missing file
_UNLINKABLE = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EMLINK, errno.ENOENT)


def write_whole(path: str, content: bytes) -> None:
    """Write or replace a file atomically; it is durable after a `sync` of its folder.

    Creates missing folders. After an OSError the file is either unchanged or written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/words/a.txt", b"sea")
    ...     sync(folder)
    ...     open(f"{folder}/words/a.txt").read()
    'sea'
    """
    with _written_aside(path, content) as aside:
        os.replace(aside, path)


def copy_whole(source: str, path: str) -> None:
    """Copy a local file to another name atomically; raises the errors of `write_whole`.

    A killed process may leave a hidden file beside the copy, which readers of folders skip.
    """
    aside = _aside(path)
    try:
        shutil.copyfile(source, aside)
        # sync the content first, as a power cut may otherwise leave the name without the content
        _sync_file(aside)
        os.replace(aside, path)
    finally:
        remove(aside)


def link_whole(source: str, path: str) -> bool:
    """Make a hard link to a file, which must never change; return whether that was possible.

    A link is impossible for a missing file and for a file on another disk. It is also impossible if
    a new file at `path` would have another user, group or permissions. The name is durable after a
    `sync` of its folder. Creates missing folders.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/words/a.txt", b"sea")
    ...     made = link_whole(f"{folder}/words/a.txt", f"{folder}/names/b.txt")
    ...     made, open(f"{folder}/names/b.txt").read()
    (True, 'sea')
    """
    if os.name != "posix":
        return False
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    try:
        found = os.lstat(source)
        # a link keeps the owner and permissions of its file, so they must be those of the folder
        if not stat.S_ISREG(found.st_mode) or _rights(found) != _rights(os.stat(folder)):
            return False
        os.link(source, path)
    except OSError as error:
        if error.errno in _UNLINKABLE:
            return False
        raise
    return True


def create_whole(path: str, content: bytes) -> None:
    """Write a durable file atomically unless it exists; of several writers one succeeds.

    Created folders are durable after a `sync`. Raises FileExistsError if the file exists. After
    another OSError the file may be written nevertheless, and is then durable only after a `sync`
    of its folder.
    """
    # O_EXCL can leave a partial file after a kill, and fsspec's mode is not exclusive. os.link is
    # atomic and exclusive.
    with _written_aside(path, content) as aside:
        os.link(aside, path)
    _sync_folder(os.path.dirname(path))


def sync(path: str) -> None:
    """Make the names of all files and folders in, below and above a folder survive a power cut.

    The files must come from `write_whole` or `create_whole`. If this raises OSError, a power cut
    may still lose written files: sync again.
    """
    for folder, _, _ in os.walk(path, onerror=_raise):
        _sync_folder(folder)
    # Also sync the folders above: a writer may have created some of them and then been killed. Stop
    # at the first folder that this process cannot write to, as no writer can have added to it.
    while not os.path.ismount(path) and os.access(os.path.dirname(path), os.W_OK):
        path = os.path.dirname(path)
        _sync_folder(path)


def files_below(path: str) -> dict[str, dict[str, float]]:
    """Map the path of every file below a folder to its size in bytes and its time of last change.

    The time of a file with several names (hard links) is at least the time at which the newest of
    them was added. Missing folders and files deleted meanwhile are skipped.
    """
    found = {}
    for folder, _, names in os.walk(path, onerror=_raise_unless_missing):
        for name in names:
            place = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                state = os.stat(place)
                named = state.st_ctime if state.st_nlink > 1 else 0
                found[place] = {"size": state.st_size, "mtime": max(state.st_mtime, named)}
    return found


def remove(path: str) -> None:
    """Delete a file, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove_empty(path: str) -> None:
    """Delete a folder, if it exists and is empty."""
    try:
        os.rmdir(path)
    except OSError as error:
        # the folder stays if a writer has created a file in it meanwhile
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise


def clock(path: str) -> float:
    """Return the present time by the clock of the disk, in seconds since 1970.

    Creates an empty file beside `path`, reads its time and deletes it. This works even on a full
    disk. Creates the folder if it is missing.
    """
    return _tried(path, b"")


def require_room(path: str) -> None:
    """Write a few bytes to a file beside `path` and delete it; OSError if the disk is full."""
    _tried(path, b"room")


def _tried(path: str, content: bytes) -> float:
    """Write a file beside `path`, delete it, and return the time at which the disk wrote it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = _aside(path)
    try:
        # do not sync the file, as it is deleted at once
        with open(aside, "xb") as file:
            if content:
                file.write(content)
                file.flush()
            return os.fstat(file.fileno()).st_mtime
    finally:
        remove(aside)


@contextlib.contextmanager
def _written_aside(path: str, content: bytes) -> Iterator[str]:
    """Write and sync a temporary file in the folder of `path`; yield its path, then delete it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = _aside(path)
    try:
        with open(aside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield aside
    finally:
        remove(aside)


def _rights(state: os.stat_result) -> tuple[int, int, int, int]:
    """Return the disk, owner, group and permissions of a file, to compare it with others."""
    return state.st_dev, state.st_uid, state.st_gid, state.st_mode & 0o666


def _aside(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{uuid.uuid4().hex}{PARTIAL}")


def _sync_file(path: str) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _raise(error: OSError) -> None:
    raise error


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
