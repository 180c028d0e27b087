"""Halves: which half of the documents a row of a table belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streaming_moments.storage.formats import Position

if TYPE_CHECKING:
    import pyarrow as pa


def odd_half(first: int, number: int) -> NDArray[np.bool_]:
    """(number,) whether rows are in the odd half, by turns from the one numbered `first`.

    Examples
    --------
    >>> odd_half(3, 4).tolist()
    [True, False, True, False]
    """
    return np.asarray(np.arange(first, first + number) % 2 == 1)


def halved(
    tables: Iterable[tuple[pa.Table, Position]], first: int
) -> Iterator[tuple[pa.Table, Position, NDArray[np.bool_]]]:
    """Tables with the place after each, and which of its rows are odd; they are numbered on."""
    for table, after in tables:
        yield table, after, odd_half(first, table.num_rows)
        first += table.num_rows
