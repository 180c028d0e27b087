"""Count the values of categorical columns over a vocabulary of these values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.tables.columns import BETWEEN, CATEGORIES
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.columns import values_of
from streaming_moments.storage.counting.counting import CountedPassages
from streaming_moments.storage.formats import Holds

_UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class CategoryIndex:
    """Finds the values of table columns in a vocabulary with terms of the form `column=value`."""

    holds: ClassVar[Holds] = "categories"

    vocabulary: Vocabulary

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> CategoryIndex:
        """Build the index; raises ForeignStatistics if the terms of the vocabulary are words."""
        if vocabulary.policy != CATEGORIES:
            raise ForeignStatistics(
                "the vocabulary contains words; give a vocabulary of column values"
            )
        return cls(vocabulary)

    def count(self, rows: pa.Table) -> tuple[CountBatch, int]:
        """Count rows as `count_rows` does."""
        return count_rows(rows, self)

    def counted(self, rows: pa.Table) -> CountedPassages:
        """Count rows as `count_rows` does; also return the number of unknown values in each row."""
        vocabulary = self.vocabulary
        words = coded(rows, lambda term: vocabulary.index.get(term, _UNKNOWN))
        starts = np.arange(len(words) + 1) * words.shape[1]
        known = np.where(words < 0, -1, words).ravel()
        batch = CountBatch.from_rows(
            starts, known, None, vocabulary.n_words, vocabulary.fingerprint
        )
        outside = (words == _UNKNOWN).sum(axis=1, dtype=np.int64)
        return CountedPassages(batch, outside, np.ones(len(words), np.int64))


def count_rows(rows: pa.Table, index: CategoryIndex) -> tuple[CountBatch, int]:
    """Count the values in each row of a table: (rows, n) counts, and the number of unknown values.

    A null or an empty text is a missing value. A value that the vocabulary lacks is unknown, and is
    treated as missing. Each column counts at most once in a row.

    Examples
    --------
    >>> vocabulary = Vocabulary(("a=0", "a=1", "b=x", "b=y"), core=4, policy=CATEGORIES)
    >>> rows = pa.table({"a": [1, 2, None], "b": ["x", "x", "y"]})
    >>> batch, outside = count_rows(rows, CategoryIndex.of(vocabulary))
    >>> batch.to_csr().toarray().tolist(), outside
    ([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]], 1)
    """
    counted = index.counted(rows)
    return counted.batch, int(counted.outside.sum())


def coded(rows: pa.Table, code_of: Callable[[str], int]) -> NDArray[np.int64]:
    """Convert each value of a table to the code of its term `column=value`.

    Returns (rows, columns) int64, with -1 for a missing value.

    Examples
    --------
    >>> coded(pa.table({"a": ["x", None]}), len).tolist()
    [[3], [-1]]
    """
    found = np.empty((rows.num_rows, rows.num_columns), dtype=np.int64)
    for place, name in enumerate(rows.schema.names):
        values = values_of(rows.column(place), name, "")
        encoded = values.texts.dictionary_encode()
        codes = [code_of(f"{name}{BETWEEN}{value}") for value in encoded.dictionary.to_pylist()]
        places = encoded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
        found[:, place] = np.array([*codes, -1], dtype=np.int64)[places]
    return found
