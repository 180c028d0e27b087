"""How the store in `v2` was made, once, before there were halves; it is never made again.

It was written by `python tests/formats/make_v2.py tests/formats/v2`. What it holds is repeated in
`test_formats.py` as numbers, not computed.
"""

import sys

import numpy as np

from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.lengths.weights import LengthWeights
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore

VOCABULARY = Vocabulary(("law", "sea", "ship"), 2)
BASIS = Basis(
    np.array([[31, 7], [-14, 31]], dtype=np.int8),
    3,
    VOCABULARY.fingerprint,
    LengthWeights(np.array([5, 5, 4, 2, 1])),
)


def segment(store, url, counts):
    batch = CountBatch.from_csr(np.array(counts), VOCABULARY.fingerprint)
    statistics = MomentStatistics.of(batch, BASIS)
    lengths = statistics.length_histogram
    record = ShardRecord(url, 10, "etag:e", lengths.n_documents, lengths.n_tokens, 0)
    return store.write_segment(statistics, [record])


def make(place):
    store = MomentStore.create(place, VOCABULARY, None, BASIS, ShardFormat("text"), message="v2")
    store = store.append(segment(store, "s3://corpus/a.txt", [[2, 1, 0], [0, 3, 1]]), "first")
    store = store.append(segment(store, "s3://corpus/b.txt", [[1, 1, 1], [1, 0, 0]]), "second")
    removed = (segment(store, "s3://corpus/a.txt", [[2, 1, 0], [0, 3, 1]]),)
    commit_recount(store, Recount("forget", "without a", removed=removed))


if __name__ == "__main__":
    make(sys.argv[1])
