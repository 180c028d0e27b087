"""Records in three views: sums of the words of one view times sketches of the other two."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("kernels",))

if TYPE_CHECKING:
    from streaming_moments.statistics.views.foundation import ViewsFoundation as ViewsFoundation
    from streaming_moments.statistics.views.records import ViewBatch as ViewBatch
    from streaming_moments.statistics.views.statistics import ViewStatistics as ViewStatistics
