"""Assign the rows of tables alternately to the two halves of the data of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streaming_moments.statistics.halves import odd_in_turn
from streaming_moments.storage.formats import Position

if TYPE_CHECKING:
    import pyarrow as pa


def halved(
    tables: Iterable[tuple[pa.Table, Position]], first: int, by_content: bool
) -> Iterator[tuple[pa.Table, Position, NDArray[np.bool_] | None]]:
    """Yield each table, the position after it, and the mask of its rows in the odd half.

    Rows alternate between the halves; `first` is the number of the first row. If the half of a row
    depends on its content (`by_content`), yields None instead of a mask.
    """
    for table, after in tables:
        yield table, after, None if by_content else odd_in_turn(first, table.num_rows)
        first += table.num_rows
