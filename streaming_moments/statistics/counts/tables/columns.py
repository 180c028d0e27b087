"""TableColumns: categorical columns whose values are the words of a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.statistics.counts.batch import CountBatch

CATEGORIES = "categories"  # value of `policy` for vocabularies whose terms are values of columns
BETWEEN = "="  # separator between a column and its value in a term
FEWEST_COLUMNS = 3
# A table can have at most this many categories n, because all their pairs and triples are stored:
# 4 n^2 (n + 1) bytes, 538 MB.
MOST_CATEGORIES = 512


@dataclass(frozen=True)
class TableColumns:
    """Columns of a table with their categories; a row has one value of each column, or none.

    The words are the categories of the first column, then those of the second, and so on. Raises
    InvalidInput for repeated names or categories and for columns with one category, and
    BoundExceeded for too many categories.

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
            raise InvalidInput(
                f"columns {self.names} have a name twice, or a column has no categories"
            )
        for name, own in zip(self.names, self.categories, strict=True):
            if len(own) < 2 or len(set(own)) != len(own):
                raise InvalidInput(
                    f"column {name!r} has the categories {list(own)[:5]}; it needs at least two: "
                    "leave it out"
                )
        require_countable(self.names, [len(own) for own in self.categories])

    @classmethod
    def of_terms(cls, terms: Iterable[str]) -> TableColumns:
        """Make columns from terms of the form `column=value`; terms of a column are adjacent."""
        found: dict[str, list[str]] = {}
        for term in terms:
            name, _, value = term.partition(BETWEEN)
            found.setdefault(name, []).append(value)
        return cls(tuple(found), tuple(map(tuple, found.values())))

    @classmethod
    def from_json(cls, content: Any) -> TableColumns:
        """Restore columns from `to_json`."""
        return cls(
            tuple(str(name) for name, _ in content),
            tuple(tuple(map(str, own)) for _, own in content),
        )

    def to_json(self) -> list[list[Any]]:
        """Return the names with their categories, for JSON."""
        return [[name, list(own)] for name, own in zip(self.names, self.categories, strict=True)]

    @property
    def number(self) -> int:
        """Number of columns V."""
        return len(self.names)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each column."""
        return tuple(map(len, self.categories))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Index of each column's first word, (V + 1,) int64; the last entry is `n_words`."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    @property
    def n_words(self) -> int:
        """Number of words n, which are the categories of all columns."""
        return int(self.starts[-1])

    @property
    def terms(self) -> tuple[str, ...]:
        """The words, `column=value`."""
        every = zip(self.names, self.categories, strict=True)
        return tuple(f"{name}{BETWEEN}{value}" for name, own in every for value in own)

    def words(self, column: int) -> slice:
        """Return the range of the words of a column."""
        return slice(int(self.starts[column]), int(self.starts[column + 1]))

    def codes(self, batch: CountBatch) -> NDArray[np.int64]:
        """Return the category of each row in each column, (rows, V) int64; -1 without a value.

        Examples
        --------
        >>> table = TableColumns.of_terms(["a=0", "a=1", "b=0", "b=1"])
        >>> table.codes(CountBatch.from_csr([[0, 1, 1, 0], [1, 0, 0, 0]])).tolist()
        [[1, 0], [0, -1]]
        """
        found = np.full((batch.documents, self.number), -1, dtype=np.int64)
        rows = np.repeat(np.arange(batch.documents), np.diff(batch.indptr))
        # ignore words that were added later, because they belong to no column
        inside = batch.words < self.n_words
        words = batch.words[inside]
        columns = np.searchsorted(self.starts, words, side="right") - 1
        found[rows[inside], columns] = words - self.starts[columns]
        return found

    def batch(self, codes: NDArray[np.int64], vocabulary: str = "") -> CountBatch:
        """Return a batch of word counts for rows whose categories are `codes`."""
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
    """Raise BoundExceeded if there are too many categories to store all pairs and triples."""
    own = dict(zip(names, sizes, strict=True))
    total = sum(own.values())
    if total > MOST_CATEGORIES:
        widest = max(own, key=lambda name: own[name])
        raise BoundExceeded(
            f"the columns have {total:,} categories, {own[widest]:,} of them in {widest!r}: all "
            f"their pairs and triples need {state_bytes(total):,} bytes, but at most "
            f"{MOST_CATEGORIES} categories are allowed ({state_bytes(MOST_CATEGORIES):,} bytes); "
            "leave out "
            "columns such as names and numbers, or merge rare categories"
        )


def state_bytes(n_words: int) -> int:
    """Return how many bytes the triples of `n_words` categories take."""
    return 4 * n_words**2 * (n_words + 1)
