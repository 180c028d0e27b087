"""Records in three views: rows of one times the sketches of the two others."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.statistics.views.foundation import ViewsFoundation
    from streaming_moments.statistics.views.records import ViewBatch
    from streaming_moments.statistics.views.statistics import ViewStatistics

__all__ = ["ViewBatch", "ViewStatistics", "ViewsFoundation"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "foundation": ("ViewsFoundation",),
            "records": ("ViewBatch",),
            "statistics": ("ViewStatistics",),
        },
        modules=("kernels",),
    )
