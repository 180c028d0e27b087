"""Stores of sequences that continue in other shards: any order, forgets, compactions, versions."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.pieces import ABSENT, Pieces, edges_of, keys_of
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.storage.counting.symbols.sequences import SequencesForm
from streaming_moments.storage.kinds.registry import may_grow
from streaming_moments.storage.log.commits import READING
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.compaction import commit_compaction, seal_sum, write_sum
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore

LETTERS = Vocabulary(tuple("abc"), 3)
FOUNDATION = SequencesFoundation(
    LETTERS, Basis(np.eye(3, dtype=np.int8), 3, LETTERS.fingerprint), joins=True
)


def odd_of(names):
    return keys_of(names)[:, 0] % 2 == 1


def statistics_of(parts):
    """Statistics of pieces (name, from, symbols)."""
    names = [name for name, _, _ in parts]
    batch = SymbolBatch.of([symbols for *_, symbols in parts], odd_of(names))
    first, last = edges_of(batch.offsets, batch.symbols)
    begins, lengths = np.array([begin for _, begin, _ in parts]), batch.lengths
    zeros = np.zeros_like(begins)
    places = np.stack([begins, zeros, begins + lengths - 1, zeros], axis=1)
    edges = np.hstack([first, np.where(lengths[:, None] > 2, last, ABSENT)])
    pieces = Pieces.of(names, places, True, lengths, edges)
    flags = batch.context, batch.begins, batch.odd, batch.short
    return FOUNDATION.of_sequences(SymbolBatch(batch.offsets, batch.symbols, *flags, pieces))


def record_of(url, statistics):
    numbers = statistics.totals.n_documents, statistics.totals.n_tokens
    return ShardRecord(url, 10, f"etag:{url}", *numbers)


def segment_of(store, url, parts):
    statistics = statistics_of(parts)
    return store.write_segment(statistics, [record_of(url, statistics)])


def compacted(store):
    writer, sources = store.new_segment(), store.commit.segments
    files = [f for index in range(store.row_blocks) for f in write_sum(writer, sources, index)]
    return commit_compaction(store, sources, seal_sum(store, writer, files, sources))


def one_pass(shards):
    """Statistics of the whole sequences of some shards; None without sequences."""
    places = {}
    for parts in shards:
        for name, begin, symbols in parts:
            places.setdefault(name, {}).update(enumerate(symbols, begin))
    runs = [
        [one.get(place, -1) for place in range(min(one), max(one) + 1)] for one in places.values()
    ]
    return FOUNDATION.of_sequences(SymbolBatch.of(runs, odd_of(list(places)) if runs else None))


def shards_of(seed):
    """Pieces of three sequences in five shards."""
    rng = np.random.default_rng(seed)
    shards = [[] for _ in range(5)]
    for name in ("x", "y", "z"):
        symbols = rng.integers(-1, 3, rng.integers(1, 20)).tolist()
        cuts = sorted({0, len(symbols), *rng.integers(0, len(symbols), 5).tolist()})
        for begin, end in pairwise(cuts):
            shards[rng.integers(5)].append((name, begin, symbols[begin:end]))
    return {f"s3://b/{number}.csv": parts for number, parts in enumerate(shards) if parts}


@settings(max_examples=5)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_any_history_is_that_of_one_pass_over_what_is_counted(seed, chance):
    store = MomentStore.create_on(f"memory://joined/{seed}-{chance.random()}", FOUNDATION, {})
    shards, counted = shards_of(seed), {}
    for _ in range(6):
        url = chance.choice(sorted(shards))
        segment = segment_of(store, url, shards[url])
        if url in counted:
            del counted[url]
            recount = Recount("forget", "", removed=(segment,))
            store = commit_recount(store, recount)
        else:
            counted[url] = shards[url]
            store = store.append(segment)
        if chance.random() < 0.3 and counted:
            store = compacted(store)
        found, whole = store.load(), one_pass(counted.values())
        # of a sequence with a gap the symbols are not those of one without
        assert found.arrays().keys() == whole.arrays().keys()
        assert all(
            np.array_equal(array, whole.arrays()[name]) for name, array in found.arrays().items()
        )
        assert found.totals.triples == whole.totals.triples
        assert found.totals.n_documents == whole.totals.n_documents
        block = store.load_block(1)
        assert np.array_equal(
            block.sums["first_counts"], whole.sums["first_counts"][block.block.rows]
        )
        assert store.totals() == found.totals
    assert store.verify() == []


def test_what_overlaps_is_refused_whoever_counted_it_and_replaced_in_one_commit():
    store = MomentStore.create_on("memory://joined/overlap", FOUNDATION, {})
    first = [("x", 0, [0, 1, 2]), ("y", 0, [1])]
    late = store
    store = store.append(segment_of(store, "a", first))
    before = store.load()
    for writer in (store, late):
        with pytest.raises(InvalidInput, match="'x' from 0 to 2 and from 2 to 3"):
            writer.append(segment_of(writer, "b", [("x", 2, [0, 0])]))
    assert (store.latest().version, store.latest().load() == before) == (1, True)
    away, over = segment_of(store, "a", first), [("x", 1, [1, 1]), ("x", 0, [0, 0])]
    recount = Recount("replace", "", added=(segment_of(store, "a", over),), removed=(away,))
    with pytest.raises(InvalidInput, match="'x' from 0 to 1 and from 1 to 2"):
        commit_recount(store, recount)
    # the same places with other symbols, in the commit that takes the old ones away
    new = [("x", 0, [2, 2, 2, 2])]
    recount = Recount(
        "replace",
        "",
        added=(segment_of(store, "a", new),),
        removed=(segment_of(store, "a", first),),
    )
    store = commit_recount(store, recount)
    assert store.load() == one_pass([new])
    assert store.gaps() == []
    assert store.at(1).load() == before
    assert store.verify() == []


def test_a_long_table_grows_only_where_its_sequences_are_joined():
    long = {READING: SequencesForm(columns=("name", "time", "symbol")).to_json()}
    for joins in (True, False):
        foundation = replace(FOUNDATION, joins=joins)
        store = MomentStore.create_on(f"memory://joined/grows-{joins}", foundation, long)
        assert may_grow(store) == joins
        assert MomentStore.open(store.url).foundation == foundation
