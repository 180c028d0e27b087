"""Format: which versions of this package may read and write a store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming_moments.errors import StoreError
from streaming_moments.storage.folders import Folder
from streaming_moments.storage.layout import FORMAT_FILE
from streaming_moments.storage.sealed import seal, unseal

READS = 1
WRITES = 1


class FormatError(StoreError):
    """A store is of a format this version of the package does not know."""


@dataclass(frozen=True)
class StoreFormat:
    """Content of `format.json`.

    Parameters
    ----------
    format, min_reader, min_writer : int
        Format of the store, and the formats a reader and a writer must know at least.
    single_writer : bool
        Whether the user vouched that there is one writer, as the storage refuses no second one.
    unknown : mapping
        Keys of later versions, kept.
    """

    format: int = WRITES
    min_reader: int = READS
    min_writer: int = WRITES
    single_writer: bool = False
    unknown: Mapping[str, Any] = field(default_factory=dict)

    def require_writable(self, url: str) -> None:
        """Refuse to write what only a later version of the package may write.

        Raises
        ------
        FormatError
            Names the version of the format to install.
        """
        if self.min_writer > WRITES:
            raise FormatError(
                f"{url} may be written only by versions of streaming-moments that know store "
                f"format {self.min_writer}, this one knows {WRITES}; upgrade streaming-moments"
            )


def write_format(folder: Folder, form: StoreFormat) -> None:
    """Write `format.json`."""
    known = {
        "format": form.format,
        "min_reader": form.min_reader,
        "min_writer": form.min_writer,
        "single_writer": form.single_writer,
    }
    folder.write(FORMAT_FILE, seal({**known, **form.unknown}))


def read_format(folder: Folder) -> StoreFormat:
    """Read `format.json`.

    Raises
    ------
    StoreError
        There is no store, or the file is damaged.
    FormatError
        A format that is not known here: names the one to install.
    """
    where = f"{folder.url}/{FORMAT_FILE}"
    data = folder.find(FORMAT_FILE)
    if data is None:
        raise StoreError(
            f"there is no store at {folder.url}; check the URL, or create one with "
            "`streaming-moments create`"
        )
    content = _parsed(data, where)
    needed = content.get("min_reader")
    # before the seal, which a later format may make in another way
    if isinstance(needed, int) and needed > READS:
        raise FormatError(
            f"{folder.url} may be read only by versions of streaming-moments that know store "
            f"format {needed}, this one knows {READS}; upgrade streaming-moments"
        )
    content = unseal(data, where)
    try:
        return StoreFormat(
            int(content.pop("format")),
            int(content.pop("min_reader")),
            int(content.pop("min_writer")),
            bool(content.pop("single_writer")),
            content,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{where} is not of a known format ({error!r}); restore it") from error


def _parsed(data: bytes, where: str) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except ValueError as error:
        raise StoreError(f"{where} is damaged (no JSON); restore it from a copy") from error
    if not isinstance(content, dict):
        raise StoreError(f"{where} is damaged (no JSON object); restore it from a copy")
    return content
