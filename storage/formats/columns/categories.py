"""Columns of categories: checks that the type of a column can hold categories."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from streaming_moments.errors import ShardError
from streaming_moments.storage.formats.base import Position
from streaming_moments.storage.formats.columns.numbers import whole_numbers


def of_categories(
    tables: Iterator[tuple[pa.Table, Position]], url: str
) -> Iterator[tuple[pa.Table, Position]]:
    """Yield the tables unchanged; raise ShardError for a column that cannot hold categories."""
    whole = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_null)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    for table, after in tables:
        for field in table.schema:
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            fits = any(of(kind) for of in (*whole, *texts))
            if not fits and whole_numbers(table[field.name]) is None:
                raise ShardError(
                    url,
                    f"column {field.name!r} is of type {field.type}, which is not a category",
                    "give columns of texts or whole numbers (float64 below 2^53) to "
                    "{create.categories}, and group other values into classes",
                )
        yield table, after
