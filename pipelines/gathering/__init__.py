"""From shards to a segment: sums of shards on the workers, added up group by group."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.pipelines.gathering.groups import Gathered, gather_group
    from streaming_moments.pipelines.gathering.reading import ReadingContext

__all__ = [
    "Gathered",
    "ReadingContext",
    "gather_group",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "groups": ("Gathered", "gather_group"),
            "reading": ("ReadingContext",),
        },
    )
