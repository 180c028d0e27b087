"""Finding: yields the files below a folder, or those that match a pattern, one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem
from fsspec.utils import glob_translate

from streaming_moments.storage.files.listings.pages import each_below, is_paged


def find_each(fs: fsspec.AbstractFileSystem, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the files below a folder, each with its information as in `fs.find`, in any order.

    For local folders and on S3 only one file is in memory at a time. Elsewhere fsspec first lists
    all files, and the memory of each is freed when it is yielded.
    """
    if isinstance(fs, LocalFileSystem):
        return ((name, info) for name, info in _walk(fs, path) if info["type"] != "directory")
    if is_paged(fs):
        return ((name, info) for name, info in each_below(fs, path) if info["type"] == "file")
    return _emptied(fs.find(path, detail=True))


def glob_each(
    fs: fsspec.AbstractFileSystem, pattern: str, folders: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each path that matches a pattern, with its information as in `fs.glob`, in any order.

    With `folders`, only folders match. Raises ValueError for an invalid pattern.
    """
    text = pattern + "/" if folders else pattern
    if not (isinstance(fs, LocalFileSystem) or is_paged(fs)):
        return _emptied(fs.glob(text, detail=True))
    # match names as fsspec does, but without a dictionary of all files
    matching = re.compile(glob_translate(text))
    root, _, prefix = re.split(r"[*?[]", pattern, maxsplit=1)[0].rpartition("/")
    deep = None if "**" in pattern else pattern.count("/") - root.count("/")
    slashed = folders or pattern.endswith("/**")
    if isinstance(fs, LocalFileSystem):
        found = _walk(fs, root or "/", deep)
    else:
        found = each_below(fs, root, deep, prefix)
    return (
        (name, info)
        for name, info in found
        if matching.match(f"{name}/" if slashed and info["type"] == "directory" else name)
    )


def _walk(
    fs: LocalFileSystem, root: str, deep: int | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a folder, and the files and folders at most `deep` levels below it, with information.

    Unreadable folders are skipped.
    """
    if os.path.isdir(root):
        yield root, fs.info(root)
    waiting = [(root, deep)]
    while waiting:
        folder, levels = waiting.pop()
        try:
            entries = os.scandir(folder)
        except OSError:
            continue
        with entries:
            for entry in entries:
                try:
                    info = fs.info(entry)
                except FileNotFoundError:
                    continue  # deleted since the listing
                yield info["name"], info
                if info["type"] == "directory" and levels != 1:
                    waiting.append((info["name"], None if levels is None else levels - 1))


def _emptied(found: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    while found:
        yield found.popitem()
