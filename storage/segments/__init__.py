"""What versions point to: sums of statistics, vocabularies, bases and models, immutable."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.segments.blocks import sum_block
    from streaming_moments.storage.segments.models import read_model, write_model
    from streaming_moments.storage.segments.segments import Segment, SegmentWriter

__all__ = ["Segment", "SegmentWriter", "read_model", "sum_block", "write_model"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "blocks": ("sum_block",),
            "models": ("read_model", "write_model"),
            "segments": ("Segment", "SegmentWriter"),
        },
    )
