"""Listings of S3 buckets, a page at a time.

S3 answers with pages of up to 1000 objects. fsspec would hold all pages in memory, with 1.7 KB for
each object.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import fsspec


def is_paged(fs: fsspec.AbstractFileSystem) -> bool:
    """Whether `each_below` can list a file system: only S3, without old versions of objects."""
    # an object that wraps a file system may have no attribute `protocol`
    protocols = getattr(fs, "protocol", ())
    return "s3" in (protocols if isinstance(protocols, tuple) else (protocols,)) and not getattr(
        fs, "version_aware", True
    )


def each_below(
    fs: fsspec.AbstractFileSystem, root: str, deep: int | None = None, prefix: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield objects and folders below a folder, each with its information as in s3fs, in any order.

    The file system must be `is_paged`. `root` is a bucket, or a folder in it. `deep` is the number
    of levels below the root, by default all. In the root, other names than those that begin with
    `prefix` are skipped.
    """
    bucket, key, _ = fs.split_path(root.rstrip("/"))
    waiting = [((f"{key}/" if key else "") + prefix, deep)]
    folders = set(_above(root.rstrip("/"), set()))  # `_above` must not yield these
    while waiting:
        below, levels = waiting.pop()
        for page in _pages(fs, bucket, below, "" if levels is None else "/"):
            for common in page.get("CommonPrefixes", ()):
                name = common["Prefix"]
                yield _folder(f"{bucket}/{name[:-1]}")
                if levels is not None and levels > 1:
                    waiting.append((name, levels - 1))
            for found in page.get("Contents", ()):
                name = f"{bucket}/{found['Key']}"
                if levels is None:
                    for folder in _above(name, folders):
                        yield _folder(folder)
                elif found["Key"] == below and name.endswith("/"):
                    continue  # this object represents the folder itself
                found |= {"Key": name, "name": name, "size": found["Size"], "type": "file"}
                yield name, found


def _pages(
    fs: fsspec.AbstractFileSystem, bucket: str, prefix: str, delimiter: str
) -> Iterator[dict[str, Any]]:
    _read_times_quickly(fs)
    after: dict[str, str] = {}
    while True:
        try:
            page: dict[str, Any] = fs.call_s3(
                "list_objects_v2", Bucket=bucket, Prefix=prefix, Delimiter=delimiter, **after
            )
        except FileNotFoundError:
            return  # a missing bucket has no objects, as in s3fs
        yield page
        if not page.get("IsTruncated"):
            return
        after = {"ContinuationToken": page["NextContinuationToken"]}


def _read_times_quickly(fs: fsspec.AbstractFileSystem) -> None:
    """Let botocore parse times with `_time_of`, as its own parser takes two thirds of a listing."""
    fs.connect()
    parsers = fs.session.get_component("response_parser_factory")
    parsers.set_parser_defaults(timestamp_parser=_time_of)


def _time_of(text: Any) -> datetime:
    """Parse a time as `botocore.utils.parse_timestamp` does, but faster for S3's format."""
    if isinstance(text, str) and text.endswith("Z"):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    from botocore.utils import parse_timestamp

    return parse_timestamp(text)  # type: ignore[no-any-return]


def _above(name: str, told: set[str]) -> Iterator[str]:
    """Yield the folders above `name` that are not in `told`; add them, so that each comes once."""
    folder = name.rpartition("/")[0]
    while folder not in told and "/" in folder:
        told.add(folder)
        yield folder
        folder = folder.rpartition("/")[0]


def _folder(name: str) -> tuple[str, dict[str, Any]]:
    return name, {
        "Key": name,
        "Size": 0,
        "StorageClass": "DIRECTORY",
        "name": name,
        "size": 0,
        "type": "directory",
    }
