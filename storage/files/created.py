"""Created: creates a file exactly once, even if the reply of the storage is lost."""

from __future__ import annotations

import errno
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from streaming_moments.errors import StoreError
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.storage.files.folders import Folder

if TYPE_CHECKING:
    import tenacity
else:
    tenacity = LazyModule("tenacity")

_HOPELESS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})


class CreationUnknown(StoreError):
    """A file may or may not be written, or may not survive a power cut; nothing was deleted."""


def create_once(
    folder: Folder, name: str, content: bytes, attempts: int = 4, delay: float = 0.05
) -> bytes | None:
    """Create a file unless it exists; return the content of the other writer if it was first.

    Returns None if this content is stored durably. After an error the file is read to find
    out. Two writers of one name must write different content, or content that serves both.
    `attempts` bounds the attempts of a creation that wrote nothing. `delay` is the scale of the
    growing random waits between attempts, in seconds.

    Raises CreationUnknown if the creation failed and the file cannot be read, or is written but
    cannot be synced. Raises StoreError if nothing is written.

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
    if _is_worth_another(found):
        # loaded only for retries, as tenacity takes a tenth of a second to load
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_result(_is_worth_another),
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
            stop=tenacity.stop_after_attempt(attempts),
            wait=tenacity.wait_random_exponential(multiplier=delay, max=2),
        )
        found = retrying(next, chain([found], iter(attempt, ...)))
    if isinstance(found, Exception):
        raise StoreError(
            f"{folder.url}/{name} could not be written ({folder.explain(found)}), and nothing was "
            "stored; check space, permissions and connection, then try again"
        ) from found
    return found


def lacks_space(error: BaseException | None) -> bool:
    """Whether an error, or its cause, is a full disk or quota."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__
    return False


def _is_worth_another(found: bytes | Exception | None) -> bool:
    return isinstance(found, Exception) and getattr(found, "errno", None) not in _HOPELESS


def _created(
    folder: Folder, name: str, content: bytes, attempts: int, delay: float
) -> bytes | Exception | None:
    """Create a file as `create_once`, but return the error if nothing is written."""
    try:
        folder.create(name, content)
    except Exception as error:
        # the file may be written although the reply was lost, so the file is read
        insisting = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(StoreError),
            stop=tenacity.stop_after_attempt(attempts),
            wait=tenacity.wait_random_exponential(multiplier=delay, max=2),
            reraise=True,
        )
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
