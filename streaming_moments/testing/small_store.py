"""A store with four words, so small that a test can make hundreds of sequences of changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.lengths.weights import LengthWeights
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.covering import Part, reference_of
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.compaction import (
    commit_compaction,
    linked_groups,
    seal_sum,
    write_sum,
    write_sums,
)
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.growth import store_of_era
from streaming_moments.storage.operations.levels import commit_sum, read_for
from streaming_moments.storage.operations.lineages import adopt, stage, stage_segment, staged_store
from streaming_moments.storage.operations.purges.purging import (
    Replacement,
    commit_purge,
    holdings_of,
    ledger_of_all,
)
from streaming_moments.storage.operations.purges.traces import erase_unnamed
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.garbage import sweep
from streaming_moments.storage.store.store import MomentStore

N_WORDS, CORE = 4, 3
VOCABULARY = Vocabulary(("law", "sea", "ship", "tax"), CORE)
BASIS = Basis(
    np.random.default_rng(3).integers(-127, 128, (CORE, 2)).astype(np.int8),
    N_WORDS,
    VOCABULARY.fingerprint,
)
# vocabulary and basis of the lineage that `rebase` makes
WORDS = Vocabulary(("tax", "sea", "moon", "law", "ship"), 4)
NEW = Basis(
    np.array([[3, 1], [-2, 5], [7, 0], [1, 1]], dtype=np.int8),
    5,
    WORDS.fingerprint,
    LengthWeights(np.array([6, 6, 4, 2, 1])),
)


def create(url: object = None) -> MomentStore:
    place = url or f"memory://{uuid.uuid4().hex}"
    return MomentStore.create(str(place), VOCABULARY, None, BASIS, ShardFormat())


def content(seed: int) -> MomentStatistics:
    """Return the statistics of the six documents of a shard, which `seed` determines."""
    counts = np.random.default_rng(seed).poisson(0.7, (6, N_WORDS))
    return MomentStatistics.of(CountBatch.from_csr(counts, VOCABULARY.fingerprint), BASIS)


def record(url: str, seed: int) -> ShardRecord:
    histogram = content(seed).length_histogram
    return ShardRecord(url, 10, f"sha256:{seed}", histogram.n_documents, histogram.n_tokens, 2)


def total(seeds: Iterable[int]) -> MomentStatistics:
    return sum(map(content, seeds), MomentStatistics.zero(BASIS))


def segment(store: MomentStore, shards: Mapping[str, int]) -> Segment:
    """Write a segment of shards, each given by its URL and the seed of its documents."""
    records = [record(url, seed) for url, seed in shards.items()]
    return store.write_segment(total(shards.values()), records)


def append(store: MomentStore, shards: Mapping[str, int], message: str = "") -> MomentStore:
    return store.append(segment(store, shards), message)


def forget(
    store: MomentStore, shards: Mapping[str, int], checked: Iterable[SegmentReference] = ()
) -> MomentStore:
    recount = Recount("forget", "", removed=(segment(store, shards),))
    return commit_recount(store, recount, checked)


def replace(store: MomentStore, old: Mapping[str, int], new: Mapping[str, int]) -> MomentStore:
    recount = Recount("replace", "", (segment(store, new),), (segment(store, old),))
    return commit_recount(store, recount)


def summed(store: MomentStore) -> tuple[tuple[SegmentReference, ...], Segment | None]:
    """Write the sum of all segments without committing it; return the segments and the sum."""
    sources = store.commit.segments
    if not len(store.ledger()):
        return sources, None
    writer = store.new_segment()
    files = [
        file for index in range(store.row_blocks) for file in write_sum(writer, sources, index)
    ]
    return sources, seal_sum(store, writer, files)


def compact(store: MomentStore) -> MomentStore:
    return commit_compaction(store, *summed(store))


def sum_beside(
    store: MomentStore,
    parts: Sequence[Part],
    gone: frozenset[str] = frozenset(),
    whole: bool = False,
) -> MomentStore:
    """Write the sum of `parts`, which are segments or earlier sums, and commit it.

    The version of `store` has the parts. The sum is committed to the latest version.
    """
    writer = store_of_era(store, reference_of(parts[0]).words).new_segment()
    files = write_sums(writer, read_for(store.commit, parts, gone), range(store.row_blocks))
    return commit_sum(store, writer, files, parts, gone, whole)


def purge(
    store: MomentStore,
    shards: Iterable[str],
    counted: Callable[[MomentStore, Mapping[str, int]], Segment] = segment,
) -> MomentStore:
    """Purge shards; `counted` counts the other shards of the affected segments again."""
    store, names = store.latest(), frozenset(shards)
    log = store.log()
    ledger = ledger_of_all(store.folder, log)
    holdings = holdings_of(log, ledger, names)
    if names - holdings.known:
        sweep(store.folder)
        erase_unnamed(store.folder, names)
        raise InvalidInput(f"no version holds all of {sorted(names)}; name others")
    replaced = []
    for group in linked_groups(store.commit.segments, store.ledger()):
        if any(part.id in holdings.segments for part in group):
            left = {
                shard.url: int(shard.fingerprint.partition(":")[2])
                for shard in ledger.of_segments(group)
                if shard.url not in names
            }
            era = store_of_era(store, group[0].words)
            replaced.append(Replacement(group, (counted(era, left),) if left else ()))
    commit_purge(store, names, replaced)
    sweep(store.folder)
    erase_unnamed(store.folder, names)
    return store.latest()


def anew(seed: int) -> MomentStatistics:
    """Return the statistics of a shard, counted with `WORDS`, the vocabulary of a new lineage."""
    counts = np.random.default_rng(seed).poisson(0.7, (6, 5))
    return MomentStatistics.of(CountBatch.from_csr(counts, WORDS.fingerprint), NEW)


def recorded(url: str, seed: int) -> ShardRecord:
    histogram = anew(seed).length_histogram
    return ShardRecord(url, 10, f"sha256:{seed}", histogram.n_documents, histogram.n_tokens, 2)


def aside(store: MomentStore, url: str, seed: int) -> MomentStore:
    """Count a shard with `WORDS`, and add it to the staged lineage, which is not adopted yet."""
    ready = staged_store(store).write_segment(anew(seed), [recorded(url, seed)])
    return stage_segment(store, ready)


def rebase(store: MomentStore) -> MomentStore:
    """Count all shards with `WORDS` in a new lineage, and adopt that lineage."""
    shards = [(shard.url, int(shard.fingerprint.partition(":")[2])) for shard in store.ledger()]
    store = stage(store, WORDS, None, NEW, {"seed": 0})
    for url, seed in shards:
        store = aside(store, url, seed)
    return adopt(store)


def model_of(seed: int, topics: int = 2) -> TopicModel:
    rng = np.random.default_rng(seed)
    weights = np.full(topics, 1 / topics)
    return TopicModel.from_topics(rng.dirichlet(np.ones(N_WORDS), topics).T, weights, alpha0=0.1)
