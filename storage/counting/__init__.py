"""Convert the documents of a shard to batches of word counts, and draw samples of documents."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("id_kernels",))

if TYPE_CHECKING:
    from streaming_moments.storage.counting.reading import ReadBatch as ReadBatch
    from streaming_moments.storage.counting.reading import read_shard as read_shard
    from streaming_moments.storage.counting.samples import TermSample as TermSample
    from streaming_moments.storage.counting.samples import sample_shard as sample_shard
    from streaming_moments.storage.counting.tokens import TokenPolicy as TokenPolicy
