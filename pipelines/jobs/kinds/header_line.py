"""Whether the first line of a CSV or TSV file names its columns, or is a record itself."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

_WORDS = 3  # most words in the name of a column
_LONGEST = 60  # most characters in the name of a column
_NUMBER = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+")


def like_a_record(table: pa.Table) -> str | None:
    """Return the name of a column that looks like a value, or None.

    A name looks like a value if it is long text, a number with a point, or also a value of its
    column. Names that number the columns, such as 0, 1, 2, are not values. Rows that only repeat
    the names are ignored.

    Examples
    --------
    >>> like_a_record(pa.table({"label": [1, 2], "title of paper": ["the sea", "a ship"]}))
    >>> like_a_record(pa.table({"hidden markov models": ["sea"], "train": ["train"]}))
    'train'
    """
    names: list[str] = table.column_names
    # allow fewer words in the name of a single column, because this name need not distinguish
    # columns
    most = _WORDS - (len(names) == 1)
    for name in names:
        if len(name.split()) > most or len(name) > _LONGEST or _NUMBER.fullmatch(name.strip()):
            return name
    if names in ([str(at + first) for at in range(len(names))] for first in (0, 1)):
        return None
    rows = [row for row in zip(*map(_texts, table.columns), strict=True) if [*row] != names]
    return next((name for at, name in enumerate(names) if any(r[at] == name for r in rows)), None)


def _texts(column: Any) -> list[str]:
    return ["" if value is None else str(value) for value in column.to_pylist()]
