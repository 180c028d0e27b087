"""Words in documents: counts over a vocabulary, their sums, and the moments that follow."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.statistics.counts.basis import Basis
    from streaming_moments.statistics.counts.batch import CountBatch, concatenate
    from streaming_moments.statistics.counts.estimators import ESTIMATORS, estimate
    from streaming_moments.statistics.counts.foundation import CountsFoundation
    from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
    from streaming_moments.statistics.counts.statistics import MomentStatistics, merge_blocks
    from streaming_moments.statistics.counts.vocabulary import Vocabulary
    from streaming_moments.statistics.counts.weighted import WeightedStatistics

__all__ = [
    "ESTIMATORS",
    "Basis",
    "CountBatch",
    "CountsFoundation",
    "LengthHistogram",
    "MomentStatistics",
    "Vocabulary",
    "WeightedStatistics",
    "concatenate",
    "estimate",
    "merge_blocks",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "basis": ("Basis",),
            "batch": ("CountBatch", "concatenate"),
            "estimators": ("ESTIMATORS", "estimate"),
            "foundation": ("CountsFoundation",),
            "lengths.histogram": ("LengthHistogram",),
            "statistics": ("MomentStatistics", "merge_blocks"),
            "vocabulary": ("Vocabulary",),
            "weighted": ("WeightedStatistics",),
        },
    )
