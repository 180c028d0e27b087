"""From shards to a segment: sums of shards on the workers, added up group by group."""

from streaming_moments.pipelines.gathering.groups import Gathered, gather_group
from streaming_moments.pipelines.gathering.reading import ReadingContext

__all__ = [
    "Gathered",
    "ReadingContext",
    "gather_group",
]
