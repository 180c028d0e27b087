"""Formats: how shards store documents. Each format has a file here and a line in `registry`.

`base` defines a format. `compressions` lists compressions of files, and decompresses files while
they are read.
"""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("csv_kernels",))

if TYPE_CHECKING:
    from streaming_moments.storage.formats.base import DEFAULT_LIMITS as DEFAULT_LIMITS
    from streaming_moments.storage.formats.base import START as START
    from streaming_moments.storage.formats.base import Columns as Columns
    from streaming_moments.storage.formats.base import Format as Format
    from streaming_moments.storage.formats.base import Holds as Holds
    from streaming_moments.storage.formats.base import Position as Position
    from streaming_moments.storage.formats.base import ReadLimits as ReadLimits
    from streaming_moments.storage.formats.base import Source as Source
    from streaming_moments.storage.formats.base import not_documents as not_documents
    from streaming_moments.storage.formats.compressions import COMPRESSIONS as COMPRESSIONS
    from streaming_moments.storage.formats.compressions import (
        uncompressed_name as uncompressed_name,
    )
    from streaming_moments.storage.formats.id_chunks import IdChunk as IdChunk
    from streaming_moments.storage.formats.id_chunks import join_ids as join_ids
    from streaming_moments.storage.formats.registry import FORMATS as FORMATS
    from streaming_moments.storage.formats.registry import format_of as format_of
    from streaming_moments.storage.formats.text_chunks import buffers as buffers
    from streaming_moments.storage.formats.text_chunks import encoded as encoded
