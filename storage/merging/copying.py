"""Copying: copies segments of another store, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import unseal
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.layout import segment_folder
from streaming_moments.storage.log.manifests import (
    MANIFEST,
    FileRecord,
    files_from_json,
    read_files,
)
from streaming_moments.storage.log.uncommitted import Uncommitted

# number of batches that are copied at the same time; most of the time is spent waiting for the
# storage
AT_ONCE = 8
_BATCH = 4 << 20  # limit of the bytes of files in a batch; a larger file is a batch of its own
# limit of the bytes of files in memory; two files may be in memory even if together they exceed the
# limit
_HELD = 64 << 20


def copy_segment(
    source: Folder, reference: SegmentReference, folder: Folder, identity: str
) -> Uncommitted:
    """Copy a segment of another store into this one under a new identifier.

    Every file is read and compared with its hash. If both stores are on one disk, the file then
    gets a hard link instead of a copy: files of a segment never change, and each store deletes only
    its own names. The manifest is copied unchanged, so the SHA-256 of the manifest identifies the
    segment later.

    A new identifier is needed although the content is known: garbage collection may be deleting the
    files of an earlier copy.
    """
    begun = folder.clock()
    there = segment_folder(reference.id)
    manifest = source.read(f"{there}/{MANIFEST}")
    where = f"{source.url}/{there}/{MANIFEST}"
    if hashlib.sha256(manifest).hexdigest() != reference.manifest:
        raise StoreError(f"{where} differs from the committed manifest; restore it from a copy")
    files = files_from_json(unseal(manifest, where).get("files"), where)
    here = segment_folder(identity)

    def copy(paths: Sequence[str]) -> None:
        contents = read_files(source, there, files, paths)
        folder.write_all(
            {
                f"{here}/{path}": content
                for path, content in contents.items()
                if not folder.link(f"{here}/{path}", source, f"{there}/{path}")
            }
        )

    largest = max((record.size for record in files.values()), default=0)
    with ThreadPoolExecutor(_at_once(largest)) as pool:
        for _ in pool.map(copy, _batches(files)):
            pass
    folder.write(f"{here}/{MANIFEST}", manifest)
    folder.sync(here)
    sizes = {path: record.size for path, record in files.items()}
    return Uncommitted(here, {**sizes, MANIFEST: len(manifest)}, begun)


def bytes_held(nbytes: float, largest: float) -> float:
    """Return how many bytes of files are in memory, at most, while segments are copied.

    `nbytes` is the size of all files of the segments, `largest` the size of the largest file.

    Examples
    --------
    >>> bytes_held(1 << 30, 20 << 20) / (1 << 20), bytes_held(1000, 500)
    (60.0, 1000)
    """
    return min(nbytes, _at_once(largest) * max(_BATCH, largest))


def _at_once(largest: float) -> int:
    return int(max(2, min(AT_ONCE, _HELD // max(_BATCH, largest))))


def _batches(files: Mapping[str, FileRecord]) -> Iterator[list[str]]:
    """Cut the files into lists of at most `_BATCH` bytes, or of one file."""
    batch: list[str] = []
    held = 0
    for path, record in files.items():
        if batch and held + record.size > _BATCH:
            yield batch
            batch, held = [], 0
        batch.append(path)
        held += record.size
    if batch:
        yield batch
