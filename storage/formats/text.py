"""Text: one document on each line, even an empty line."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from streaming_moments.storage.formats.base import Format, Position, ReadLimits, Source, decoded
from streaming_moments.storage.formats.lines import read_lines
from streaming_moments.storage.formats.text_chunks import encoded_in_chunks


class Text(Format):
    """One document on each line."""

    name = "text"
    suffixes = (".txt",)
    grows = True

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Array, Position]]:
        texts = (
            (decoded(line, f"line {after.passed}", source.url), len(line), after)
            for after, line in read_lines(source, limits.document_bytes, start)
        )
        return encoded_in_chunks(texts, limits)
