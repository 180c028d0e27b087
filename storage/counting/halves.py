"""Halves: the half of each row of a table, for records that alternate between halves."""

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
    """Yield tables with the place after each, and the mask of rows in the odd half.

    Rows alternate, numbered from `first`. Without a mask (None) halves depend on content.
    """
    for table, after in tables:
        yield table, after, None if by_content else odd_in_turn(first, table.num_rows)
        first += table.num_rows
