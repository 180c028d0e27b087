"""Words in documents: counts over a vocabulary, their sums, and moments."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.statistics.counts.basis import Basis as Basis
    from streaming_moments.statistics.counts.batch import CountBatch as CountBatch
    from streaming_moments.statistics.counts.batch import concatenate as concatenate
    from streaming_moments.statistics.counts.estimators import ESTIMATORS as ESTIMATORS
    from streaming_moments.statistics.counts.estimators import estimate as estimate
    from streaming_moments.statistics.counts.foundation import CountsFoundation as CountsFoundation
    from streaming_moments.statistics.counts.lengths.histogram import (
        LengthHistogram as LengthHistogram,
    )
    from streaming_moments.statistics.counts.statistics import MomentStatistics as MomentStatistics
    from streaming_moments.statistics.counts.statistics import merge_blocks as merge_blocks
    from streaming_moments.statistics.counts.vocabulary import Vocabulary as Vocabulary
    from streaming_moments.statistics.counts.weighted import (
        WeightedStatistics as WeightedStatistics,
    )
