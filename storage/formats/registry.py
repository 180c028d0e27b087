"""Registry of all formats of shards, one line for each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streaming_moments.storage.formats.arrays.arrow import Arrow
from streaming_moments.storage.formats.arrays.npy import Npy
from streaming_moments.storage.formats.arrays.zarr_array import ZarrArray
from streaming_moments.storage.formats.base import Format
from streaming_moments.storage.formats.compressions import uncompressed_name
from streaming_moments.storage.formats.csv import Csv
from streaming_moments.storage.formats.directory import Directory
from streaming_moments.storage.formats.jsonl import JsonLines
from streaming_moments.storage.formats.lda_c import LdaC
from streaming_moments.storage.formats.parquet import Parquet
from streaming_moments.storage.formats.text import Text
from streaming_moments.storage.formats.zip import Zip

_ALL: tuple[Format, ...] = (
    Parquet(),
    Text(),
    ZarrArray(),
    Directory(),
    JsonLines(),
    LdaC(),
    Csv("csv", (".csv",), ","),
    Csv("tsv", (".tsv", ".tab"), "\t"),
    Zip(),
    Npy(),
    Arrow(),
)
FORMATS: Mapping[str, Format] = MappingProxyType({form.name: form for form in _ALL})


def format_of(url: str) -> Format | None:
    """Return the format of a file by its suffix, or of a folder if the URL ends in "/".

    Examples
    --------
    >>> format_of("/corpus/a.jsonl.gz").name, format_of("/corpus/").name, format_of("/corpus/a")
    ('jsonl', 'directory', None)
    >>> format_of("/corpus/a.zarr/").name
    'zarr'
    """
    name, folder = uncompressed_name(url.rstrip("/")), url.endswith("/")
    known = (form for form in _ALL if form.of_folder == folder)
    # the format without suffixes matches every name, so other folders are read as folders of texts
    return next((form for form in known if name.endswith(form.suffixes or "")), None)
