"""Immutable parts of versions: segments of statistics, vocabularies, bases and models."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.storage.segments.blocks import sum_block as sum_block
    from streaming_moments.storage.segments.models import read_model as read_model
    from streaming_moments.storage.segments.models import write_model as write_model
    from streaming_moments.storage.segments.segments import Segment as Segment
    from streaming_moments.storage.segments.segments import SegmentWriter as SegmentWriter
