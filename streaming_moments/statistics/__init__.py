"""Statistics: what is added up, exactly, one folder for each kind of observation."""

from streaming_moments.statistics.base import Foundation, Statistics
from streaming_moments.statistics.kinds import KINDS
from streaming_moments.statistics.row_block import RowBlock

__all__ = ["KINDS", "Foundation", "RowBlock", "Statistics"]
