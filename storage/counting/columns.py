"""Look up the values of table columns in a vocabulary; a row may have several in one column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.formats.columns.numbers import whole_numbers
from streaming_moments.storage.formats.parquet import is_list
from streaming_moments.storage.lazy_libraries import pa, pc


@dataclass(frozen=True, eq=False)
class Values:
    """Values of a column, as strings.

    offsets : (rows + 1,) int64, index in `texts` at which the values of each row start
    texts : large string array, or a dictionary array of large strings, whose dictionary has no
        nulls; a null is a missing value
    """

    offsets: NDArray[np.int64]
    texts: pa.Array

    def places(self, words: pa.LargeStringArray) -> NDArray[np.int32]:
        """Return the (values,) int32 index of each value in `words`; -1 if it is not there."""
        held = self.texts
        if pa.types.is_dictionary(held.type):
            kinds = np.asarray(pc.fill_null(pc.index_in(held.dictionary, value_set=words), -1))
            return np.asarray(kinds[np.asarray(held.indices)], dtype=np.int32)
        found = pc.fill_null(pc.index_in(held, value_set=words), -1)
        return np.asarray(found, dtype=np.int32)


def values_of(column: pa.ChunkedArray, name: str, url: str) -> Values:
    """Read the values of a column of strings, integers, booleans, dates, or lists of these.

    A null, a NaN or an empty text is a missing value. Raises ShardError for other types, such as
    fractional numbers.

    Examples
    --------
    >>> values = values_of(pa.chunked_array([[[3, 4], None, [3]]]), "ids", "/corpus/a.parquet")
    >>> values.offsets, values.texts.to_pylist()
    (array([0, 2, 2, 3]), ['3', '4', '3'])
    """
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    if is_list(whole.type):
        sizes = np.asarray(pc.fill_null(pc.list_value_length(whole), 0), dtype=np.int64)
        offsets, flat = np.concatenate([[0], np.cumsum(sizes)]), whole.flatten()
    else:
        offsets, flat = np.arange(len(whole) + 1), whole
    numbers = whole_numbers(flat)
    flat = flat if numbers is None else numbers
    kind = flat.type.value_type if pa.types.is_dictionary(flat.type) else flat.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_nested(kind):
        raise ShardError(
            url,
            f"column {name!r} is of type {column.type}; give strings, whole numbers (float64 below "
            "2^53) or dates, or lists of them, and group other numbers into classes",
        )
    texts = flat.cast(kind).cast(pa.large_string())
    return Values(offsets.astype(np.int64), pc.if_else(pc.equal(texts, ""), None, texts))


def words_of(vocabulary: Vocabulary) -> pa.LargeStringArray:
    """Return the terms of a vocabulary as the array that `Values.places` takes."""
    return pa.array(vocabulary.terms, pa.large_string())
