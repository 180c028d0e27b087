"""Manifests: lists of the files of a folder, with sizes and hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import unseal
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.layout import segment_folder
from streaming_moments.storage.log.schema import Count, Days, Digest, Path, checked

MANIFEST = "manifest.json"
_AT_ONCE = 8  # verification holds at most this many files, of up to 32 MiB each, in memory
_RESTORE = "restore it from a copy"
_FilesJson = dict[Path, tuple[Count, Digest]]


@dataclass(frozen=True)
class FileRecord:
    """One file as it was written.

    sha256 : 64 hexadecimal digits
    largest : largest magnitude of its numbers, for files whose sums must stay below a bound
    """

    path: str
    size: int
    sha256: str
    largest: int = 0

    @classmethod
    def of(cls, path: str, content: bytes, largest: int = 0) -> FileRecord:
        """Make the record of a file from its content."""
        return cls(path, len(content), hashlib.sha256(content).hexdigest(), largest)


@dataclass(frozen=True)
class SegmentManifest:
    """Content of a segment's manifest.

    files : record of every file, by path
    documents, tokens, shards : numbers of counted documents, tokens and shards
    names : fingerprints of its foundation, as in `Foundation.names`
    dates : days of its documents
    """

    files: Mapping[str, FileRecord]
    documents: int
    tokens: int
    shards: int
    names: Mapping[str, str]
    dates: DateRange | None = None


@dataclass(frozen=True)
class _SegmentJson:
    """Form of `SegmentManifest` in JSON."""

    files: _FilesJson
    documents: Count
    tokens: Count
    shards: Count
    basis: Digest
    vocabulary: str
    dates: Days | None = None


_FILES = TypeAdapter(_FilesJson)
_SEGMENT = TypeAdapter(_SegmentJson)


def files_to_json(files: Iterable[FileRecord]) -> dict[str, list[Any]]:
    """Map the path of each file to its size and hash, in order of the paths."""
    ordered = sorted(files, key=lambda file: file.path)
    return {file.path: [file.size, file.sha256] for file in ordered}


def files_from_json(content: object, where: str) -> dict[str, FileRecord]:
    """Map paths to records of files; StoreError also for a path that leads out of the folder."""
    return _records(checked(_FILES, content, f"{where} has no valid list of files"))


def _records(files: _FilesJson) -> dict[str, FileRecord]:
    return {path: FileRecord(path, *entry) for path, entry in files.items()}


def read_manifests(folder: Folder, digests: Mapping[str, str]) -> list[dict[str, Any]]:
    """Read the manifests of some folders, given the committed SHA-256 of each.

    Raises StoreError also for a manifest that differs from the committed one.
    """
    contents = []
    found = folder.read_all([f"{name}/{MANIFEST}" for name in digests])
    for (name, digest), data in zip(digests.items(), found, strict=True):
        where = f"{folder.url}/{name}/{MANIFEST}"
        content = unseal(data, where)
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(f"{where} differs from the committed manifest; restore it from a copy")
        contents.append(content)
    return contents


def segment_manifests(
    folder: Folder, references: Sequence[SegmentReference]
) -> list[SegmentManifest]:
    """Read the manifests of segments, as `read_manifests` does.

    Raises StoreError also for a manifest that names a file outside the segment.
    """
    names = {segment_folder(reference.id): reference.manifest for reference in references}
    contents = read_manifests(folder, names)
    return [
        _segment_manifest(content, f"{folder.url}/{name}/{MANIFEST}")
        for name, content in zip(names, contents, strict=True)
    ]


def _segment_manifest(content: Mapping[str, Any], where: str) -> SegmentManifest:
    found = checked(_SEGMENT, content, f"{where} is not a valid manifest of a segment")
    return SegmentManifest(
        _records(found.files),
        found.documents,
        found.tokens,
        found.shards,
        {"basis": found.basis, "vocabulary": found.vocabulary},
        found.dates,
    )


def read_files(
    folder: Folder, name: str, files: Mapping[str, FileRecord], paths: Iterable[str]
) -> dict[str, bytes]:
    """Read files in the folder `name`, and check the size and hash of each."""
    [found] = read_folders(folder, [(name, files, tuple(paths))])
    return found


def read_folders(
    folder: Folder, chosen: Sequence[tuple[str, Mapping[str, FileRecord], Sequence[str]]]
) -> list[dict[str, bytes]]:
    """Read some files of each folder as `read_files` does, at the same time if possible."""
    for name, files, paths in chosen:
        for path in paths:
            if path not in files:
                raise StoreError(f"{folder.url}/{name}/{MANIFEST} does not list {path}; restore it")
    contents = iter(
        folder.read_all(
            [f"{name}/{path}" for name, _, paths in chosen for path in paths],
            [limit for _, files, paths in chosen for limit in _limits(files, paths)],
        )
    )
    found = [dict(zip(paths, contents, strict=False)) for _, _, paths in chosen]
    for (name, files, _), own in zip(chosen, found, strict=True):
        for path, content in own.items():
            require_file(f"{folder.url}/{name}/{path}", content, files[path])
    return found


def require_file(where: str, content: bytes, record: FileRecord) -> None:
    """Raise StoreError if a file does not have the size and hash of its record."""
    problem = damage(where, content, record)
    if problem:
        raise StoreError(f"{problem}; {_RESTORE}")


def damage(where: str, content: bytes, record: FileRecord) -> str:
    """Describe the damage of a file's content; empty if it is intact."""
    if len(content) != record.size:
        return f"{where} does not have {record.size} bytes"
    if hashlib.sha256(content).hexdigest() != record.sha256:
        return f"{where} is damaged (its SHA-256 differs from the recorded one)"
    return ""


def misfits(
    where: str, found: Mapping[str, int], files: Mapping[str, FileRecord]
) -> Iterator[tuple[str, str]]:
    """Compare a listing of a folder with records of its files; yield each problem with its remedy.

    `where` names the folder. `found` maps the path of each listed file to its size in bytes. The
    manifest itself need not be among the records.
    """
    for path in sorted((found.keys() | files.keys()) - {MANIFEST}):
        if path not in files:
            yield f"{where}/{path} is not in the manifest", "move it out of the store"
        elif path not in found:
            yield f"{where}/{path} is missing", _RESTORE
        elif found[path] != files[path].size:
            size = files[path].size
            yield f"{where}/{path} has {found[path]} bytes instead of {size}", _RESTORE


def problems_with_files(
    folder: Folder, name: str, files: Mapping[str, FileRecord]
) -> Iterator[str]:
    """Describe files of the folder `name` that are missing, damaged or unlisted."""
    found = folder.sizes(name)
    for problem, _ in misfits(f"{folder.url}/{name}", found, files):
        yield problem
    paths = [path for path in files if found.get(path) == files[path].size]
    for start in range(0, len(paths), _AT_ONCE):
        batch = paths[start : start + _AT_ONCE]
        contents = folder.find_all([f"{name}/{path}" for path in batch], _limits(files, batch))
        for path, content in zip(batch, contents, strict=True):
            where = f"{folder.url}/{name}/{path}"
            missing = f"{where} is missing"
            problem = missing if content is None else damage(where, content, files[path])
            if problem:
                yield problem


def _limits(files: Mapping[str, FileRecord], paths: Iterable[str]) -> list[int]:
    # read one byte more than recorded, so that a file that has grown is noticed
    return [files[path].size + 1 for path in paths]
