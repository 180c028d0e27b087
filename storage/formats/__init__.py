"""Formats: how documents lie in shards, one file and one line of the `registry` each.

`base` says what a format is, `compressions` which files are decompressed while they are read.
"""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.formats.base import (
        DEFAULT_LIMITS,
        START,
        Columns,
        Format,
        Holds,
        Position,
        ReadLimits,
        Source,
        not_documents,
    )
    from streaming_moments.storage.formats.compressions import COMPRESSIONS, uncompressed_name
    from streaming_moments.storage.formats.id_chunks import IdChunk, join_ids
    from streaming_moments.storage.formats.registry import FORMATS, format_of
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
    "not_documents",
    "uncompressed_name",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "base": (
                "DEFAULT_LIMITS",
                "START",
                "Columns",
                "Format",
                "Holds",
                "Position",
                "ReadLimits",
                "Source",
                "not_documents",
            ),
            "compressions": ("COMPRESSIONS", "uncompressed_name"),
            "id_chunks": ("IdChunk", "join_ids"),
            "registry": ("FORMATS", "format_of"),
            "text_chunks": ("buffers", "encoded"),
        },
        modules=("csv_kernels",),
    )
