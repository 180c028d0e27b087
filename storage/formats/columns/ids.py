"""Id columns: read the names of documents from a column, as texts."""

from __future__ import annotations

import pyarrow as pa

from streaming_moments.errors import ShardError


def names_of(values: pa.Array, column: str, url: str) -> pa.StringArray:
    """Convert the values of a column to texts; write integers in decimal, and keep nulls.

    Raises ShardError for other types.

    Examples
    --------
    >>> names_of(pa.array([7, None]), "id", "/corpus/a.parquet").to_pylist()
    ['7', None]
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        names = values.cast(pa.string())
        names.validate(full=True)  # readers of Parquet do not check UTF-8
    except pa.ArrowInvalid as error:
        raise ShardError(
            url, f"column {column!r} of ids has values that are not UTF-8; convert it to UTF-8"
        ) from error
    return names
