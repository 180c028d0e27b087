"""Columns by name: what a model computes for records, for files, answers and frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Column:
    """One value for each row: a number, a text, or a list of numbers.

    Parameters
    ----------
    array : (rows,) or (rows, width)
        Numbers, or lists of equal length; with `offsets`, the (numbers,) of all lists.
    unknown : (rows,) bool, optional
        Rows without a value.
    offsets : (rows + 1,) int64, optional
        Start of each row's list, for lists of different lengths.
    texts : tuple of str, optional
        Texts that the numbers in `array` index.

    Examples
    --------
    >>> Column(np.array([1, 0]), texts=("sea", "law")).plain()
    ['law', 'sea']
    >>> Column(np.arange(3), offsets=np.array([0, 1, 3])).plain()
    [(0,), (1, 2)]
    """

    array: NDArray[Any]
    unknown: NDArray[np.bool_] | None = None
    offsets: NDArray[np.int64] | None = None
    texts: tuple[str, ...] | None = None

    @property
    def number(self) -> int:
        """Number of rows."""
        return len(self.array) if self.offsets is None else len(self.offsets) - 1

    def among(self, kept: NDArray[np.bool_]) -> Column:
        """Spread the values over more rows, at the True entries of `kept`; not for ragged lists."""
        array = np.zeros((len(kept), *self.array.shape[1:]), self.array.dtype)
        array[kept] = self.array
        unknown = ~kept
        if self.unknown is not None:
            unknown[kept] = self.unknown
        return Column(array, unknown, texts=self.texts)

    def plain(self, digits: int | None = None) -> list[Any]:
        """Values as in JSON: lists as tuples, None for an unknown value."""
        rounded = self.array if digits is None else self.array.round(digits)
        values: list[Any] = rounded.tolist()
        if self.offsets is not None:
            values = [tuple(values[one:stop]) for one, stop in pairwise(self.offsets.tolist())]
        elif self.array.ndim > 1:
            values = [*map(tuple, values)]
        elif self.texts is not None:
            values = [self.texts[place] for place in values]
        if self.unknown is None:
            return values
        return [None if no else one for no, one in zip(self.unknown.tolist(), values, strict=True)]


@dataclass(frozen=True, eq=False)
class Columns(Mapping[str, Any]):
    """Columns of the same rows by name, in order; a column may be `Columns` itself.

    Parameters
    ----------
    columns : mapping of str to Column or Columns
        At least one.

    Examples
    --------
    >>> said = Columns.of(topic=np.array([1, 0]), shares=np.array([[0.25, 0.75], [1.0, 0.0]]))
    >>> said["topic"].plain(), said.number
    ([1, 0], 2)
    >>> said.plain()
    [{'topic': 1, 'shares': (0.25, 0.75)}, {'topic': 0, 'shares': (1.0, 0.0)}]
    """

    columns: Mapping[str, Any]

    @classmethod
    def of(cls, **columns: NDArray[Any] | Column | Columns) -> Columns:
        """Make columns; arrays have no unknown rows."""
        made = {
            name: Column(one) if isinstance(one, np.ndarray) else one
            for name, one in columns.items()
        }
        return cls(made)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def number(self) -> int:
        """Number of rows."""
        return int(next(iter(self.columns.values())).number)

    def among(self, kept: NDArray[np.bool_]) -> Columns:
        """Spread the columns over more rows, at the True entries of `kept`; others are unknown."""
        return Columns({name: one.among(kept) for name, one in self.columns.items()})

    def plain(self, digits: int | None = None) -> list[dict[str, Any]]:
        """Rows as in JSON, values by name."""
        values = [one.plain(digits) for one in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]


def likeliest(shares: NDArray[np.float64], unknown: NDArray[np.bool_] | None = None) -> Column:
    """Index of the largest of the (rows, k) shares of each row.

    Examples
    --------
    >>> likeliest(np.array([[0.25, 0.75]])).plain()
    [1]
    """
    return Column(shares.argmax(axis=1).astype(np.int32), unknown)
