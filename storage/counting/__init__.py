"""Counting: documents of a shard to batches over a vocabulary, and samples of them."""

from streaming_moments.storage.counting.reading import ReadBatch, read_shard
from streaming_moments.storage.counting.samples import TermSample, sample_shard
from streaming_moments.storage.counting.tokens import TokenPolicy

__all__ = ["ReadBatch", "TermSample", "TokenPolicy", "read_shard", "sample_shard"]
