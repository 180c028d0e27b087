"""Format: which versions of this package may read and write a store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pydantic import StrictBool, TypeAdapter

from streaming_moments.errors import StoreError
from streaming_moments.statistics.base import Foundation
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import json_object, seal, unseal
from streaming_moments.storage.log.layout import FORMAT_FILE
from streaming_moments.storage.log.schema import Count, Extensible, checked

READS = 6
WRITES = 6
# Formats, each with the first version of the package that reads and writes it: the second has
# documents that are weighted by their lengths, the third halves of the documents, the fourth tables
# of categorical columns, and each is made only where these are. The fifth lists what was forgotten,
# or has a column of dates whose texts may have zones: earlier versions may read it, and would count
# again what it lists, or count by other days. The sixth has halves of what records hold, which
# earlier versions may read, and would go on with by their places.
_NEEDED = {"length weights": 2, "halves of documents": 3, "categorical columns": 4}
INSTALLS = {1: "0.1.0", 2: "0.2.0", 3: "0.2.0", 4: "0.2.0", 5: "0.3.0", 6: "0.3.0"}
_CAREFUL = 5
_BY_CONTENT = 6
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,40}")


class FormatError(StoreError):
    """A store is of a format this version of the package does not know."""


@dataclass(frozen=True)
class StoreFormat(Extensible):
    """Content of `format.json`.

    Parameters
    ----------
    format, min_reader, min_writer : int
        Format of the store, and the formats a reader and a writer must know at least.
    single_writer : bool
        Whether the user vouched that there is one writer, as the storage refuses no second one.
    install : str
        Version of the package that knows these formats, for one that does not; empty if unknown.
    unknown : mapping
        Keys of later versions, preserved.
    """

    always: ClassVar[frozenset[str]] = frozenset(
        {"format", "min_reader", "min_writer", "single_writer"}
    )
    format: Count = 1
    min_reader: Count = 1
    min_writer: Count = 1
    single_writer: StrictBool = False
    install: str = INSTALLS[1]
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, foundation: Foundation, single_writer: bool = False) -> StoreFormat:
        """The lowest format that holds statistics of a foundation."""
        return cls(single_writer=single_writer).raised(foundation)

    def raised(self, foundation: Foundation) -> StoreFormat:
        """The format that holds statistics of a foundation, too."""
        needed = max((_NEEDED[one] for one in foundation.since_first), default=1)
        raised = self
        if min(self.format, self.min_reader, self.min_writer) < needed:
            raised = replace(
                self,
                format=max(self.format, needed),
                min_reader=max(self.min_reader, needed),
                min_writer=max(self.min_writer, needed),
                install=INSTALLS[needed] if self.format <= needed else self.install,
            )
        return raised._for_writers(_BY_CONTENT) if foundation.halves_by_content else raised

    def for_careful_writers(self) -> StoreFormat:
        """The format that keeps out writers that know of nothing forgotten, and of no zones."""
        return self._for_writers(_CAREFUL)

    def _for_writers(self, needed: int) -> StoreFormat:
        """The format that keeps out writers of earlier ones, and no readers."""
        if self.min_writer >= needed:
            return self
        return replace(
            self, format=max(self.format, needed), min_writer=needed, install=INSTALLS[needed]
        )

    def require_writable(self, url: str) -> None:
        """Refuse to write what only a later version of the package may write.

        Raises
        ------
        FormatError
            Names the version to install.
        """
        if self.min_writer > WRITES:
            raise FormatError(
                f"{url} may be written only by versions of streaming-moments that know store "
                f"format {self.min_writer}, this one knows {WRITES}; {_upgrade(self.install)}"
            )


_FORMAT = TypeAdapter(StoreFormat)


def write_format(folder: Folder, form: StoreFormat) -> None:
    """Write `format.json`."""
    known = {
        "format": form.format,
        "min_reader": form.min_reader,
        "min_writer": form.min_writer,
        "single_writer": form.single_writer,
        "install": form.install,
    }
    folder.write(FORMAT_FILE, seal({**known, **form.unknown}))


def raise_format(folder: Folder, foundation: Foundation) -> StoreFormat:
    """Let a store hold statistics of a foundation: versions that cannot count them are kept out."""
    before = read_format(folder)
    raised = before.raised(foundation)
    if raised != before:
        write_format(folder, raised)
        folder.sync("")
    return raised


def raise_writer(folder: Folder) -> None:
    """Keep out writers that would count again what was forgotten; raises as `raise_format`."""
    before = read_format(folder)
    raised = before.for_careful_writers()
    if raised != before:
        write_format(folder, raised)
        folder.sync("")


def read_format(folder: Folder) -> StoreFormat:
    """Read `format.json`; raises FormatError, with the version to install, for an unknown format.

    A missing bucket is a StoreError.
    """
    where = f"{folder.url}/{FORMAT_FILE}"
    data = folder.find(FORMAT_FILE)
    if data is None:
        folder.require_bucket()
        raise StoreError(
            f"there is no store at {folder.url}; check the URL, or create one with "
            "`streaming-moments create`"
        )
    content = json_object(data, where)
    needed = content.get("min_reader")
    # before the seal, which a later format may make in another way
    if isinstance(needed, int) and needed > READS:
        raise FormatError(
            f"{where}: the store may be read only by versions of streaming-moments that know store "
            f"format {needed}, this one knows {READS}; {_upgrade(content.get('install'))}"
            f"{_doubt(data, where)}"
        )
    content = unseal(data, where)
    install = content.get("install")
    named = {**content, "install": install if isinstance(install, str) else ""}
    return checked(_FORMAT, named, f"{where} is not of a known format")


def _upgrade(install: object) -> str:
    known = isinstance(install, str) and _VERSION.fullmatch(install)
    return f"upgrade streaming-moments{f' to {install} or later' if known else ''}"


def _doubt(data: bytes, where: str) -> str:
    """What to say of a file whose seal is not one of this format."""
    try:
        unseal(data, where)
    except StoreError:
        return "; or the file is damaged, as its SHA-256 does not fit: then restore it from a copy"
    return ""
