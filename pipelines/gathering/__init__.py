"""From shards to a segment: parts of shards read on workers, added up group by group."""

from streaming_moments.pipelines.gathering.groups import Gathered, gather_group
from streaming_moments.pipelines.gathering.parts import ReadingContext

__all__ = [
    "Gathered",
    "ReadingContext",
    "gather_group",
]
