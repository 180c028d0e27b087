"""TableColumns: categorical columns, of which the words of a vocabulary are the values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.statistics.counts.batch import CountBatch

CATEGORIES = "categories"  # the policy of vocabularies whose terms are values of columns
BETWEEN = "="  # a column and its value, in a term
FEWEST_COLUMNS = 3
# All pairs and triples of their words are kept: 4 n^2 (n + 1) bytes, 538 MB.
MOST_CATEGORIES = 512


@dataclass(frozen=True)
class TableColumns:
    """Columns of a table, each with its categories; a row has one of each column, or none.

    Word by word: the first column's categories, then the second's. Raises InvalidInput for columns
    of one name, of one category, or categories that repeat, and BoundExceeded for more categories
    in all than are counted.

    Examples
    --------
    >>> table = TableColumns.of_terms(["sky=blue", "sky=grey", "wind=no", "wind=yes"])
    >>> table.names, table.starts.tolist()
    (('sky', 'wind'), [0, 2, 4])
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or len(self.names) != len(self.categories):
            raise InvalidInput(f"columns {self.names} repeat a name, or lack categories")
        for name, own in zip(self.names, self.categories, strict=True):
            if len(own) < 2 or len(set(own)) != len(own):
                raise InvalidInput(
                    f"column {name!r} has the categories {list(own)[:5]}; it needs two different "
                    "ones at least: leave it out"
                )
        require_countable(self.names, [len(own) for own in self.categories])

    @classmethod
    def of_terms(cls, terms: Iterable[str]) -> TableColumns:
        """The columns of terms such as `column=value`, those of a column together."""
        found: dict[str, list[str]] = {}
        for term in terms:
            name, _, value = term.partition(BETWEEN)
            found.setdefault(name, []).append(value)
        return cls(tuple(found), tuple(map(tuple, found.values())))

    @classmethod
    def from_json(cls, content: Any) -> TableColumns:
        """The columns that `to_json` described."""
        return cls(
            tuple(str(name) for name, _ in content),
            tuple(tuple(map(str, own)) for _, own in content),
        )

    def to_json(self) -> list[list[Any]]:
        """Names with categories, as JSON can hold them."""
        return [[name, list(own)] for name, own in zip(self.names, self.categories, strict=True)]

    @property
    def number(self) -> int:
        """Number of columns V."""
        return len(self.names)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Categories of each column."""
        return tuple(map(len, self.categories))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(V + 1,) int64, first word of each column."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    @property
    def n_words(self) -> int:
        """Number of words n: categories of all columns."""
        return int(self.starts[-1])

    @property
    def terms(self) -> tuple[str, ...]:
        """The words, `column=value`."""
        every = zip(self.names, self.categories, strict=True)
        return tuple(f"{name}{BETWEEN}{value}" for name, own in every for value in own)

    def words(self, column: int) -> slice:
        """Words of a column."""
        return slice(int(self.starts[column]), int(self.starts[column + 1]))

    def codes(self, batch: CountBatch) -> NDArray[np.int64]:
        """(rows, V) int64, the category of each row in each column; -1 where it has none.

        Examples
        --------
        >>> table = TableColumns.of_terms(["a=0", "a=1", "b=0", "b=1"])
        >>> table.codes(CountBatch.from_csr([[0, 1, 1, 0], [1, 0, 0, 0]])).tolist()
        [[1, 0], [0, -1]]
        """
        found = np.full((batch.documents, self.number), -1, dtype=np.int64)
        rows = np.repeat(np.arange(batch.documents), np.diff(batch.indptr))
        inside = batch.words < self.n_words  # words that came later are of no column here
        words = batch.words[inside]
        columns = np.searchsorted(self.starts, words, side="right") - 1
        found[rows[inside], columns] = words - self.starts[columns]
        return found

    def batch(self, codes: NDArray[np.int64], vocabulary: str = "") -> CountBatch:
        """Rows given by `codes` as counts of words."""
        rows, columns = np.nonzero(codes >= 0)
        words = codes[rows, columns] + self.starts[columns]
        indptr = np.concatenate([[0], np.cumsum((codes >= 0).sum(axis=1), dtype=np.int64)])
        return CountBatch(
            indptr,
            words.astype(np.int32),
            np.ones(words.size, dtype=np.int32),
            self.n_words,
            vocabulary,
        )


def require_countable(names: Iterable[str], sizes: Iterable[int]) -> None:
    """Raise BoundExceeded for columns with too many categories to count pairs and triples."""
    own = dict(zip(names, sizes, strict=True))
    total = sum(own.values())
    if total > MOST_CATEGORIES:
        widest = max(own, key=lambda name: own[name])
        raise BoundExceeded(
            f"the columns have {total:,} categories, {own[widest]:,} of them in {widest!r}: all "
            f"their pairs and triples take {state_bytes(total):,} bytes, and at most "
            f"{MOST_CATEGORIES} are counted ({state_bytes(MOST_CATEGORIES):,} bytes); leave out "
            "columns such as names and numbers, or merge rare categories"
        )


def state_bytes(n_words: int) -> int:
    """Bytes of the triples of so many categories."""
    return 4 * n_words**2 * (n_words + 1)
