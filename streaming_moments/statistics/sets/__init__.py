"""Sets of features, counted as documents in which each word occurs at most once."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.statistics.sets.foundation import SetsFoundation as SetsFoundation
