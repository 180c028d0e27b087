"""Listing: the shards that URLs and patterns name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import fsspec

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.storage.files.filesystems import (
    FileState,
    files_under,
    open_file_system,
    shard_errors,
    state_from_info,
)
from streaming_moments.storage.files.patterns import matches, url_of
from streaming_moments.storage.files.urls import is_utf8, require_no_user, shard_name
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.shards import Shard, kind_by_suffix, require_kind


class _NothingMatches(ShardError):
    """A pattern that matches nothing."""


def list_shards(
    urls: Sequence[str],
    storage_options: Mapping[str, object] | None = None,
    kind: str | None = None,
    none_is_fine: bool = False,
    counted: Callable[[str], bool] | None = None,
    tell: Callable[[str], None] | None = None,
) -> list[Shard]:
    """Shards that URLs and patterns name, by URL, each once.

    A text that is the name of something is that name, whatever it would match as a pattern.

    A folder stands for the shard files in it and below; without any it is one shard of texts. A
    folder of both is refused, as it cannot be told whether the texts are documents.
    Files whose name begins with a dot are left out unless they are named.

    Parameters
    ----------
    urls : sequence of str
        fsspec URLs or local paths, with `*`, `?`, `[...]` and `**` as in a shell.
    storage_options : mapping, optional
        Options of the fsspec file system; local files take none.
    kind : str, optional
        Kind of the shards as in `ShardFormat`: "directory" keeps every folder as one shard, any
        other takes all the files of a folder, whatever their suffix.
    none_is_fine : bool
        Whether a pattern may match nothing.
    counted : callable, optional
        Whether a name is in a ledger: then it is no pattern, even if nothing lies there any more.
    tell : callable, optional
        Called with a line where a name would match others as a pattern.

    Raises
    ------
    ShardError
        One URL that names nothing, or cannot be listed.
    InvalidInput
        Several such URLs, named together, or none at all; a user name or password in a URL,
        before any is listed.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/listed/a.txt", b"law and sea")
    >>> list_shards(["memory://listed/*.txt"])
    [Shard(url='memory:///listed/a.txt', size=11, etag=None)]
    """
    if isinstance(urls, str) or not urls:
        raise InvalidInput("no shards to list; give a list of at least one URL or pattern")
    if kind is not None:
        require_kind(kind)
    for url in urls:
        require_no_user(url)
    shards: dict[str, Shard] = {}
    problems: list[ShardError] = []
    for url in dict.fromkeys(urls):
        try:
            found = _expand(url, storage_options, kind, counted, tell)
            # a name that is not UTF-8 is written like another's, but is none
            shards |= {s.url if is_utf8(s.source) else s.source: s for s in found}
        except _NothingMatches as error:
            problems += [] if none_is_fine else [error]
        except ShardError as error:
            problems.append(error)
    listed = sorted(shards.values(), key=lambda shard: shard.url)
    problems += _overlaps(listed)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise InvalidInput(f"{len(problems)} problems: {'; '.join(map(str, problems))}")
    return listed


def _expand(
    url: str,
    storage_options: Mapping[str, object] | None,
    kind: str | None,
    counted: Callable[[str], bool] | None,
    tell: Callable[[str], None] | None,
) -> list[Shard]:
    name = shard_name(url)
    with shard_errors(url, storage_options):
        fs, path = open_file_system(url, storage_options)
        infos = matches(fs, path, url, counted, tell)
        files = [info for info in infos if info["type"] == "file"]
        if files:
            return [_shard(fs, state_from_info(info["name"], info)) for info in files]
        folders = [info["name"].rstrip("/") for info in infos if info["type"] == "directory"]
        if not folders:
            if infos:
                raise ShardError(name, "is neither a file nor a folder; check the URL")
            raise _NothingMatches(name, "matches nothing; check the URL")
        return [shard for folder in folders for shard in _expand_folder(fs, folder, kind)]


def _expand_folder(fs: fsspec.AbstractFileSystem, path: str, kind: str | None) -> list[Shard]:
    url = url_of(fs, path) + "/"
    name = shard_name(url)
    states = files_under(fs, path, name)
    if not states:
        raise ShardError(name, "holds no files; check the URL")
    if kind is None:
        chosen = [s for s in states if kind_by_suffix(s.path) not in (None, "text")]
        texts = [s.path for s in states if kind_by_suffix(s.path) == "text"]
        if chosen and texts:
            # a README beside the shards, or documents: only the user knows
            raise ShardError(
                name,
                f"holds {len(chosen)} shard files and {len(texts)} files of text, such as "
                f"{shard_name(texts[0])}; give patterns that name the shards, such as "
                f"{name}*.parquet",
            )
    else:
        chosen = [] if FORMATS[kind].of_folder else states
    if chosen:
        return [_shard(fs, state) for state in chosen]
    return [_named(url, sum(state.size for state in states))]


def _shard(fs: fsspec.AbstractFileSystem, state: FileState) -> Shard:
    return _named(url_of(fs, state.path), state.size, state.etag)


def _named(url: str, size: int, etag: str | None = None) -> Shard:
    name = shard_name(url)
    return Shard(name, size, etag, "" if name == url else url)


def _overlaps(listed: Sequence[Shard]) -> Iterator[ShardError]:
    folder = None
    for shard in listed:
        if folder is not None and shard.url.startswith(folder.url):
            yield ShardError(shard.url, f"lies within the shard {folder.url}; give one of the two")
        elif shard.url.endswith("/"):
            folder = shard
