"""Counting: documents of a shard to batches over a vocabulary, and samples of them."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.storage.counting.reading import ReadBatch, read_shard
    from streaming_moments.storage.counting.samples import TermSample, sample_shard
    from streaming_moments.storage.counting.tokens import TokenPolicy

__all__ = ["ReadBatch", "TermSample", "TokenPolicy", "read_shard", "sample_shard"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "reading": ("ReadBatch", "read_shard"),
            "samples": ("TermSample", "sample_shard"),
            "tokens": ("TokenPolicy",),
        },
        modules=("id_kernels", "token_kernels"),
    )
