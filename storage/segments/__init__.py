"""Immutable parts of versions: segments of statistics, vocabularies, bases and models."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    blocks="sum_block",
    models="read_model write_model",
    segments="Segment SegmentWriter",
)
