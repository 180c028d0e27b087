"""Shared foundation: the definition of a store without its counts, for stores that can be merged.

Its file is JSON, sealed like the files of a store. It contains the lineage, which describes how
shards are read, and copies of the files of vocabulary and basis.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.types import Base64Bytes

from streaming_moments.errors import StoreError
from streaming_moments.statistics.base import Foundation
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.files.filesystems import open_file_system
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commit_json import lineage_from_json, lineage_to_json
from streaming_moments.storage.log.commits import READING, Commit, Lineage
from streaming_moments.storage.log.schema import Path, checked
from streaming_moments.storage.segments.foundations import (
    files_of_lineage,
    read_foundation,
    read_vocabulary,
)
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.creation import create_files
from streaming_moments.storage.store.snapshot import Snapshot
from streaming_moments.storage.store.store import MomentStore, format_of

_FOLDERS = ("vocabulary/", "basis/", "foundations/")


@dataclass(frozen=True)
class SharedFoundation:
    """The foundation of a store, without counts, names of shards, models or messages.

    lineage : definition of the statistics, and how shards are read
    files : files of vocabulary and basis, by their paths in a store

    Examples
    --------
    >>> from streaming_moments.testing.small_store import create
    >>> store = create()
    >>> shared = SharedFoundation.of(store)
    >>> SharedFoundation.from_bytes(shared.to_bytes(), "words.json") == shared
    True
    >>> create_like("memory://like", shared).basis == store.basis
    True
    """

    lineage: Lineage
    files: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def of(cls, store: Snapshot) -> SharedFoundation:
        """Return the foundation of a version of a store."""
        lineage = store.commit.lineage
        return cls(lineage, files_of_lineage(store.folder, lineage))

    @classmethod
    def at(cls, url: str, storage_options: Mapping[str, Any] | None = None) -> SharedFoundation:
        """Return the foundation of the store at a URL, or of a file that `save` wrote.

        Raises
        ------
        StoreError
            The URL holds neither, or the store or file is damaged.
        """
        fs, path = open_file_system(url, storage_options)
        if not fs.isfile(path):
            return cls.of(MomentStore.open(url, storage_options=storage_options))
        folder, name = _place(url, storage_options)
        return cls.from_bytes(folder.read(name), url)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> SharedFoundation:
        """Decode a file; a StoreError names it as `where`."""
        found = checked(_FILE, unseal(data, where), f"{where} is not a foundation of a store")
        lineage = lineage_from_json(found.lineage, where)
        for path in found.files:
            if not path.startswith(_FOLDERS):
                raise StoreError(f"{where} contains {path}, which is not part of a foundation")
        return cls(lineage, found.files)

    def to_bytes(self) -> bytes:
        """Encode the foundation as a file."""
        files = {path: base64.b64encode(data).decode() for path, data in self.files.items()}
        lineage = lineage_to_json(self.lineage)
        return seal({"foundation": 1, "lineage": lineage, "files": files})

    def save(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        """Write the foundation as a file at a URL; raises StoreError if this fails."""
        folder, name = _place(url, storage_options)
        folder.write(name, self.to_bytes())
        folder.sync("")

    def read_as(
        self, form: Mapping[str, Any] | None = None, dates: DateSource | None = None
    ) -> SharedFoundation:
        """Return the foundation for shards in another format, or with another source of dates.

        Raises InvalidInput if format and dates do not fit together.
        """
        lineage = self.lineage
        content = {**lineage.form, **(form or {})}
        ShardFormat.from_json({key: one for key, one in content.items() if key != READING})
        told = lineage.dates
        if dates is not None:
            told = None if dates == DateSource() else dates.to_json()
        return replace(self, lineage=replace(lineage, form=content, dates=told))


@dataclass(frozen=True)
class _FileJson:
    foundation: Literal[1]
    lineage: Mapping[str, Any]
    files: dict[Path, Base64Bytes]


_FILE = TypeAdapter(_FileJson)


def create_like(
    url: str,
    shared: SharedFoundation,
    message: str = "",
    storage_options: Mapping[str, Any] | None = None,
    single_writer: bool = False,
) -> MomentStore:
    """Create an empty store on the foundation of another, so that the two can be merged.

    Arguments and errors are as for `MomentStore.create`. Also raises StoreError if the files do not
    match the lineage.
    """
    folder, foundation = Folder.at(url, storage_options), _foundation_in(shared)
    # let the eras of smaller vocabularies end with version 0, which has all words in this store
    eras = tuple(replace(era, version=0) for era in shared.lineage.eras)
    lineage = replace(shared.lineage, eras=eras, like=True)
    commit = Commit.first(lineage, message or "create like another store")

    def write(place: Folder) -> None:
        place.write_all(shared.files)

    form = format_of(foundation, lineage, single_writer)
    create_files(folder, form, commit, write)
    return MomentStore(folder, form, commit, foundation)


def _foundation_in(shared: SharedFoundation) -> Foundation:
    """Read the foundation from its files; raises StoreError if they do not match the lineage."""
    lineage = shared.lineage
    folder = Folder.at(f"memory://{uuid.uuid4().hex}")
    folder.write_all(shared.files)
    try:
        for words in (lineage.vocabulary, *(era.vocabulary for era in lineage.eras)):
            if words:
                read_vocabulary(folder, words)
        for era in lineage.eras:
            read_foundation(folder, lineage, era)
        foundation: Foundation = read_foundation(folder, lineage)
    except StoreError as error:
        raise StoreError(str(error).replace(f"{folder.url}/", "the foundation's ")) from error
    finally:
        folder.delete(list(shared.files))
    return foundation


def _place(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Folder, str]:
    """Return the folder of a file, and its name in that folder."""
    above, _, name = url.rpartition("/")
    return Folder.at(above if above or "/" not in url else "/", storage_options), name
