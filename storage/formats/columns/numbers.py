"""Numbers: columns of a floating point type that hold only whole numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def whole_numbers(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """Convert floats to int64, with NaN as a null; None unless all other values are whole.

    pandas writes whole numbers with missing values as floats. The result is also None if a
    number is 2^53 or more (2^24 for float32), as different whole numbers may have become equal.

    Examples
    --------
    >>> whole_numbers(pa.chunked_array([[1.0, None, float("nan")]])).to_pylist()
    [1, None, None]
    >>> whole_numbers(pa.chunked_array([[0.5]])) is None
    True
    >>> whole_numbers(pa.chunked_array([[2.0**53]])) is None
    True
    """
    if not pa.types.is_floating(column.type):
        return None
    numbers = column.cast(pa.float64())
    exact = 2.0 ** (np.finfo(column.type.to_pandas_dtype()).nmant + 1)
    if pc.any(pc.greater_equal(pc.abs(numbers), exact)).as_py():
        return None
    try:
        return pc.if_else(pc.is_nan(numbers), None, numbers).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
