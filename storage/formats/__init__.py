"""Formats: how documents lie in shards, one file and one line of `FORMATS` each.

`base` says what a format is, `compressions` which files are decompressed while they are read.
"""

from collections.abc import Mapping
from types import MappingProxyType

from streaming_moments.storage.formats.base import (
    DEFAULT_LIMITS,
    START,
    Columns,
    Format,
    Holds,
    Position,
    ReadLimits,
    Source,
)
from streaming_moments.storage.formats.compressions import COMPRESSIONS, uncompressed_name
from streaming_moments.storage.formats.csv import Csv
from streaming_moments.storage.formats.directory import Directory
from streaming_moments.storage.formats.id_chunks import IdChunk, join_ids
from streaming_moments.storage.formats.jsonl import JsonLines
from streaming_moments.storage.formats.lda_c import LdaC
from streaming_moments.storage.formats.parquet import Parquet
from streaming_moments.storage.formats.text import Text
from streaming_moments.storage.formats.text_chunks import buffers, encoded

__all__ = [
    "COMPRESSIONS",
    "DEFAULT_LIMITS",
    "FORMATS",
    "START",
    "Columns",
    "Format",
    "Holds",
    "IdChunk",
    "Position",
    "ReadLimits",
    "Source",
    "buffers",
    "encoded",
    "format_of",
    "join_ids",
]

_ALL: tuple[Format, ...] = (
    Parquet(),
    Text(),
    Directory(),
    JsonLines(),
    LdaC(),
    Csv("csv", (".csv",), ","),
    Csv("tsv", (".tsv", ".tab"), "\t"),
)
FORMATS: Mapping[str, Format] = MappingProxyType({form.name: form for form in _ALL})


def format_of(url: str) -> Format | None:
    """Format that the suffix of a file tells, or that takes folders where the URL ends in "/".

    Examples
    --------
    >>> format_of("/corpus/a.jsonl.gz").name, format_of("/corpus/").name, format_of("/corpus/a")
    ('jsonl', 'directory', None)
    """
    name, folder = uncompressed_name(url), url.endswith("/")
    known = (form for form in _ALL if form.of_folder == folder)
    return next((form for form in known if folder or name.endswith(form.suffixes)), None)
