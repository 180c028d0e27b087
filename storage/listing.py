"""Listing: the shards that URLs and patterns name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import fsspec
import pyarrow.compute as pc

from streaming_moments.errors import BoundExceeded, InvalidInput, ShardError
from streaming_moments.storage.files.backends import require_bucket_name
from streaming_moments.storage.files.filesystems import (
    FileState,
    each_file_under,
    open_file_system,
    shard_errors,
    state_from_info,
    url_of,
)
from streaming_moments.storage.files.parts import DOCUMENT, whole_of
from streaming_moments.storage.files.patterns import matches
from streaming_moments.storage.files.urls import (
    check_the,
    is_of_origin,
    is_utf8,
    require_no_user,
    shard_name,
    single_slashed,
)
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.shard_table import ShardTable
from streaming_moments.storage.shards import Shard, kind_by_suffix, require_kind

# largest number of shards in a list; to compare them with a ledger takes up to 450 bytes each
MOST_SHARDS = 4_000_000
_SHOWN = 5  # an error lists at most this many problems


class NothingMatches(ShardError):
    """A pattern matches no file and no folder."""


def list_shards(
    urls: Sequence[str],
    storage_options: Mapping[str, object] | None = None,
    kind: str | None = None,
    missing: Callable[[NothingMatches], None] | None = None,
    counted: Callable[[str], bool] | None = None,
    tell: Callable[[str], None] | None = None,
    most: int = MOST_SHARDS,
    apart: Callable[[str], bool] | None = None,
) -> ShardTable:
    """List the shards that URLs and patterns name, each once, in order of URL.

    A text that is the name of a file or folder is never a pattern. In an object store
    `s3://bucket//a` means `s3://bucket/a`, unless the first name exists.

    A folder with shard files stands for all shard files in it and below. A folder of texts is one
    shard; with `apart`, each of its files is a shard if all their names are UTF-8. A folder with
    both is refused, as the texts may or may not be documents. Files whose name begins with a dot
    are skipped unless they are named.

    Parameters
    ----------
    urls : sequence of str
        fsspec URLs or local paths, with `*`, `?`, `[...]` and `**` as in a shell.
    storage_options : mapping, optional
        Options of the fsspec file system; local files need none.
    kind : str, optional
        Kind of the shards as in `ShardFormat`. "directory" makes every folder one shard. Any other
        kind includes all files of a folder, whatever their suffix.
    missing : callable, optional
        Function that receives the error of each pattern that matches nothing. By default the error
        is raised.
    counted : callable, optional
        Function that returns whether a name is in a ledger. Such a name is never a pattern, even if
        its file is deleted.
    tell : callable, optional
        Function that receives a message if a name would match other files as a pattern.
    most : int
        Largest number of shards.
    apart : callable, optional
        Function that returns whether each file in a folder of texts is a shard, given the name of
        the folder.

    Raises
    ------
    BoundExceeded
        There are more than `most` shards.
    ShardError
        One URL names nothing, or cannot be listed.
    InvalidInput
        Several URLs name nothing or cannot be listed; the error names them. Or there are no URLs,
        or a URL has a user name or password, which is checked before listing.

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
        require_bucket_name(url)
        if is_of_origin(url):
            raise InvalidInput(
                f"{url} was counted by another store, and only the site of that store can read it",
                "run the command at that site, with the name of the shard there, then run {merge} "
                "here again",
            )
        if url == "-":
            raise InvalidInput(
                "- means standard input, which only the command `update` counts; write it to "
                "a file, or give a file of that name as ./-"
            )
    tables: list[ShardTable] = []
    problems: list[ShardError] = []
    for url in dict.fromkeys(urls):
        room = most - sum(map(len, tables))
        found = _expand(url, storage_options, kind, counted, tell, apart)
        try:
            tables.append(ShardTable.of(_at_most(room, found, most)))
        except NothingMatches as error:
            (problems.append if missing is None else missing)(error)
        except ShardError as error:
            problems.append(error)
    listed = ShardTable.joined(tables)
    problems += _overlaps(listed)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
        told = "; ".join(map(str, problems[:_SHOWN]))
        raise InvalidInput(f"there are {len(problems):,} problems: {told}{more}")
    return listed


def _at_most(room: int, shards: Iterable[Shard], most: int) -> Iterator[Shard]:
    for number, shard in enumerate(shards):
        if number == room:
            raise BoundExceeded(
                f"more than {most:,} shards are named, too many to compare with a ledger at once; "
                "give folders or patterns with fewer shards in separate commands, such as "
                f"{_folder(shard)}, or join small shards into larger ones"
            )
        yield shard


def _folder(shard: Shard) -> str:
    return f"{shard.url.rstrip('/').rpartition('/')[0]}/"


def _expand(url: str, *given: Any) -> Iterator[Shard]:
    single = single_slashed(url)
    try:
        yield from _expand_as_given(url, *given)
    except ShardError as error:
        nothing = isinstance(error.__cause__, FileNotFoundError)
        if single == url or not (nothing or isinstance(error, NothingMatches)):
            raise
        yield from _expand_as_given(single, *given)


def _expand_as_given(
    url: str,
    storage_options: Mapping[str, object] | None,
    kind: str | None,
    counted: Callable[[str], bool] | None,
    tell: Callable[[str], None] | None,
    apart: Callable[[str], bool] | None,
) -> Iterator[Shard]:
    name = shard_name(url)
    if url.endswith(DOCUMENT):
        for shard in _expand_as_given(whole_of(url), storage_options, kind, counted, tell, None):
            yield _document(shard)
        return
    with shard_errors(url, storage_options):
        fs, path = open_file_system(url, storage_options)
        seen, any_file, folders = False, False, list[str]()
        for info in matches(fs, path, url, counted, tell):
            seen = True
            if info["type"] == "file":
                any_file = True
                yield _shard(fs, state_from_info(info["name"], info))
            elif info["type"] == "directory" and not any_file:
                folders.append(info["name"].rstrip("/"))
        if any_file:
            return
        if not folders:
            if seen:
                raise ShardError(name, f"is neither a file nor a folder; {check_the(name)}")
            raise NothingMatches(name, "matches nothing; check the pattern")
        for folder in sorted(folders):
            yield from _expand_folder(fs, folder, kind, apart)


def _expand_folder(
    fs: fsspec.AbstractFileSystem,
    path: str,
    kind: str | None,
    apart: Callable[[str], bool] | None,
) -> Iterator[Shard]:
    url = url_of(fs, path) + "/"
    name = shard_name(url)
    files, nbytes, chosen, texts, text = 0, 0, 0, 0, ""
    nameable = True
    for state in each_file_under(fs, path, name):
        files, nbytes = files + 1, nbytes + state.size
        nameable = nameable and is_utf8(state.path)
        of = kind_by_suffix(state.path) if kind is None else kind
        if kind is None and of == "text":
            texts, text = texts + 1, min(text or state.path, state.path)
        elif of is not None and not FORMATS[of].of_folder:
            chosen += 1
            yield _shard(fs, state)
    if not files:
        raise ShardError(name, f"holds no files; {check_the(name)}")
    if chosen and texts:
        # refuse the folder, as the texts may be documents, or READMEs of the shards
        raise ShardError(
            name,
            f"holds {chosen} shard files and {texts} text files, such as {shard_name(text)}; give "
            f"a pattern that names only the shards, such as {name}*.parquet",
        )
    of_texts = FORMATS[kind or kind_by_suffix(name) or "directory"].suffixes == ()
    if not chosen and nameable and of_texts and apart is not None and apart(name):
        yield from (_document(_shard(fs, state)) for state in each_file_under(fs, path, name))
    elif not chosen:
        yield _named(url, nbytes)


def _document(shard: Shard) -> Shard:
    """Return the shard of a file that is one document."""
    source = f"{shard.read_at}{DOCUMENT}" if shard.read_at else ""
    return Shard(f"{shard.url}{DOCUMENT}", shard.size, shard.etag, source)


def _shard(fs: fsspec.AbstractFileSystem, state: FileState) -> Shard:
    return _named(url_of(fs, state.path), state.size, state.etag)


def _named(url: str, size: int, etag: str | None = None) -> Shard:
    name = shard_name(url)
    if whole_of(name) != name:
        raise ShardError(name, "has a name that is reserved for parts of files; rename it")
    return Shard(name, size, etag, "" if name == url else url)


def _overlaps(listed: ShardTable) -> Iterator[ShardError]:
    if not pc.any(pc.ends_with(listed.urls, "/")).as_py():
        return
    folder = None
    for shard in listed:
        if folder is not None and shard.url.startswith(folder):
            yield ShardError(shard.url, f"is within the shard {folder}; give only one of the two")
        elif shard.url.endswith("/"):
            folder = shard.url
