"""Statistics of sequences: brute force, cuts anywhere, unknown symbols, blocks, the laws."""

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
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.statistics.views.sketches import sketch_of
from streaming_moments.testing.laws import check_laws

N = 6
LETTERS = Vocabulary(tuple("abcdef"), 4)
MATRIX = np.array([[1, 127], [-5, 3], [0, -127], [2, 2]], dtype=np.int8)


def made(halves=True):
    return SequencesFoundation(LETTERS, Basis(MATRIX, N, LETTERS.fingerprint), halves)


def drawn(seed, number=5):
    rng = np.random.default_rng(seed)
    return [rng.integers(-1, N, rng.integers(0, 9)).tolist() for _ in range(number)]


def brute_force(sequences, odd):
    """Sums of the whole and of the even half, straight from the definition."""
    rows = np.zeros((N, 3), dtype=np.int64)
    rows[:, 0] = 1
    rows[:4, 1:] = MATRIX
    sums, firsts = np.zeros((2, N, 3, 3), np.int64), np.zeros((2, N), np.int64)
    for sequence, half in zip(sequences, odd, strict=True):
        halves = [0] if half else [0, 1]
        for a, b, c in zip(sequence, sequence[1:], sequence[2:], strict=False):
            if min(a, b, c) >= 0:
                sums[halves, b] += np.outer(rows[a], rows[c])
        if sequence and sequence[0] >= 0:
            firsts[halves, sequence[0]] += 1
    return sums, firsts


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_those_of_the_definition_in_any_block(seed):
    sequences = drawn(seed, 9)
    odd = np.random.default_rng(seed).random(9) < 0.5
    sums, firsts = brute_force(sequences, odd)
    foundation = made()
    for step in (1, 4):
        for index in range(step):
            block = RowBlock(index, step)
            found = foundation.of_sequences(SymbolBatch.of(sequences, odd), block)
            for place, half in enumerate(("", "even_")):
                assert np.array_equal(found.sums[half + "triple_sketch"], sums[place, block.rows])
                assert np.array_equal(found.sums[half + "first_counts"], firsts[place, block.rows])
    assert found.totals.n_documents == 9
    assert found.totals.n_tokens == sum(symbol >= 0 for one in sequences for symbol in one)
    assert found.totals.without == sum(len(one) < 3 for one in sequences)
    assert found.totals.triples == sums[0, :, 0, 0].sum()


def pieces(sequence, cuts, odd=False):
    """A sequence in chunks, each with the two symbols before it."""
    places = sorted({0, len(sequence), *(cut for cut in cuts if cut <= len(sequence))})
    if len(places) == 1:
        places = [0, 0]
    found = []
    for begin, end in pairwise(places):
        context = min(begin, 2)
        symbols = np.array(sequence[begin - context : end], dtype=np.int32)
        short = int(end == len(sequence) < 3)
        offsets = np.array([0, symbols.size])
        flags = np.array([context], np.int8), np.array([begin == 0]), np.array([odd])
        found.append(SymbolBatch(offsets, symbols, *flags, short))
    return found


@settings(max_examples=60)
@given(
    st.lists(st.integers(-1, N - 1), max_size=12),
    st.lists(st.integers(1, 12), max_size=12),
    st.booleans(),
)
def test_a_window_is_counted_once_wherever_a_sequence_is_cut(sequence, cuts, odd):
    foundation = made()
    whole = foundation.of_sequences(SymbolBatch.of([sequence], np.array([odd])))
    parts = [foundation.of_sequences(piece) for piece in pieces(sequence, cuts, odd)]
    assert sum(parts[1:], parts[0]) == whole
    assert whole - parts[0] == sum(parts[1:], foundation.of([]))


@settings(max_examples=12)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_laws_hold_whatever_the_cut(seeds, order):
    foundation = made(halves=False)
    parts = [drawn(seed, 1 + seed % 4) for seed in seeds]
    places = list(range(len(parts)))
    order.shuffle(places)
    check_laws(
        foundation.of([]),
        lambda sequences: foundation.of_sequences(SymbolBatch.of(sequences)),
        lambda lists: [one for part in lists for one in part],
        parts,
        places,
    )


def test_batches_joined_give_the_same_bits():
    foundation = made()
    prepared = [foundation.prepared(SymbolBatch.of(drawn(seed))) for seed in range(6)]
    joined = list(foundation.joined(prepared, 10**9))
    assert len(joined) == 1
    assert foundation.of(joined) == foundation.of(prepared)


def test_symbols_beyond_the_alphabet_and_chunks_that_are_none_are_refused():
    with pytest.raises(InvalidInput, match=r"the alphabet has 0 to 5; give -1"):
        made().prepared(SymbolBatch.of([[0, 6]]))
    flags = np.array([1], np.int8), np.array([True]), np.array([False])
    with pytest.raises(InvalidInput, match="the first chunk of a sequence must have no context"):
        SymbolBatch(np.array([0, 2]), np.array([0, 1], np.int32), *flags)


def test_a_sketch_of_few_symbols_is_the_identity_and_of_many_has_the_columns_asked_for():
    rng = np.random.default_rng(0)
    assert sketch_of(rng.poisson(2, (N, N)), LETTERS).columns == 4
    many = Vocabulary(tuple(f"w{i}" for i in range(200)), 200)
    pairs = rng.poisson(0.3, (200, 200))
    pairs[:, 0] = 0
    pairs[7, :] *= 400  # a symbol that would rule the range of int8
    sketch = sketch_of(pairs, many, columns=9)
    assert (sketch.columns, sketch.core) == (9, 200)
    assert np.median(np.abs(sketch.matrix[:, :7]), axis=0).min() > 2
    assert sketch == sketch_of(pairs, many, columns=9)
    with pytest.raises(InvalidInput, match="occur together"):
        sketch_of(np.zeros((200, 200)), many)
