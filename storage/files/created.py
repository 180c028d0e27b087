"""Create a file exactly once, even if the reply of the storage is lost."""

from __future__ import annotations

from itertools import chain
from pathlib import PurePosixPath

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.backends import remedy_of
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.retries import CREATE_ATTEMPTS, DELAY, retrying, worth_another


class CreationUnknown(StoreError):
    """It is unknown if a file was written, or if it would survive a power cut.

    Nothing was deleted.
    """


def create_once(
    folder: Folder, name: str, content: bytes, attempts: int = CREATE_ATTEMPTS, delay: float = DELAY
) -> bytes | None:
    """Create a file unless it exists; if another writer was first, return the content of that file.

    Returns None if `content` is stored durably. After an error, the file is read to find out
    whether it was written. So two writers of one name must write different content, or content that
    is valid for both. If nothing was written, it is tried again, up to `attempts` times. The waits
    between attempts are random and grow; `delay` is their scale in seconds.

    Raises CreationUnknown if an attempt failed and the file cannot be read, or if the file is
    written but cannot be synced to disk. Raises StoreError if nothing is written.

    Examples
    --------
    >>> folder = Folder.at("memory://created")
    >>> create_once(folder, "a.txt", b"sea"), create_once(folder, "a.txt", b"sea")
    (None, None)
    >>> create_once(folder, "a.txt", b"law")
    b'sea'
    """

    def attempt() -> bytes | Exception | None:
        return _created(folder, name, content, attempts, delay)

    found = attempt()
    if worth_another(found):
        # call `retrying` only for a retry, because it imports tenacity, which takes a tenth of a
        # second
        outcomes = chain([found], iter(attempt, ...))
        found = retrying(worth_another, attempts, delay)(next, outcomes)
    if isinstance(found, Exception):
        remedy = remedy_of(found) or "check space, permissions and connection, then try again"
        raise StoreError(
            f"{folder.url}/{name} could not be written ({folder.explain(found)}), and nothing was "
            f"stored; {remedy}"
        ) from found
    return found


def _created(
    folder: Folder, name: str, content: bytes, attempts: int, delay: float
) -> bytes | Exception | None:
    """Try once to create a file as `create_once` does; return the error if no file was written."""
    try:
        folder.create(name, content)
    except Exception as error:
        # read the file, because it may have been written although the reply was lost
        insisting = retrying(lambda outcome: isinstance(outcome, StoreError), attempts, delay)
        where, why = f"{folder.url}/{name}", folder.explain(error)
        try:
            found: bytes | None = insisting(folder.find, name)
        except StoreError as unknown:
            raise CreationUnknown(
                f"{where} may or may not be written: creating it failed ({why}), and so did "
                f"reading it ({unknown}). Nothing was deleted; try again when the storage answers"
            ) from unknown
        if found is None:
            return error
        if found != content:
            return found
        try:
            insisting(folder.sync, str(PurePosixPath(name).parent))
        except StoreError as unsynced:
            raise CreationUnknown(
                f"{where} is written, but a power cut may delete it: creating it failed ({why}), "
                f"and so did syncing its folder ({unsynced}). Nothing was deleted; check the disk, "
                "then check whether the file exists"
            ) from unsynced
    return None
