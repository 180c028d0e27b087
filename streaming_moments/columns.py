"""Columns: hold the results of a model for each record, and convert them to tables or JSON.

pyarrow and pandas are imported only to make a table or a frame, because no model needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.printing.extras import needs
from streaming_moments.printing.html_table import html_table
from streaming_moments.printing.number_texts import short
from streaming_moments.printing.short_repr import short_repr

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame
    from pyarrow import Table as Table
else:
    DataFrame = Table = Any

_ROWS = 10  # a table in a notebook shows at most this many rows
_NUMBERS = 6  # a cell shows at most this many values of a list


@dataclass(frozen=True, eq=False)
class Column:
    """One value for each row: a number, a text, or a list of numbers.

    Parameters
    ----------
    array : (rows,) or (rows, width)
        Numbers, or lists of equal length. With `offsets`, one array of the numbers of all lists.
    unknown : (rows,) bool, optional
        Rows without a value.
    offsets : (rows + 1,) int64, optional
        Start of each row's list, for lists of different lengths.
    texts : tuple of str, optional
        Texts of a column of texts; `array` then has the index of the text of each row.

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

    __repr__ = short_repr

    @property
    def number(self) -> int:
        """Number of rows."""
        return len(self.array) if self.offsets is None else len(self.offsets) - 1

    @classmethod
    def of_values(cls, values: Iterable[str | float | None]) -> Column:
        """Make a column of numbers or texts; None in `values` stands for an unknown value.

        Examples
        --------
        >>> Column.of_values([0.5, None]).plain(), Column.of_values(["law", "sea"]).plain()
        ([0.5, None], ['law', 'sea'])
        """
        listed = list(values)
        absent = np.array([one is None for one in listed], dtype=bool)
        unknown = absent if absent.any() else None
        if any(isinstance(one, str) for one in listed):
            texts = tuple("" if one is None else str(one) for one in listed)
            return cls(np.arange(len(listed)), unknown, texts=texts)
        return cls(np.array([0 if one is None else one for one in listed]), unknown)

    def among(self, kept: NDArray[np.bool_]) -> Column:
        """Return a column of `len(kept)` rows, with the values in the rows where `kept` is True.

        The values of the other rows are unknown. Lists must have equal lengths.
        """
        array = np.zeros((len(kept), *self.array.shape[1:]), self.array.dtype)
        array[kept] = self.array
        unknown = ~kept
        if self.unknown is not None:
            unknown[kept] = self.unknown
        return Column(array, unknown, texts=self.texts)

    def plain(self, digits: int | None = None) -> list[Any]:
        """Return the values as Python objects: lists as tuples, None for an unknown value."""
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

    def first(self, number: int) -> Column:
        """Return the first `number` rows.

        If lists have different lengths, `array` still holds the lists of all rows.
        """
        unknown = None if self.unknown is None else self.unknown[:number]
        if self.offsets is not None:
            return Column(self.array, unknown, self.offsets[: number + 1])
        return Column(self.array[:number], unknown, texts=self.texts)

    def to_arrow(self) -> Any:
        """Return an Arrow array, with nulls where values are unknown."""
        pa = _pyarrow()
        array, unknown = self.array, self.unknown
        if self.texts is not None:
            places = pa.array(array.astype(np.int32), mask=unknown)
            return pa.array(self.texts, pa.string()).take(places)
        if self.offsets is not None:
            return pa.ListArray.from_arrays(self.offsets.astype(np.int32), pa.array(array))
        if array.ndim == 1:
            return pa.array(array, mask=unknown)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
        if unknown is None or not unknown.any():
            return lists
        return lists.take(pa.array(np.arange(len(lists)), mask=unknown))


@dataclass(frozen=True, eq=False)
class Columns(Mapping[str, Any]):
    """Columns of the same rows by name, in order. A column may itself be of type `Columns`.

    Parameters
    ----------
    columns : mapping of str to Column or Columns
        At least one.
    index : pandas.Index, optional
        Names of the rows, for frames; by default their numbers.

    Examples
    --------
    >>> said = Columns.of(topic=np.array([1, 0]), shares=np.array([[0.25, 0.75], [1.0, 0.0]]))
    >>> said["topic"].plain(), said.number
    ([1, 0], 2)
    >>> said.plain()
    [{'topic': 1, 'shares': (0.25, 0.75)}, {'topic': 0, 'shares': (1.0, 0.0)}]
    """

    columns: Mapping[str, Any]
    index: Any = None

    def __repr__(self) -> str:
        return f"Columns({self.number:,} rows of {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        shown = f"; the first {_ROWS} rows" if self.number > _ROWS else ""
        return self.first(_ROWS).html(f"{self!r}{shown}")

    @classmethod
    def of(cls, **columns: NDArray[Any] | Column | Columns) -> Columns:
        """Make columns by name. An array becomes a column without unknown values."""
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
        """Return columns of `len(kept)` rows, with the values in the rows where `kept` is True.

        The values of the other rows are unknown.
        """
        return Columns({name: one.among(kept) for name, one in self.columns.items()})

    def first(self, number: int) -> Columns:
        """Return the first rows."""
        index = None if self.index is None else self.index[:number]
        return Columns({name: one.first(number) for name, one in self.columns.items()}, index)

    def html(self, caption: str, digits: int = 4) -> str:
        """Return an HTML table of all rows, with `digits` significant digits, for notebooks.

        Examples
        --------
        >>> Columns.of(topic=np.array([1])).html("read")
        '<table><caption>read</caption><tr><th>topic</th></tr><tr><td>1</td></tr></table>'
        """
        head, rows = [*self.columns], [[*row.values()] for row in self.plain()]
        if self.index is not None:
            head = [str(self.index.name or ""), *head]
            rows = [[str(name), *row] for name, row in zip(self.index, rows, strict=True)]
        return html_table(caption, head, [[_cell(one, digits) for one in row] for row in rows])

    def plain(self, digits: int | None = None) -> list[dict[str, Any]]:
        """Return each row as a dict of Python objects for JSON, by the name of the column."""
        values = [one.plain(digits) for one in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]

    def to_arrow(self) -> Any:
        """Return an Arrow array with a struct for each row."""
        pa = _pyarrow()
        parts = [one.to_arrow() for one in self.columns.values()]
        return pa.StructArray.from_arrays(parts, names=[*self.columns])

    def to_table(self) -> Table:
        """Return an Arrow table. Lists of equal lengths stay lists.

        Raises
        ------
        ModuleNotFoundError
            pyarrow is not installed; the message has the command that installs it.

        Examples
        --------
        >>> Columns.of(topic=np.array([1, 0])).to_table().column_names
        ['topic']
        """
        pa = _pyarrow()
        return pa.table({name: one.to_arrow() for name, one in self.columns.items()})

    def to_frame(self, index: str = "row") -> DataFrame:
        """Return a pandas frame of the columns.

        If the rows have an index, the frame has the same index. Otherwise, the index has the
        numbers of the rows, and its name is the argument `index`.

        Lists of equal lengths become one column for each entry: `shares_0`, `shares_1` and so on.
        Unknown whole numbers are `pandas.NA`, other unknown values NaN or None.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed; the message has the command that installs it.

        Examples
        --------
        >>> said = Columns.of(topic=np.array([1, 0]), shares=np.array([[0.25, 0.75], [1.0, 0.0]]))
        >>> said.to_frame().columns.tolist()
        ['topic', 'shares_0', 'shares_1']
        """
        pandas = _pandas()
        parts = {name: _framed(one, pandas) for name, one in self._flat()}
        rows = pandas.RangeIndex(self.number, name=index) if self.index is None else self.index
        frame: DataFrame = pandas.DataFrame(parts, index=rows)
        return frame

    def _flat(self, before: str = "") -> Iterator[tuple[str, Column]]:
        for name, one in self.columns.items():
            if isinstance(one, Columns):
                yield from one._flat(f"{before}{name}_")
            elif one.array.ndim > 1 and one.offsets is None:
                for place, values in enumerate(one.array.T):
                    yield f"{before}{name}_{place}", Column(values, one.unknown)
            else:
                yield f"{before}{name}", one


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return short(value, digits)
    if isinstance(value, Mapping):
        value = tuple(f"{name} {_cell(one, digits)}" for name, one in value.items())
    if isinstance(value, tuple):
        listed = [_cell(one, digits) for one in value[:_NUMBERS]]
        return ", ".join([*listed, "..."] if len(value) > _NUMBERS else listed)
    return f"{value:,}" if type(value) is int else str(value)


def _framed(column: Column, pandas: Any) -> Any:
    """Return the values of a column as an array or extension array of pandas."""
    if column.texts is not None or column.offsets is not None:
        return column.plain()
    if column.unknown is None or not column.unknown.any():
        return column.array
    if column.array.dtype.kind in "iu":
        return pandas.array(column.plain(), dtype="Int64")
    return np.where(column.unknown, np.nan, column.array)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "an Arrow table needs pyarrow, which is not installed; run `pip install pyarrow`",
            name="pyarrow",
        ) from error
    return pyarrow


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(needs("to_frame()", "pandas", "pandas"), name="pandas") from error
    return pandas


def likeliest(shares: NDArray[np.float64], unknown: NDArray[np.bool_] | None = None) -> Column:
    """Return a column with the index of the largest share in each row of (rows, k) shares.

    Examples
    --------
    >>> likeliest(np.array([[0.25, 0.75]])).plain()
    [1]
    """
    return Column(shares.argmax(axis=1).astype(np.int32), unknown)
