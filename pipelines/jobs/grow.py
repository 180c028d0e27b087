"""Grow a store: find words that became frequent in a sample, and add them to the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PILOT_SHARDS, draw_words
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import remedy
from streaming_moments.statistics.counts.vocabulary import frequent_terms
from streaming_moments.storage.counting.samples import frequencies_of
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.growth import grow as grow_store
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

WORDS = 500  # most words to add, by default


@dataclass(frozen=True)
class GrowthResult:
    """Words that a growth added, the most frequent first.

    `store` is at the commit that added them; without new words, it is at the latest version.
    `documents` and `shards` are the numbers of sampled passages and their shards.
    """

    store: MomentStore
    words: tuple[str, ...]
    documents: int
    shards: int


def grow(
    store: MomentStore, shards: Sequence[Shard], run: Run, words: int = WORDS, message: str = ""
) -> GrowthResult:
    """Add words that the vocabulary lacks, but that a new pilot of some shards would choose.

    These words are outside the core. They are counted in documents from this commit on, and no
    shard is counted again. Without such words there is no commit.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    shards : sequence of Shard
        Shards to find words in, counted or not.
    run : Run
        Cluster and options.
    words : int
        Largest number of words; the most frequent are added.
    message : str
        Message for the log.

    Raises
    ------
    InvalidInput
        `words` is below one, there are no shards, or the store is of a table, whose categories are
        fixed.
    ShardError
        A shard cannot be read.
    BoundExceeded
        A read task does not fit into the memory budget.
    StoreError
        Another writer has changed the vocabulary meanwhile, or the store cannot be written.
    """
    if words < 1:
        raise InvalidInput(remedy("{grow.words} is {words}; give at least 1", words=words))
    store = store.latest()
    if store.basis.table is not None:
        raise InvalidInput(
            f"{store.url} counts the categories of a table, which are fixed",
            "{rebase} changes them",
        )
    from streaming_moments.pipelines.jobs.rebase import pilot_of

    options = pilot_of(store)
    drawn = draw_words(shards, store.form, store.policy, options, run)
    sample, known = drawn.sample, store.vocabulary
    chosen = frequent_terms(
        frequencies_of(sample),
        options.vocabulary_size,
        options.min_documents,
        options.max_document_fraction,
    ).tolist()
    if sample.token_ids is None or known.token_ids is None:
        ids, lacking = None, [i for i in chosen if sample.terms[i] not in known.index][:words]
    else:
        there = set(known.token_ids)
        lacking = [i for i in chosen if sample.token_ids[i] not in there][:words]
        ids = [sample.token_ids[i] for i in lacking]
    terms = tuple(sample.terms[i] for i in lacking)
    if terms:
        origin = (
            f"a sample of {sample.batch.documents:,} passages in {of_number(drawn.shards, 'shard')}"
        )
        store = grow_store(
            store, terms, ids, message or f"grow: {of_number(len(terms), 'word')} from {origin}"
        )
    return GrowthResult(store, terms, sample.batch.documents, drawn.shards)


def recent_shards(store: MomentStore, run: Run) -> list[Shard]:
    """Return the latest counted shards that still exist, at most as many as a pilot reads.

    Leaves out shards of origins, which other stores counted.

    Raises InvalidInput if none exists unchanged.
    """
    ledger = store.ledger()
    last: dict[str, ShardRecord] = {}
    mine = [part for part in store.commit.segments if part.origin is None]
    for part in reversed([part for part in mine if part.sign > 0]):
        for record in ledger.records(part.id):
            if len(last) < PILOT_SHARDS and ledger.find(record.url) == record:
                last.setdefault(record.url, record)
    from streaming_moments.pipelines.jobs.rebase import looked_for

    found = looked_for(list(last.values()), run)
    present = [shard for shard, _ in found if shard is not None]
    if not present:
        raise InvalidInput(
            f"none of the latest {len(last)} shards of version {store.version} exists "
            "unchanged, so there are no documents to find words in; give SHARDS"
        )
    return present
