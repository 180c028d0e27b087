"""Patterns: find the files at a URL, which names a file or a folder, or is a pattern."""

from __future__ import annotations

import errno
import glob
import re
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import fsspec
from fsspec.utils import get_protocol, glob_translate

from streaming_moments.errors import ShardError
from streaming_moments.storage.files.filesystems import open_file_system, require_bucket, url_of
from streaming_moments.storage.files.listings.finding import glob_each
from streaming_moments.storage.files.parts import DOCUMENT, whole_of
from streaming_moments.storage.files.urls import is_of_origin, shard_name, single_slashed


def matches(
    fs: fsspec.AbstractFileSystem,
    path: str,
    url: str,
    counted: Callable[[str], bool] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the fsspec information of each file that a URL or pattern names, in any order.

    Hidden files are skipped unless they are named. `counted` and `tell` are as in `list_shards`.
    Raises FileNotFoundError if a plain name does not exist, and ShardError for an invalid
    pattern or a missing bucket.
    """
    # in an http URL a question mark begins the query, and is not a pattern
    http = get_protocol(url).lower() in ("http", "https")
    if not any(sign in path for sign in ("*[" if http else "*?[")):
        return _of_name(fs, path, url)
    name = url_of(fs, path)
    if counted is not None and (counted(shard_name(name)) or counted(shard_name(f"{name}/"))):
        return _of_name(fs, path, url)
    literal = _info(fs, path)
    if literal is not None and (http or tell is None):
        return iter([literal])
    pattern, hidden = path if http else _below_names(fs, path), _hidden(path)
    try:
        listed = glob_each(fs, pattern, folders=url.endswith("/"))
    except ValueError as error:
        raise ShardError(
            shard_name(url), f"is not a valid pattern ({error}); write another"
        ) from error
    found = ((one, info) for one, info in listed if hidden or not _hidden(one))
    if literal is None:
        return _of_pattern(fs, path, url, found)
    others = sorted(one for one, _ in found if one.rstrip("/") != path.rstrip("/"))
    if others and tell is not None:
        tell(
            f"{shard_name(url)} is used as a name; as a pattern it would also match {len(others)} "
            f"others, such as {shard_name(others[0])}; name these by another pattern"
        )
    return iter([literal])


def _of_name(fs: fsspec.AbstractFileSystem, path: str, url: str) -> Iterator[dict[str, Any]]:
    try:
        return iter([fs.info(path)])
    except FileNotFoundError:
        require_bucket(fs, path, shard_name(url))
        raise


def _of_pattern(
    fs: fsspec.AbstractFileSystem,
    path: str,
    url: str,
    found: Iterator[tuple[str, dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    nothing = True
    for one, info in found:
        nothing = False
        yield fs.info(one) if info.get("islink") else info
    if nothing:
        require_bucket(fs, path, shard_name(url))


def names_among(
    url: str, known: Set[str], storage_options: Mapping[str, object] | None = None
) -> tuple[str, ...]:
    """Return the names among `known` that a URL or pattern selects, even those of deleted shards.

    A URL is first read as a known name, then as a pattern, then as a folder with known shards; the
    first reading that matches counts. If none matches, the result is the name that a file of that
    URL would have. A file's name also selects its parts. Raises ShardError for an unknown protocol,
    and InvalidInput for a user name or password in the URL.

    Examples
    --------
    >>> known = {"/corpus/a.txt", "/corpus/b.txt", "/corpus/c/"}
    >>> [names_among(url, known) for url in ("file:///corpus//a.txt", "/corpus/[ab]*", "/corpus/c")]
    [('/corpus/a.txt',), ('/corpus/a.txt', '/corpus/b.txt'), ('/corpus/c/',)]
    """
    # leave the name of a shard that another store counted: its file may not exist at this site
    is_name = url in known or is_of_origin(url)
    name = url if is_name else shard_name(url_of(*open_file_system(url, storage_options)))
    spelled = (name, f"{name.rstrip('/')}/", single_slashed(name), f"{name}{DOCUMENT}")
    own = tuple(dict.fromkeys(one for one in spelled if one in known))
    if own:
        return own + tuple(sorted(one for one in known if whole_of(one) in own and one not in own))
    matching = re.compile(glob_translate(name))
    found = tuple(sorted(one for one in known if matching.match(whole_of(one).rstrip("/"))))
    below = f"{name.rstrip('/')}/"
    return found or tuple(sorted(one for one in known if one.startswith(below))) or (name,)


def _hidden(path: str) -> bool:
    return path.rstrip("/").rsplit("/", 1)[-1].startswith(".")


def _below_names(fs: fsspec.AbstractFileSystem, path: str) -> str:
    """Escape wildcards in the first folders of a pattern if folders of these exact names exist."""
    parts = path.split("/")
    for depth, part in enumerate(parts[:-1]):
        if any(sign in part for sign in "*?["):
            if _info(fs, "/".join(parts[: depth + 1])) is None:
                break
            parts[depth] = glob.escape(part)
    return "/".join(parts)


def _info(fs: fsspec.AbstractFileSystem, path: str) -> dict[str, Any] | None:
    """Return information about a path; None if it does not exist or cannot exist."""
    if any(sign in path.split("/", 1)[0] for sign in "*?["):
        return None  # names of buckets cannot have these characters
    try:
        found: dict[str, Any] = fs.info(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
        # reading one name may be forbidden although listing, the next step, is allowed
        return None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return None
    return found
