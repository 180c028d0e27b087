"""How the store in `v1` was made, once, by version 0.1.0; it is never made again.

It was written by `python tests/formats/make_v1.py tests/formats/v1`. What it holds is repeated in
`test_formats.py` as numbers, not computed.
"""

import sys

import numpy as np

from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.compaction import commit_compaction, seal_sum, write_sum
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore

POLICY = TokenPolicy(stop_words=("and", "the"), min_length=3)
# the last word is outside the core
VOCABULARY = Vocabulary(("law", "sea", "ship"), 2, POLICY.fingerprint)
BASIS = Basis(np.array([[127, 31], [-58, 127]], dtype=np.int8), 3, VOCABULARY.fingerprint)
CONTENT = {
    "s3://corpus/a.txt": [[2, 1, 0], [0, 3, 1]],
    "s3://corpus/b.txt": [[1, 1, 1], [4, 0, 2], [0, 2, 0]],
    "s3://corpus/c.txt": [[3, 2, 1], [1, 0, 0]],
}
MODEL = TopicModel.from_topics(
    np.array([[0.5, 0.125], [0.25, 0.375], [0.25, 0.5]]), np.array([0.75, 0.25]), alpha0=0.5
)


def segment(store, url, counts):
    batch = CountBatch.from_csr(np.array(counts), VOCABULARY.fingerprint)
    statistics = MomentStatistics.of(batch, BASIS)
    record = ShardRecord(
        url,
        10 * len(counts),
        f"etag:{url[-5]}" if url[-5] != "c" else "sha256:" + "c" * 64,
        statistics.length_histogram.n_documents,
        statistics.length_histogram.C1,
        len(counts),
    )
    return store.write_segment(statistics, [record])


def make(place):
    a, b, c = CONTENT.items()
    store = MomentStore.create(place, VOCABULARY, POLICY, BASIS, ShardFormat("text"), message="v1")
    store = store.append(segment(store, *a), "first")
    store = store.append(segment(store, *b), "second")
    sources, writer = store.commit.segments, store.new_segment()
    files = [
        file for index in range(store.row_blocks) for file in write_sum(writer, sources, index)
    ]
    store = commit_compaction(store, sources, seal_sum(store, writer, files), "sum of two")
    store = store.append(segment(store, *c), "third", [("s3://corpus/d.txt", "line 1 is no text")])
    recount = Recount("forget", "without a", removed=(segment(store, *a),))
    store = commit_recount(store, recount)
    store = store.save_model("first", MODEL, "by hand")
    tag(store, "live", "first")


if __name__ == "__main__":
    make(sys.argv[1])
