"""Vectors: dense rows on an integer grid, their first, second and sketched third moments."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("kernels",))

if TYPE_CHECKING:
    from streaming_moments.statistics.vectors.foundation import (
        VectorsFoundation as VectorsFoundation,
    )
    from streaming_moments.statistics.vectors.grid import Grid as Grid
    from streaming_moments.statistics.vectors.moments import VectorMoments as VectorMoments
    from streaming_moments.statistics.vectors.pilot import foundation_of as foundation_of
    from streaming_moments.statistics.vectors.rows import VectorBatch as VectorBatch
    from streaming_moments.statistics.vectors.statistics import VectorStatistics as VectorStatistics
