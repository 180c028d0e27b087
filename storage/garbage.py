"""Garbage: what writers that died have left, and the only function that deletes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.commits import CommitLog
from streaming_moments.storage.folders import Folder, StoredFile
from streaming_moments.storage.format import read_format
from streaming_moments.storage.layout import MODELS, SEGMENTS, model_folder, segment_folder
from streaming_moments.storage.versions import Commit

GRACE = timedelta(days=7)
# What is committed must not be near the age at which it may be deleted meanwhile.
OLDEST_COMMITTED = GRACE / 2
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Garbage:
    """A segment, a model or a temporary file that no commit names.

    Parameters
    ----------
    path : str
        Of the folder or the file, in the store.
    files : tuple of str
        All files of it, by path in the store.
    size : int
        In bytes.
    modified : datetime
        When the latest of its files was written, by the clock of the storage.
    """

    path: str
    files: tuple[str, ...]
    size: int
    modified: datetime


def find_garbage(folder: Folder, grace: timedelta = GRACE) -> list[Garbage]:
    """What no commit names and nobody has written to for longer than the grace.

    Parameters
    ----------
    folder : Folder
        The store.
    grace : timedelta
        Longer than any writer may take from its first file to its commit.

    Raises
    ------
    InvalidInput
        A negative grace.
    StoreError
        The log cannot be read whole, so nothing can be said to be garbage.

    Examples
    --------
    >>> from streaming_moments.storage.versions import Lineage
    >>> folder = Folder.at("memory://garbage")
    >>> CommitLog(folder).put(Commit.first(Lineage("0" * 64, "0" * 64, 1, True, {}), ""))
    >>> folder.write("segments/" + 32 * "a" + "/manifest.json", b"orphan")
    >>> [(found.path[:12], found.size) for found in find_garbage(folder, timedelta(0))]
    [('segments/aaa', 6)]
    """
    if grace < timedelta(0):
        raise InvalidInput(f"the grace is {grace}; give at least 0")
    log = CommitLog(folder)
    # listed before the log is read: what is committed in between is named
    files = folder.files("")
    named = _named(log.history(log.latest().version))
    now = folder.clock()
    heaps: dict[str, list[StoredFile]] = defaultdict(list)
    for file in files:
        place = _heap(file)
        if place and place not in named:
            heaps[place].append(file)
    found = [_garbage(place, members) for place, members in heaps.items()]
    return [garbage for garbage in found if now - garbage.modified >= grace]


def collect(folder: Folder, garbage: Sequence[Garbage]) -> None:
    """Delete garbage that `find_garbage` found.

    Raises
    ------
    StoreError
        A file cannot be deleted, or only a later version of the package may write the store.
    """
    read_format(folder).require_writable(folder.url)
    folder.delete([file for heap in garbage for file in heap.files])


def require_fresh(folder: Folder, names: Sequence[str]) -> None:
    """Refuse to commit what garbage collection may be about to delete.

    Parameters
    ----------
    folder : Folder
        The store.
    names : sequence of str
        Folders of the segments and models that no commit has named before.

    Raises
    ------
    StoreError
        One was begun longer ago than half the grace, or is gone.
    """
    now = folder.clock()
    for name in names:
        files = folder.files(name)
        if not files:
            raise StoreError(
                f"{folder.url}/{name} is gone, so it cannot be committed; run it again"
            )
        age = now - min(file.modified for file in files)
        if age > OLDEST_COMMITTED:
            raise StoreError(
                f"{folder.url}/{name} was begun {age / _DAY:.1f} days ago, too long to be "
                f"committed as `gc` may delete it ({OLDEST_COMMITTED / _DAY:g} days at most); "
                "run it again"
            )


def _named(commits: Sequence[Commit]) -> set[str]:
    """Folders of all segments and models of any version."""
    staged = [commit.staged.segments for commit in commits if commit.staged is not None]
    parts = chain.from_iterable([*(commit.segments for commit in commits), *staged])
    segments = {segment_folder(part.id) for part in parts}
    models = {
        model_folder(name, model.id) for commit in commits for name, model in commit.models.items()
    }
    return segments | models


def _heap(file: StoredFile) -> str:
    """Folder, or file, that is kept or deleted whole; empty for what is always kept."""
    if file.is_partial:
        return file.path
    parts = file.path.split("/")
    if parts[0] == SEGMENTS and len(parts) > 2:
        return "/".join(parts[:2])
    if parts[0] == MODELS and len(parts) > 3:
        return "/".join(parts[:3])
    return ""


def _garbage(place: str, files: Sequence[StoredFile]) -> Garbage:
    return Garbage(
        place,
        tuple(file.path for file in files),
        sum(file.size for file in files),
        max(file.modified for file in files),
    )
