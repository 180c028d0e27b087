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
from streaming_moments.storage.files.urls import check_the
from streaming_moments.storage.log.layout import FORMAT_FILE
from streaming_moments.storage.log.schema import Count, Extensible, checked

READS = 6
WRITES = 6
# A store gets the lowest format that it needs. Each format has features that earlier versions of
# the package lack (in brackets: what these versions would do):
# 2: length weights
# 3: separate counts of half of the documents
# 4: tables of categorical columns
# 5: forgotten shards (they would count these again), dates with time zones (they would use other
#    days), origins (they would merge segments of several), and copied models (a purge would not
#    delete these)
# 6: the content of a document decides to which half it belongs (they would use its place)
# Earlier versions may read stores of formats 5 and 6, but must not write to them.
_NEEDED = {"length weights": 2, "halves of documents": 3, "categorical columns": 4}
# first version of the package that reads and writes each format
INSTALLS = {1: "0.1.0", 2: "0.2.0", 3: "0.2.0", 4: "0.2.0", 5: "0.3.0", 6: "0.3.0"}
_CAREFUL = 5
_BY_CONTENT = 6
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,40}")


class FormatError(StoreError):
    """The package is too old for the format of a store."""


@dataclass(frozen=True)
class StoreFormat(Extensible):
    """Content of `format.json`.

    format, min_reader, min_writer : format of the store, and the lowest formats that readers and
        writers must support
    single_writer : whether the user guarantees a single writer, on storage that cannot exclude a
        second one
    install : version of the package that supports these formats, to name in errors; empty if
        unknown
    unknown : keys of later versions, preserved
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
        """Return the lowest format that supports all features of a foundation."""
        return cls(single_writer=single_writer).raised(foundation)

    def raised(self, foundation: Foundation) -> StoreFormat:
        """Return this format, raised until it supports all features of a foundation."""
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
        """Return this format, raised so that it excludes writers that ignore some features.

        The features are forgotten shards, time zones of dates, origins and copied models.
        """
        return self._for_writers(_CAREFUL)

    def _for_writers(self, needed: int) -> StoreFormat:
        """Return this format, raised to exclude writers below format `needed`, but no readers."""
        if self.min_writer >= needed:
            return self
        return replace(
            self, format=max(self.format, needed), min_writer=needed, install=INSTALLS[needed]
        )

    def require_writable(self, url: str) -> None:
        """Refuse to write a store that only a later version of the package may write.

        Raises FormatError with the version to install.
        """
        if self.min_writer > WRITES:
            raise FormatError(
                f"writing {url} needs a version of streaming-moments that supports store format "
                f"{self.min_writer}, and this one supports {WRITES}; {_upgrade(self.install)}"
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
    """Raise the format of a store to what a foundation needs, so that older versions refuse it."""
    before = read_format(folder)
    raised = before.raised(foundation)
    if raised != before:
        write_format(folder, raised)
        folder.sync("")
    return raised


def raise_writer(folder: Folder) -> None:
    """Exclude old versions of the package from writing to a store.

    They would count forgotten shards again, mix up origins, or keep copied models in a purge.

    Raises the errors of `raise_format`.
    """
    before = read_format(folder)
    raised = before.for_careful_writers()
    if raised != before:
        write_format(folder, raised)
        folder.sync("")


def read_format(folder: Folder) -> StoreFormat:
    """Read `format.json`; raises FormatError, with the version to install, for an unknown format.

    Raises StoreError if the bucket is missing.
    """
    where = f"{folder.url}/{FORMAT_FILE}"
    data = folder.find(FORMAT_FILE)
    if data is None:
        folder.require_bucket()
        raise StoreError(
            f"there is no store at {folder.url}",
            f"{check_the(folder.url)}, or create one with {{create}}",
        )
    content = json_object(data, where)
    needed = content.get("min_reader")
    # check `min_reader` before the checksum, as a later format may compute the checksum differently
    if isinstance(needed, int) and needed > READS:
        raise FormatError(
            f"{where}: reading the store needs a version of streaming-moments that supports store "
            f"format {needed}, and this one supports {READS}; {_upgrade(content.get('install'))}"
            f"{_doubt(data, where)}"
        )
    content = unseal(data, where)
    install = content.get("install")
    named = {**content, "install": install if isinstance(install, str) else ""}
    return checked(_FORMAT, named, f"{where} is not a valid store format")


def _upgrade(install: object) -> str:
    known = isinstance(install, str) and _VERSION.fullmatch(install)
    return f"upgrade streaming-moments{f' to {install} or later' if known else ''}"


def _doubt(data: bytes, where: str) -> str:
    """Return a hint that a file of a later format may be damaged; empty if its checksum fits."""
    try:
        unseal(data, where)
    except StoreError:
        return "; if the file is damaged (its SHA-256 does not match), restore it from a copy"
    return ""
