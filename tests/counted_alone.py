"""Statistics of shards that are read one after another in this process."""

from streaming_moments import MomentStatistics
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.listing import list_shards


def counted_alone(store, shards):
    """Statistics of some shards, as a store counts them."""
    batches = [
        read.batch
        for shard in shards
        for read in read_shard(shard, store.form, store.vocabulary, store.policy)
    ]
    return MomentStatistics.of(concatenate(batches), store.basis)


def counted_at(store, paths):
    """Statistics of the shards at some paths."""
    return counted_alone(store, list_shards([str(path) for path in paths]))
