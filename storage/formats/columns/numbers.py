"""Numbers: columns of a floating type whose numbers are whole."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def whole_numbers(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """Numbers of a floating type that are all whole, as int64, NaN as a null; else None.

    So pandas writes a column of whole numbers of which some are missing.

    Examples
    --------
    >>> whole_numbers(pa.chunked_array([[1.0, None, float("nan")]])).to_pylist()
    [1, None, None]
    >>> whole_numbers(pa.chunked_array([[0.5]])) is None
    True
    """
    if not pa.types.is_floating(column.type):
        return None
    numbers = column.cast(pa.float64())
    try:
        return pc.if_else(pc.is_nan(numbers), None, numbers).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
