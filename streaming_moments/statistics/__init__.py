"""Statistics: exact additive sums, one folder for each kind of observation."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("half_kernels",))

if TYPE_CHECKING:
    from streaming_moments.statistics.base import Foundation as Foundation
    from streaming_moments.statistics.base import Statistics as Statistics
    from streaming_moments.statistics.counts.estimators import ESTIMATORS as ESTIMATORS
    from streaming_moments.statistics.counts.estimators import estimate as estimate
    from streaming_moments.statistics.registry import KINDS as KINDS
    from streaming_moments.statistics.row_block import RowBlock as RowBlock
