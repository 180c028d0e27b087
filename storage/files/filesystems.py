"""Open fsspec file systems without cached listings; make their errors name the shard."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import fsspec
from fsspec.core import strip_protocol, url_to_fs
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.utils import get_protocol

from streaming_moments.errors import ShardError
from streaming_moments.storage.files.backends import (
    TIMES,
    backend_of,
    client_options,
    is_local,
    lacks_client,
    remedy_of,
    require_bucket_name,
    storage_errors,
)
from streaming_moments.storage.files.client_options import unknown_option
from streaming_moments.storage.files.listings.finding import find_each
from streaming_moments.storage.files.noted_options import NotedOptions
from streaming_moments.storage.files.silence import watched
from streaming_moments.storage.files.urls import (
    check_the,
    is_signed,
    require_no_user,
    shard_name,
    without_secrets,
)

# secret values shorter than this are not masked in messages, because many words would contain them
_SHORTEST_SECRET = 4


@dataclass(frozen=True)
class FileState:
    """State of one file when it was listed; after the file is written again, its state is another.

    path : path within the file system. Never shown, as it may be a whole presigned URL.
    size : stored size in bytes
    etag : the storage's ETag of the content
    modified : time of the last change, in the spelling of the storage. On a local disk also the
        inode, which is another one if the file was replaced. Empty if the storage has no such time.
    """

    path: str = field(repr=False)
    size: int
    etag: str | None
    modified: str


def files_under(fs: fsspec.AbstractFileSystem, path: str, url: str) -> list[FileState]:
    """List the files in a folder and its subfolders as `each_file_under` does, sorted by path."""
    return sorted(each_file_under(fs, path, url), key=lambda state: state.path)


def each_file_under(fs: fsspec.AbstractFileSystem, path: str, url: str) -> Iterator[FileState]:
    """Yield the files in a folder and its subfolders, in any order; skip hidden ones.

    Raises ShardError for a link to a folder, because to follow such links might never end.
    """
    for name, info in find_each(fs, path):
        relative = name[len(path) :]
        if name.endswith("/") or any(part.startswith(".") for part in relative.split("/")):
            continue
        seen = fs.info(name) if info.get("islink") else info
        if seen["type"] == "directory":
            link = relative.strip("/")
            raise ShardError(url, f"has a link to a folder, {link}; replace the link by the folder")
        if seen["type"] == "file":
            yield state_from_info(name, seen)


def file_state(fs: fsspec.AbstractFileSystem, path: str) -> FileState:
    """Return the present state of one file."""
    return state_from_info(path, fs.info(path))


def open_file_system(
    url: str, storage_options: Mapping[str, object] | None
) -> tuple[fsspec.AbstractFileSystem, str]:
    """Return the file system of a URL, without cached listings, and the path in the file system.

    Raises ShardError if the protocol is unknown, or if the package that it needs is not installed.
    Raises InvalidInput if the URL has a user name or a password, or lacks a bucket that it needs.
    """
    require_no_user(url)
    require_bucket_name(url)
    scheme, mark, rest = url.partition("://")
    if mark:
        # write the protocol in lower case, because fsspec recognises no other
        url = f"{scheme.lower()}://{rest}"
    if is_local(get_protocol(url)):
        # replace several slashes at the beginning, because POSIX would keep two of them, and the
        # file would get another name
        place = re.sub("^//+", "/", os.path.abspath(strip_protocol(url)))
        return fsspec.filesystem("file"), place
    if "::" in url:
        raise ShardError(
            shard_name(url), "chains several file systems; give the URL of the file itself"
        )
    if isinstance(storage_options, NotedOptions):
        storage_options.used = True
    # fsspec returns the same client for the same options. That saves 0.3 s for each shard, and is
    # safe, because the client does not cache listings.
    options = client_options(get_protocol(url), storage_options or {})
    options["use_listings_cache"] = False
    try:
        fs, path = url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        missing = lacks_client(get_protocol(url)) if isinstance(error, ImportError) else None
        reason = f"cannot be opened ({one_line(error, storage_options)}); check the protocol"
        told = missing or f"{reason} and that its package is installed"
        _raise_from(error, url, ShardError(shard_name(url), told))
    return _ReadApart() if type(fs) is MemoryFileSystem else watched(fs), path


class _ReadApart(MemoryFileSystem):  # type: ignore[misc]
    """File system in memory in which each reader of a file has its own position.

    `MemoryFileSystem` gives all readers of a file one object, so that each moves the position of
    the others.
    """

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        opened = super()._open(path, mode, **options)
        return io.BytesIO(opened.getvalue()) if mode == "rb" else opened


def url_of(fs: fsspec.AbstractFileSystem, path: str) -> str:
    """Return the absolute path of a local file, or the URL of a file elsewhere.

    If the protocol has several names, the URL has the main one.
    """
    local = backend_of(fs).is_local
    return os.path.abspath(path) if local else str(fs.unstrip_protocol(path))


def require_bucket(fs: fsspec.AbstractFileSystem, path: str, url: str) -> None:
    """Raise ShardError if a path is in a bucket of an object store that does not exist."""
    bucket = path.strip("/").split("/")[0]
    if not backend_of(fs).buckets or not bucket:
        return
    try:
        fs.info(bucket)
    except FileNotFoundError as error:
        raise ShardError(
            url, f"the bucket {bucket!r} does not exist; create it, or check the URL and endpoint"
        ) from error
    except storage_errors():
        # continue, because without permission to look at a bucket it is unknown whether it exists
        return
    except ValueError as error:  # the client refuses one of its options, such as an endpoint
        remedy = remedy_of(error)
        if remedy is None:
            raise
        text = one_line(error, fs.storage_options)
        raise ShardError(url, f"cannot be reached ({text}); {remedy}") from error


def state_from_info(path: str, info: Mapping[str, Any]) -> FileState:
    """Make the state of a file from what fsspec's `info` returns.

    Examples
    --------
    >>> state_from_info("corpus/a.txt", {"size": 4, "ETag": '"d41d"', "LastModified": 2026})
    FileState(size=4, etag='d41d', modified='2026')
    """
    etag = info.get("ETag") or info.get("md5Hash") or info.get("etag")
    modified = next((info[name] for name in TIMES if info.get(name) is not None), "")
    mark = str(etag).strip('"') if etag else None
    seen = f"{modified} inode {info['ino']}" if "ino" in info else str(modified)
    return FileState(path, int(info.get("size") or 0), mark, seen)


@contextmanager
def shard_errors(url: str, storage_options: Mapping[str, object] | None = None) -> Iterator[None]:
    """Convert errors of the operating system, Arrow and object stores in the block to a ShardError.

    The error names the shard. If the shard has a presigned URL, the error has no cause, because the
    cause would show this URL.

    Examples
    --------
    >>> with shard_errors("/corpus/a.txt"):
    ...     raise FileNotFoundError("a.txt")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.ShardError: /corpus/a.txt: does not exist; check the path
    """
    name = shard_name(url)
    try:
        yield
    except FileNotFoundError as error:
        why, absent = error.__cause__, isinstance(error.__cause__, FileNotFoundError)
        if _is_web(url) and isinstance(why, Exception) and not (absent or _is_404(why)):
            # the HTTP client reports every error, such as a refused connection, as a missing file
            reason = f"cannot be read ({one_line(why, storage_options)})"
            do = remedy_of(why) or "check the URL, and that its server answers"
            _raise_from(why, url, ShardError(name, f"{reason}; {do}"))
        _raise_from(error, url, ShardError(name, f"does not exist; {check_the(url)}"))
    except PermissionError as error:
        reason = f"cannot be read without permission ({one_line(error, storage_options)})"
        _raise_from(error, url, ShardError(name, f"{reason}; {remedy_of(error)}"))
    except Exception as error:
        remedy = remedy_of(error)
        if remedy is None and not isinstance(error, storage_errors()):
            raise
        reason = f"cannot be read ({one_line(error, storage_options)})"
        failure = ShardError(name, f"{reason}; {remedy or 'check that it is intact and reachable'}")
        _raise_from(error, url, failure)


def _raise_from(error: Exception, url: str, failure: ShardError) -> NoReturn:
    """Raise `failure` with a cause that can be pickled and does not show the signature of a URL."""
    cause: Exception | None = error
    if _is_web(url):
        # leave out parts of the error: that of an HTTP client contains the request, which cannot be
        # pickled and shows the whole URL
        error.__cause__ = error.__context__ = None
        cause = error if type(error).__module__ == "builtins" and not is_signed(url) else None
    try:
        raise failure from cause
    finally:
        failure.__context__ = None


def _is_404(error: Exception) -> bool:
    return getattr(error, "status", None) == 404


def _is_web(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


_OF_THE_DISK = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)


def one_line(error: Exception, storage_options: Mapping[str, object] | None = None) -> str:
    """Return the first line of the message of an error; mask storage options and secrets of URLs.

    Examples
    --------
    >>> one_line(OSError("no such key: 12345678"), {"key": "12345678"})
    'no such key: ***'
    >>> one_line(PermissionError(errno.EACCES, "Permission denied", "/store/.clock.7f.partial"))
    'Permission denied'
    """
    if isinstance(error, OSError) and error.strerror and error.errno in _OF_THE_DISK:
        # leave out the name of the file, which can be a temporary one; the message of the caller
        # names the shard
        return error.strerror
    if (option := unknown_option(error)) is not None:
        return f"unknown option {option!r}"
    lines = str(error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    for secret in _texts(storage_options or {}):
        line = line.replace(secret, "***")
    return without_secrets(line)[:200]


def _texts(options: Mapping[str, object]) -> Iterator[str]:
    for value in options.values():
        if isinstance(value, Mapping):
            yield from _texts(value)
        elif isinstance(value, str) and len(value) >= _SHORTEST_SECRET:
            yield value
