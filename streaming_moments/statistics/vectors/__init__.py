"""Vectors: dense rows on an integer grid, their first, second and sketched third moments."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.statistics.vectors.foundation import VectorsFoundation
    from streaming_moments.statistics.vectors.grid import Grid
    from streaming_moments.statistics.vectors.moments import VectorMoments
    from streaming_moments.statistics.vectors.pilot import foundation_of
    from streaming_moments.statistics.vectors.rows import VectorBatch
    from streaming_moments.statistics.vectors.statistics import VectorStatistics

__all__ = [
    "Grid",
    "VectorBatch",
    "VectorMoments",
    "VectorStatistics",
    "VectorsFoundation",
    "foundation_of",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "foundation": ("VectorsFoundation",),
            "grid": ("Grid",),
            "moments": ("VectorMoments",),
            "pilot": ("foundation_of",),
            "rows": ("VectorBatch",),
            "statistics": ("VectorStatistics",),
        },
        modules=("kernels",),
    )
