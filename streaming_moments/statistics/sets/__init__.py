"""Sets of features: which of them a row has, counted as documents that hold a word once."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.statistics.sets.foundation import SetsFoundation as SetsFoundation
