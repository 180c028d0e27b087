"""Shards: files of documents, with their places, formats and fingerprints."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import fsspec

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.printing.remedies import remedy
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.storage import formats
from streaming_moments.storage.files.filesystems import (
    FileState,
    file_state,
    files_under,
    open_file_system,
    shard_errors,
)
from streaming_moments.storage.files.parts import DOCUMENT, PartOfFile, first_byte, whole_of
from streaming_moments.storage.files.urls import is_utf8

_BLOCK_BYTES = 1 << 20
_CATEGORIES = "categories"
_COLUMN_OPTIONS = (
    ("ids_column", "a column of token ids", "the ids column"),
    (_CATEGORIES, "a table of categories", "the categories"),
)

# Beginning of the names of shards without files: partitions of a Python collection. A task that
# reads such a shard receives its content as JSON Lines.
PARTITIONS = "partition://"


@dataclass(frozen=True)
class ShardFormat:
    """Format of the documents in shards.

    Parameters
    ----------
    kind : str, optional
        A name of `FORMATS`; None chooses by the URL of each shard.
    text_column : str
        Column, or JSON field, of the texts.
    ids_column : str, optional
        Column of lists of token ids. The shards then hold ids instead of texts.
    counts_column : str, optional
        Column of lists of counts, one count for each id in the list of ids. If None, each id counts
        once.
    categories : tuple of str
        Categorical columns. The shards then hold rows of a table instead of texts.

    Raises
    ------
    InvalidInput
        The kind does not exist, or it has no columns for the given ids or categories. Or
        `counts_column` is given without `ids_column`. Or a name of a column repeats, or has an "=".

    Examples
    --------
    >>> ShardFormat().kind_of("s3://corpus/part-1.jsonl.gz")
    'jsonl'
    """

    __repr__ = short_repr

    kind: str | None = None
    text_column: str = "text"
    ids_column: str | None = None
    counts_column: str | None = None
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind is not None:
            require_kind(self.kind)
            for name, what, which in _COLUMN_OPTIONS:
                takers = [form.name for form in formats.FORMATS.values() if name in form.options]
                if getattr(self, name) and self.kind not in takers:
                    raise InvalidInput(
                        f"{what} needs {' or '.join(takers)}, but the format is {self.kind}; leave "
                        f"out {which} or the format"
                    )
        if self.categories:
            self._require_categories()
        if self.counts_column is not None and self.ids_column is None:
            raise InvalidInput(
                f"counts column {self.counts_column!r} needs an ids column; give both"
            )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ShardFormat:
        """Decode a format that `to_json` encoded.

        Raises
        ------
        InvalidInput
            Fields are missing or unknown.

        Examples
        --------
        >>> ShardFormat.from_json(ShardFormat("text").to_json()) == ShardFormat("text")
        True
        """
        expected = asdict(cls()).keys()
        if content.keys() | {_CATEGORIES} != expected:
            raise InvalidInput(
                f"a shard format has the fields {sorted(expected)}, got {sorted(content)}"
            )
        return cls(**{**content, _CATEGORIES: tuple(content.get(_CATEGORIES, ()))})

    def to_json(self) -> dict[str, Any]:
        """Convert the format to an object for JSON.

        Examples
        --------
        >>> ShardFormat("text").to_json()["kind"]
        'text'
        """
        content = asdict(self)
        # without categories, write the same JSON as old versions of the package, which had no
        # tables of categories
        if not self.categories:
            del content[_CATEGORIES]
        return content

    def kind_of(self, url: str) -> str:
        """Return the name of the format of a shard, from its URL as `list_shards` returned it.

        Raises
        ------
        ShardError
            The suffix is unknown, or the shard is a folder but the format is one of files, or the
            other way round.
        """
        if url.startswith(PARTITIONS):
            return "jsonl"
        folder = url.endswith(("/", DOCUMENT))
        if self.kind is not None and folder != formats.FORMATS[self.kind].of_folder:
            raise ShardError(
                url,
                f"is a {'folder' if folder else 'file'}, but the format is {self.kind}",
                "give another format to {create.format}, or none",
            )
        kind = self.kind or kind_by_suffix("/" if url.endswith(DOCUMENT) else whole_of(url))
        if kind is None:
            raise ShardError(
                url,
                "has no suffix of a known format",
                remedy("give one of {known} to {create.format}", known=", ".join(formats.FORMATS)),
            )
        return kind

    def holds(self, url: str) -> formats.Holds:
        """Return the type of the documents in the shard at a URL: "texts" or token "ids".

        Raises
        ------
        ShardError
            The shard holds no documents, or has no columns for the given categories.

        Examples
        --------
        >>> ShardFormat().holds("/corpus/ap.dat"), ShardFormat().holds("/corpus/ap.txt")
        ('ids', 'texts')
        """
        form = formats.FORMATS[self.kind_of(url)]
        if self.categories and _CATEGORIES not in form.options:
            raise ShardError(
                url,
                f"is of format {form.name}, which has no columns of categories",
                "give Parquet, JSON Lines, CSV or TSV, or create the store without "
                "{create.categories}",
            )
        found = form.holds(self)
        if found == "vectors":
            raise formats.not_documents(url)
        return found

    def _require_categories(self) -> None:
        if self.ids_column is not None:
            raise InvalidInput(
                "a row has token ids or categories, not both; leave out one of the columns"
            )
        names = self.categories
        if len(set(names)) < len(names) or any(not name or "=" in name for name in names):
            raise InvalidInput(
                f"the categorical columns are {list(names)}; give each once, without '=' in names"
            )


@dataclass(frozen=True)
class Shard:
    """A file of documents, a folder of texts with one document in each file, or a part of either.

    Parameters
    ----------
    url : str
        Name of the shard: absolute path of a local file, or a URL with its protocol. The name of a
        folder ends in "/". The name of a part has an ending that `files.parts` defines.
    size : int
        Stored size in bytes; for a folder, the sum over its files.
    etag : str, optional
        ETag that the storage gives to the content; None for folders, or without an ETag.
    read_at : str
        URL for reading if it differs from `url`, such as a presigned URL. It is never shown or
        stored.
    """

    url: str
    size: int
    etag: str | None = None
    read_at: str = field(default="", repr=False, compare=False)

    @property
    def source(self) -> str:
        """URL for reading."""
        return self.read_at or self.url


def content_mark(
    fs: fsspec.AbstractFileSystem,
    state: FileState,
    block_bytes: int = _BLOCK_BYTES,
    on_block: Callable[[bytes], object] | None = None,
) -> str:
    """Return the fingerprint of one file: its ETag, or else the SHA-256 of its content."""
    if state.etag is not None:
        return f"etag:{state.etag}"
    digest = hashlib.sha256()
    with fs.open(state.path, "rb") as stream:
        while block := stream.read(block_bytes):
            digest.update(block)
            if on_block is not None:
                on_block(block)
    return f"sha256:{digest.hexdigest()}"


def fingerprint(
    shard: Shard,
    storage_options: Mapping[str, object] | None = None,
    mark_of: Callable[[fsspec.AbstractFileSystem, FileState], str] = content_mark,
) -> str:
    """Return the fingerprint of a shard's content: its ETag, "etag:...", or else "sha256:...".

    If the listing of the storage gave no ETag for the shard, the shard is read once, 1 MiB at a
    time. `mark_of` returns the fingerprint of each of its files.

    Examples
    --------
    >>> fingerprint(Shard("s3://corpus/a.txt", 4, etag="d41d8cd9"))
    'etag:d41d8cd9'
    """
    if not shard.url.endswith("/") and shard.etag is not None:
        return f"etag:{shard.etag}"
    with shard_errors(shard.source, storage_options):
        fs, path = open_shard(shard, storage_options)
        if not shard.url.endswith("/"):
            return mark_of(fs, file_state(fs, path))
        digest = hashlib.sha256()
        for state in files_under(fs, path, shard.url):
            name = state.path[len(path) :].lstrip("/")
            digest.update(f"{name}\0{mark_of(fs, state)}\n".encode(errors="surrogateescape"))
        return f"sha256:{digest.hexdigest()}"


def open_shard(
    shard: Shard, storage_options: Mapping[str, object] | None = None
) -> tuple[fsspec.AbstractFileSystem, str]:
    """Open the file system of a shard, and return it with the path of the shard.

    For a part of a file, only that part is visible. Raises ShardError if the name is not UTF-8,
    because a ledger cannot hold it. Other errors are those of `open_file_system`.
    """
    if not is_utf8(shard.source):
        raise ShardError(shard.url, "has a name that is not UTF-8; rename it")
    fs, path = open_file_system(whole_of(shard.source), storage_options)
    first = first_byte(shard.source)
    return (fs if first is None else PartOfFile(fs, first, shard.size)), path


def files_of(
    shard: Shard, storage_options: Mapping[str, object] | None = None
) -> tuple[FileState, ...]:
    """Return the current state of each file of a shard, by path."""
    with shard_errors(shard.source, storage_options):
        fs, path = open_shard(shard, storage_options)
        if shard.url.endswith("/"):
            return tuple(files_under(fs, path, shard.url))
        return (file_state(fs, path),)


def require_kind(kind: str) -> None:
    """Raise InvalidInput for an unknown format."""
    if kind not in formats.FORMATS:
        raise InvalidInput(
            f"there is no format {kind!r}; choose one of {', '.join(formats.FORMATS)}"
        )


def kind_by_suffix(url: str) -> str | None:
    """Return the name of the format that the suffix of a URL stands for, or None."""
    form = formats.format_of(url)
    return None if form is None else form.name


@contextmanager
def as_shard(lines: bytes) -> Iterator[Shard]:
    """Hold `lines` of JSON as a shard in the memory of this process, until the context ends."""
    files, url = fsspec.filesystem("memory"), f"memory:///read/{uuid.uuid4().hex}.jsonl"
    files.pipe_file(url, lines)
    try:
        yield Shard(url, len(lines))
    finally:
        files.rm_file(url)
