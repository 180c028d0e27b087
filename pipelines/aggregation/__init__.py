"""From shards to a segment: sums of shards on the workers, added up group by group."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.pipelines.aggregation.group_runner import Gathered as Gathered
    from streaming_moments.pipelines.aggregation.group_runner import gather_group as gather_group
    from streaming_moments.pipelines.aggregation.reading import ReadingContext as ReadingContext
