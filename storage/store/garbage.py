"""Garbage: deletes files that interrupted writers or expired versions have left."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.folders import Folder, StoredFile
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commit_json import commit_from_json, expired_to_json, is_expired
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.format import read_format
from streaming_moments.storage.log.layout import (
    COMMITS,
    MODELS,
    POLISHING,
    SEGMENTS,
    commit_file,
    model_folder,
    segment_folder,
)
from streaming_moments.storage.log.manifests import MANIFEST
from streaming_moments.storage.log.uncommitted import Uncommitted

GRACE = timedelta(days=7)

# A commit may name only files that are younger than this limit. `gc` deletes uncommitted files from
# the age `GRACE`. The limit is far below `GRACE`, because `gc` and a commit may run at the same
# time.
OLDEST_COMMITTED = GRACE / 2

_DAY = timedelta(days=1)
# `sweep` empties the file of an expired commit. The emptied file has at most this many bytes, and
# the file of any other commit has more.
_LONGEST_EMPTIED = 300


class GarbageCommitted(StoreError):
    """Files found as garbage were not deleted, because a commit has named them meanwhile."""


@dataclass(frozen=True)
class Garbage:
    """A segment, a model, the sums of a polishing, or a temporary file that no commit names.

    path : path of the folder or file in the store
    files : paths in the store of all files to delete
    modified : time of the latest of these files, by the clock of the storage
    version : no commit up to and including this version names the files
    """

    path: str
    files: tuple[str, ...]
    size: int
    modified: datetime
    version: int

    @property
    def is_sealed(self) -> bool:
        """Whether there is a manifest. If so, all files are written and may soon be committed."""
        return f"{self.path}/{MANIFEST}" in self.files


def find_garbage(folder: Folder, grace: timedelta = GRACE) -> list[Garbage]:
    """Find files that no commit names and that have not changed during the grace period.

    Stored sums of all days that only earlier versions name are garbage, too, because these versions
    can be read without them. Raises InvalidInput if the grace period is negative. Raises StoreError
    if the log cannot be read.

    grace : the period, which must be longer than any writer needs from its first file to its commit

    Examples
    --------
    >>> from streaming_moments.storage.log.commits import Lineage
    >>> folder = Folder.at("memory://garbage")
    >>> CommitLog(folder).put(Commit.first(Lineage("0" * 64, "0" * 64, 1, True, {}), ""))
    >>> folder.write("segments/" + 32 * "a" + "/manifest.json", b"orphan")
    >>> [(found.path[:12], found.size) for found in find_garbage(folder, timedelta(0))]
    [('segments/aaa', 6)]
    """
    if grace < timedelta(0):
        raise InvalidInput(f"the grace period is {grace}; give at least 0")
    log = CommitLog(folder)
    # list files before reading the log, so that the log names files that are committed meanwhile
    files = folder.files("")
    head = log.latest()
    version = head.version
    history = log.history(version)
    named = named_by(history) - (_wholes(history) - _wholes([head]))
    now = folder.clock()
    heaps: dict[str, list[StoredFile]] = defaultdict(list)
    for file in files:
        place = _heap(file)
        if place and place not in named:
            heaps[place].append(file)
    found = [_garbage(place, members, version) for place, members in heaps.items()]
    return [garbage for garbage in found if now - garbage.modified >= grace]


def collect(folder: Folder, garbage: Sequence[Garbage]) -> None:
    """Delete garbage that `find_garbage` found.

    If garbage has all its files (see `is_sealed`), a slow writer might still commit it. So
    `collect` makes a commit of its own before it deletes the files. The slow writer then finds its
    version number in use. It checks its files again, and cannot commit them because they are too
    old. Raises GarbageCommitted if another writer has committed the garbage. Raises StoreError if a
    file cannot be deleted, or if only a later version of the package may write the store.
    """
    form = read_format(folder)
    form.require_writable(folder.url)
    log = CommitLog(folder, form.single_writer)
    # incomplete files need no commit, because their writer checks them before it commits
    _delete(folder, [heap for heap in garbage if not heap.is_sealed])
    sealed = [heap for heap in garbage if heap.is_sealed]
    message = f"gc: {of_number(len(sealed), 'place')}, {sum(heap.size for heap in sealed):,} bytes"

    def change(head: Commit) -> Commit:
        since = range(min(heap.version for heap in sealed) + 1, head.version + 1)
        named = named_by([log.read(version) for version in since if head.keeps(version)])
        for heap in sealed:
            if heap.path in named:
                raise GarbageCommitted(
                    f"{folder.url}/{heap.path} has been committed; run this again"
                )
        return head.successor("gc", message)

    while sealed:
        try:
            log.extend(log.latest(), change)
        except StoreError as error:
            if not _is_full(error):
                raise
            # The storage is full, so no other writer can commit these files either. It is therefore
            # safe to delete the files of one place without a commit. This frees space for the
            # commit.
            _delete(folder, [sealed.pop()])
        else:
            _delete(folder, sealed)
            break


def held_alone(folder: Folder, gone: Sequence[Commit], kept: Sequence[Commit]) -> list[Garbage]:
    """Find segments and models that a commit in `gone` names, but no commit in `kept`."""
    places = named_by(gone) - named_by(kept)
    version = max(commit.version for commit in kept)
    heaps: dict[str, list[StoredFile]] = defaultdict(list)
    for kind in (SEGMENTS, MODELS) if places else ():
        for file in folder.files(kind):
            inside = replace(file, path=f"{kind}/{file.path}")
            if (place := _heap(inside)) in places:
                heaps[place].append(inside)
    return [_garbage(place, members, version) for place, members in sorted(heaps.items())]


def sweep(folder: Folder) -> list[Garbage]:
    """Delete files that only expired versions need, and empty the commit files of these versions.

    Returns the deleted files.

    No writer can commit these files any more. A rollback to an expired version is refused, and a
    slow writer finds that the expiry has used its version number. The files of emptied commits
    stay, so that no writer can create their versions again. After a StoreError, call `sweep` again.
    """
    log = CommitLog(folder)
    head = log.latest()
    gone = [
        commit_from_json(content, f"{folder.url}/{path}")
        for path in unswept(folder, head)
        if not is_expired(content := unseal(folder.read(path), f"{folder.url}/{path}"))
    ]
    if not gone:
        return []
    found = held_alone(folder, gone, log.history(head.version))
    _delete(folder, found)
    # make the deletions durable: files that reappear after a power cut would be named by no commit
    folder.sync("")
    for commit in gone:
        folder.write(commit_file(commit.version), seal(expired_to_json(commit)))
    folder.sync(COMMITS)
    return found


def unswept(folder: Folder, head: Commit) -> list[str]:
    """Return the paths of commit files of expired versions that `sweep` has not emptied yet."""
    found = []
    for file in folder.files(COMMITS):
        number = file.path.removesuffix(".json")
        if number.isdecimal() and int(number) < head.version and not head.keeps(int(number)):
            found += [f"{COMMITS}/{file.path}"] if file.size > _LONGEST_EMPTIED else []
    return found


def require_fresh(folder: Folder, written: Sequence[Uncommitted]) -> None:
    """Raise StoreError for segments and models that garbage collection may have deleted.

    `written` are the new segments and models of a commit. Each of them is refused if its first file
    was written more than half the grace period of `gc` ago, or if its files have changed after they
    were written.
    """
    for part in written:
        now = folder.clock()
        where = f"{folder.url}/{part.folder}"
        files = [file for file in folder.files(part.folder) if not file.is_partial]
        found = {file.path: file.size for file in files}
        for path, _ in sorted(found.items() ^ part.sizes.items()):
            what = "differs from the written file" if path in found else "is missing"
            raise StoreError(f"{where}/{path} {what}, so it cannot be committed; run this again")
        age = now - min([part.begun, *(file.modified for file in files)])
        if age > OLDEST_COMMITTED:
            raise StoreError(
                f"{where} was begun {age / _DAY:.1f} days ago and is too old to be committed: the "
                f"limit is {OLDEST_COMMITTED / _DAY:g} days, because `gc` deletes old uncommitted "
                "files; run this again"
            )


def _delete(folder: Folder, garbage: Iterable[Garbage]) -> None:
    folder.delete([file for heap in garbage for file in heap.files])


def _is_full(error: StoreError) -> bool:
    """Whether a commit failed because the storage is full."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def named_by(commits: Sequence[Commit]) -> set[str]:
    """Return the folders of all segments and models that some commits name."""
    staged = [commit.staged.segments for commit in commits if commit.staged is not None]
    parts = chain.from_iterable([*(commit.segments for commit in commits), *staged])
    segments = {segment_folder(part.id) for part in parts}
    segments |= {segment_folder(one.id) for commit in commits for one in commit.live_sums}
    models = {
        model_folder(name, model.id) for commit in commits for name, model in commit.models.items()
    }
    return segments | models


def _wholes(commits: Iterable[Commit]) -> set[str]:
    """Return the folders of the stored sums of all days that some commits name."""
    return {segment_folder(one.id) for commit in commits for one in commit.sums if one.whole}


def _heap(file: StoredFile) -> str:
    """Return the folder or file that is deleted as a whole if `file` is garbage.

    Returns an empty string if the file is never deleted.
    """
    if file.is_partial:
        return file.path
    parts = file.path.split("/")
    if parts[0] in (SEGMENTS, POLISHING) and len(parts) > 2:
        return "/".join(parts[:2])
    if parts[0] == MODELS and len(parts) > 3:
        return "/".join(parts[:3])
    return ""


def _garbage(place: str, files: Sequence[StoredFile], version: int) -> Garbage:
    return Garbage(
        place,
        tuple(file.path for file in files),
        sum(file.size for file in files),
        max(file.modified for file in files),
        version,
    )
