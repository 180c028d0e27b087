"""Statistics: what is added up, exactly, one folder for each kind of observation."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.statistics.base import Foundation, Statistics
    from streaming_moments.statistics.kinds import KINDS
    from streaming_moments.statistics.row_block import RowBlock

__all__ = ["KINDS", "Foundation", "RowBlock", "Statistics"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "base": ("Foundation", "Statistics"),
            "kinds": ("KINDS",),
            "row_block": ("RowBlock",),
        },
    )
