"""Shards of a store of few words that grows, counted with the words of their time."""

import numpy as np
from widening import widened

from streaming_moments import CountBatch, MomentStatistics
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.compaction import (
    commit_compaction,
    compaction_groups,
    seal_sum,
    write_sum,
)
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.growth import store_of_era
from streaming_moments.storage.store.changes import Recount
from streaming_moments.testing.small_store import VOCABULARY

TERMS = (*VOCABULARY.terms, "steam", "rail", "wire", "radio", "rocket", "chip")


def counted(store, seed):
    """Statistics of the six documents of a shard with the words of the store."""
    counts = np.random.default_rng(seed).poisson(0.7, (6, len(TERMS)))[:, : store.basis.n_words]
    return MomentStatistics.of(CountBatch.from_csr(counts, store.basis.vocabulary), store.basis)


def record(store, url, seed):
    lengths = counted(store, seed).length_histogram
    return ShardRecord(url, 10, f"sha256:{seed}", lengths.n_documents, lengths.C1, 2)


def segment(store, shards, dates=None):
    """A sealed segment of shards, given as seeds by URL."""
    total = sum(
        (counted(store, seed) for seed in shards.values()), MomentStatistics.zero(store.basis)
    )
    records = [record(store, url, seed) for url, seed in shards.items()]
    return store.write_segment(total, records, dates)


def era_of(store, words):
    """The store with its vocabulary of so many words."""
    return store_of_era(store, None if words == store.basis.n_words else words)


def segments_by_era(store, shards):
    """A segment for each vocabulary of shards, given as (seed, words) by URL."""
    found = []
    for words in {words for _, words in shards.values()}:
        own = {url: seed for url, (seed, its) in shards.items() if its == words}
        found.append(segment(era_of(store, words), own))
    return tuple(found)


def forget(store, shards):
    """Subtract shards, given as (seed, words) by URL, with the words that counted them."""
    return commit_recount(store, Recount("forget", "", removed=segments_by_era(store, shards)))


def compact(store, by="all"):
    for sources in compaction_groups(store.commit.segments, store.ledger(), by):
        if not len(store.ledger().of_segments(sources)):
            store = commit_compaction(store, sources, None)
            continue
        writer = store_of_era(store, sources[0].words).new_segment()
        files = [f for i in range(store.row_blocks) for f in write_sum(writer, sources, i)]
        store = commit_compaction(store, sources, seal_sum(store, writer, files, sources))
    return store


def recount(store, shards):
    """The state of a store that counted shards, given as pairs of seed and words."""
    total = MomentStatistics.zero(store.basis)
    for seed, words in shards:
        total = total + widened(counted(era_of(store, words), seed), store.basis)
    return total
