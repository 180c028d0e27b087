"""Pieces of sequences: joined wherever they were cut, in any order, and taken away exactly."""

import pickle
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.pieces import (
    ABSENT,
    JOINING_BYTES,
    Pieces,
    SequenceTotals,
    edges_of,
    keys_of,
)
from streaming_moments.statistics.sequences.windows import SymbolBatch

N = 4
LETTERS = Vocabulary(tuple("abcd"), 3)
MATRIX = np.array([[1, 127], [-5, 3], [0, -127]], dtype=np.int8)


def made(halves=True):
    return SequencesFoundation(LETTERS, Basis(MATRIX, N, LETTERS.fingerprint), halves, joins=True)


def odd_of(names):
    return keys_of(names)[:, 0] % 2 == 1


def batch_of(parts, numbered=True, scale=1):
    """Pieces (name, from, symbols), as a reader gives them."""
    names = [name for name, _, _ in parts]
    plain = SymbolBatch.of([symbols for *_, symbols in parts], odd_of(names))
    lengths = plain.lengths
    first, last = edges_of(plain.offsets, plain.symbols)
    begins = np.array([begin for _, begin, _ in parts])
    zeros = np.zeros_like(begins)
    places = np.stack([scale * begins, zeros, scale * (begins + lengths - 1), zeros], axis=1)
    edges = np.hstack([first, np.where(lengths[:, None] > 2, last, ABSENT)])
    found = Pieces.of(names, places, numbered, lengths, edges)
    flags = plain.context, plain.begins, plain.odd, plain.short
    return SymbolBatch(plain.offsets, plain.symbols, *flags, found)


def whole_of(foundation, sequences, block=RowBlock()):
    """One pass over whole sequences."""
    names = list(sequences)
    batch = SymbolBatch.of(list(sequences.values()), odd_of(names) if names else None)
    return foundation.of_sequences(batch, block)


symbols = st.lists(st.integers(-1, N - 1), min_size=1, max_size=14)
cuts = st.lists(st.integers(1, 13), max_size=9)
corpora = st.lists(st.tuples(symbols, cuts), min_size=1, max_size=4)


def cut(corpus):
    """Sequences by name, and all their pieces."""
    sequences = {f"s{number}": one for number, (one, _) in enumerate(corpus)}
    parts = []
    for (name, one), (_, places) in zip(sequences.items(), corpus, strict=True):
        edges = sorted({0, len(one), *(place for place in places if place < len(one))})
        parts += [(name, begin, one[begin:end]) for begin, end in pairwise(edges)]
    return sequences, parts


@settings(max_examples=80)
@given(corpora, st.randoms(use_true_random=False), st.booleans(), st.integers(1, 3))
def test_pieces_are_joined_bit_for_bit_in_any_order_and_any_shards(corpus, order, numbered, step):
    foundation = made()
    sequences, parts = cut(corpus)
    order.shuffle(parts)
    shards = [parts[place::3] for place in range(3) if parts[place::3]]
    # where times only tell an order, what lies between two numbers does not matter
    scale = 1 if numbered else 7
    batches = [batch_of(shard, numbered, scale) for shard in shards]
    for index in range(step):
        block = RowBlock(index, step)
        counted = [foundation.of_sequences(batch, block) for batch in batches]
        state = sum(counted[1:], counted[0])
        state.totals.pieces.require_apart()
        assert not state.totals.pieces.gaps()
        found = foundation.with_seams(state)
        assert found == whole_of(foundation, sequences, block)
        assert foundation.totals_with_seams(state.totals) == found.totals
        found.require_non_negative()
        # what is taken away and counted again leaves nothing behind
        state = state - counted[0]
        assert foundation.with_seams(state + counted[0]) == found
        assert state == sum(counted[1:], foundation.of([], block))
        assert state.totals.tables().keys() <= {"view_totals", "pieces"}
        again = SequenceTotals.of_tables(state.totals.tables())
        assert again == state.totals
        assert pickle.loads(pickle.dumps(again)) == again


def test_a_gap_is_never_joined_and_is_told():
    foundation = made()
    parts = [("x", 0, [0, 1]), ("x", 3, [2, 3, 0, 1])]
    state = foundation.of_sequences(batch_of(parts))
    assert state.totals.pieces.gaps() == ["'x' from 0 to 1 and from 3 to 6"]
    found = foundation.with_seams(state)
    assert found.sums["first_counts"].tolist() == [1, 0, 0, 0]
    assert (found.totals.n_documents, found.totals.triples, found.totals.without) == (1, 2, 0)
    # what is missing comes: two windows of two symbols of one side, and one of its own
    between = foundation.of_sequences(batch_of([("x", 2, [1])]))
    assert foundation.with_seams(between + state) == whole_of(
        foundation, {"x": [0, 1, 1, 2, 3, 0, 1]}
    )


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([("x", 0, [0, 1]), ("x", 1, [1])], "'x' from 0 to 1 and from 1 to 1"),
        ([("x", 0, [0, 1]), ("x", 0, [0, 1])], "'x' from 0 to 1 twice"),
        ([("y" * 40, 5, [0]), ("y" * 40, 4, [0, 1, 2])], "y...' from 4 to 6 and from 5 to 5"),
    ],
)
def test_pieces_that_overlap_are_named(parts, told):
    totals = made().of_sequences(batch_of(parts)).totals
    with pytest.raises(InvalidInput, match="pieces of a sequence overlap") as error:
        totals.pieces.require_apart()
    assert told in str(error.value)


def test_pieces_that_were_never_added_cannot_be_taken_away():
    foundation = made(halves=False)
    one = foundation.of_sequences(batch_of([("x", 0, [0, 1, 2])]))
    other = foundation.of_sequences(batch_of([("y", 0, [0, 1, 2])]))
    with pytest.raises(InvalidInput, match="never added: pieces"):
        _ = one - other


def test_joining_takes_no_more_memory_than_is_planned_and_batches_tell_their_pieces():
    foundation, many = made(), 4_000
    batch = batch_of([(f"s{i % 1000}", i // 1000 * 3, [0, 1, 2]) for i in range(many)])
    prepared = foundation.prepared(batch)
    plain = SymbolBatch(batch.offsets, batch.symbols, batch.context, batch.begins, batch.odd)
    assert prepared.nbytes - foundation.prepared(plain).nbytes == many * 128
    tables = dict(prepared.totals.tables())
    tracemalloc.start()
    try:
        tables["pieces"] = batch.pieces.chunks[0].copy()  # as it is read
        foundation.totals_with_seams(SequenceTotals.of_tables(tables))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.5 * JOINING_BYTES * many < peak <= JOINING_BYTES * many


@pytest.mark.parametrize(
    ("end", "begin", "joined"),
    [
        ((3, 0), (4, 0), True),
        ((3, 0), (5, 0), False),
        ((3, 0), (4, 1), False),
        ((3, 1), (4, 0), False),
        ((3, 1), (4, 1), False),
    ],
)
def test_numbered_places_join_only_where_the_next_number_begins(end, begin, joined):
    """A place of a number and something beside it is none that numbers go on from."""
    places = np.array([[0, 0, *end], [*begin, 9, 0]])
    edges = np.zeros((2, 4), dtype=np.int64)
    pieces = Pieces.of(["a", "a"], places, True, np.array([4, 4]), edges)
    assert pieces.joined.tolist() == [False, joined]
    assert len(pieces.gaps()) == (not joined)
    ordered = Pieces.of(["a", "a"], places, False, np.array([4, 4]), edges)
    assert ordered.joined.tolist() == [False, True]
