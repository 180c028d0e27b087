"""Count shards on workers, add up the sums and write segments, one group of shards at a time."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.pipelines.aggregation.group_runner import Gathered as Gathered
    from streaming_moments.pipelines.aggregation.group_runner import gather_group as gather_group
    from streaming_moments.pipelines.aggregation.reading import ReadingContext as ReadingContext
