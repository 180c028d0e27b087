"""The half of a record follows from the record alone, in every kind of statistics."""

import pickle
from dataclasses import replace

import numpy as np
from brute_halves import mixed as mixed_by_hand
from brute_halves import odd_document, odd_row
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock
from streaming_moments.statistics.counts.batch import concatenate, odd_documents
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.tables.columns import TableColumns
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.ends import EdgeBatch
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.halves import count_keys, mixed, odd_by_place, odd_half, row_keys
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.statistics.views.records import ViewBatch, join_views
from streaming_moments.testing.laws import check_records

N = 5
WORDS = Vocabulary(tuple("abcde"), core=N)
WIDE = Vocabulary(("v", "w", "x"), core=3)


def sketch_of(words):
    return Basis(np.eye(words.n_words, 2, dtype=np.int8), words.n_words, words.fingerprint)


@st.composite
def cut_records(draw, *widths, most=4):
    """Tables of small integers with rows of so many columns, an order of their rows, and cuts."""
    rows = draw(st.integers(0, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = [rng.integers(0, most, (rows, width)) for width in widths]
    cuts = draw(st.lists(st.integers(0, rows), max_size=3))
    return tables, draw(st.permutations(range(rows))), cuts


def taken(table, places):
    return table[np.array(places, dtype=int)]


def batch_of(counts, words=WORDS):
    return CountBatch.from_csr(counts, words.fingerprint)


@settings(max_examples=60)
@given(cut_records(N), st.integers(1, 3), st.booleans(), st.data())
def test_documents(records, step, codocuments, data):
    [counts], order, cuts = records
    block, basis = RowBlock(data.draw(st.integers(0, step - 1)), step), sketch_of(WORDS)
    check_records(
        MomentStatistics.zero(basis, block, codocuments),
        lambda part: MomentStatistics.of(batch_of(part), basis, block, codocuments),
        taken,
        counts,
        order,
        cuts,
    )
    batch = batch_of(counts)
    assert batch.odd.tolist() == [odd_document(dict(enumerate(row))) for row in counts.tolist()]
    assert concatenate([batch, batch]).odd.tolist() == 2 * batch.odd.tolist()
    half = len(counts) // 2
    assert batch.select(half, len(counts)).odd.tolist() == batch.odd.tolist()[half:]


@settings(max_examples=40)
@given(cut_records(N, most=3))
def test_sets(records):
    [counts], order, cuts = records
    foundation = SetsFoundation(WORDS, sketch_of(WORDS), by_content=True)
    check_records(
        foundation.of([]),
        lambda part: foundation.of_sets(batch_of(part)),
        taken,
        counts,
        order,
        cuts,
    )
    # how often a feature is listed says nothing
    assert foundation.of_sets(batch_of(counts)) == foundation.of_sets(batch_of(counts > 0))


@settings(max_examples=40)
@given(cut_records(N, 3, 3, most=3))
def test_views(records):
    tables, order, cuts = records
    words = WORDS, WIDE, WIDE
    foundation = ViewsFoundation(tuple(map(sketch_of, words)), words, by_content=True)

    def of(parts):
        return ViewBatch(*map(batch_of, parts, words))

    check_records(
        foundation.of([]),
        lambda parts: foundation.of([foundation.prepared(of(parts))]),
        lambda parts, places: [taken(part, places) for part in parts],
        tables,
        order,
        cuts,
    )
    batch = of(tables)
    rows = np.hstack(tables).tolist()
    assert batch.odd.tolist() == [odd_document(dict(enumerate(row))) for row in rows]
    assert join_views([batch, batch]).odd.tolist() == 2 * batch.odd.tolist()
    assert batch.select(0, len(rows)).odd.tolist() == batch.odd.tolist()


@settings(max_examples=40)
@given(cut_records(3, most=200), st.booleans())
def test_vectors(records, fourth):
    [table], order, cuts = records
    grid = Grid(np.array([1.0, 0.0, -1.0]), step=0.25, radius=500)
    shift = np.zeros(2, np.uint8)
    foundation = VectorsFoundation(grid, np.eye(3, 2, dtype=np.int8), shift, True, fourth)
    # numbers between those of the grid
    rows = (table - 100) / 11
    check_records(
        foundation.of([]),
        lambda part: foundation.of_vectors(VectorBatch.of(part)),
        taken,
        rows,
        order,
        cuts,
    )
    given = grid.quantised(rows)[0]
    prepared = foundation.prepared(VectorBatch.of(rows))
    assert prepared.odd.tolist() == [odd_row(row) for row in given.tolist()]
    assert foundation.of_vectors(VectorBatch.of(rows)) == foundation.of(
        [foundation.prepared(VectorBatch.of(part)) for part in np.array_split(rows, 2)], RowBlock()
    )


@settings(max_examples=40)
@given(cut_records(6, most=4), st.data())
def test_sequences(records, data):
    [table], order, cuts = records
    # of any length, also with symbols outside the alphabet
    sequences = [row[: data.draw(st.integers(0, 6))] - 1 for row in table]
    foundation = SequencesFoundation(WIDE, sketch_of(WIDE))
    check_records(
        foundation.of([]),
        lambda part: foundation.of_sequences(SymbolBatch.of(part)),
        lambda part, places: [part[place] for place in places],
        sequences,
        order,
        cuts,
    )
    found = SymbolBatch.of(sequences).odd.tolist()
    assert found == [odd_row(one.tolist()) for one in sequences]


@settings(max_examples=40)
@given(cut_records(2, most=N), st.booleans())
def test_edges(records, directed):
    [ends], _, _ = records
    # each once, as a graph has them
    ends = EdgeBatch.of(ends, N, directed).ends
    foundation = EdgesFoundation(WORDS, directed=directed)
    order = np.random.default_rng(len(ends)).permutation(len(ends)).tolist()
    check_records(
        foundation.of([]),
        lambda part: foundation.of_edges(EdgeBatch(part)),
        taken,
        ends,
        order,
        [len(ends) // 2],
    )


def test_the_hash_is_fixed():
    numbers = np.array([0, 1, 2, 1 << 32, (1 << 64) - 1], dtype=np.uint64)
    assert mixed(numbers).tolist() == list(map(mixed_by_hand, numbers.tolist()))
    # of no machine and no version
    assert mixed(numbers).tolist() == [
        0,
        15611585525434490678,
        6139133851774532225,
        9029911373892528734,
        12812423458264527416,
    ]
    indptr = np.array([0, 2, 2, 3])
    words, counts = np.array([0, 3, 2], np.int32), np.array([2, 1, 7], np.int32)
    assert count_keys(indptr, words, counts, 0, 5).tolist() == [
        4653384477740489994,
        0,
        557516179546598602,
    ]
    assert row_keys(indptr, np.array([-1, 300, 0], np.int16)).tolist() == [
        11425333310840944265,
        0,
        9029911373892528734,
    ]


def test_words_that_came_later_move_no_document():
    rng = np.random.default_rng(4)
    counts = rng.poisson(1.0, (200, N))
    before = CountBatch.from_csr(counts[:, :3])
    assert odd_documents(CountBatch.from_csr(counts), n_words=3).tolist() == before.odd.tolist()


def test_passages_are_of_the_half_of_their_document_however_it_is_cut():
    rng = np.random.default_rng(5)
    passages = rng.poisson(0.7, (60, N))
    sizes = np.array([1, 4, 2, 3] * 6)
    documents = np.add.reduceat(passages, np.cumsum(sizes) - sizes, axis=0)
    found = odd_documents(CountBatch.from_csr(passages), sizes)
    assert found.tolist() == np.repeat(CountBatch.from_csr(documents).odd, sizes).tolist()


def test_halves_are_as_good_as_chance():
    rng = np.random.default_rng(6)
    # short and long documents, each of which differs from another one by a word alone
    for words, tokens in ((40, 2), (200, 2), (200, 5), (50, 100)):
        counts = np.zeros((4000, words))
        places = np.repeat(np.arange(4000), tokens)
        np.add.at(counts, (places, rng.integers(0, words, places.size)), 1)
        counts = np.unique(counts, axis=0)
        odd = CountBatch.from_csr(counts).odd
        signs = 2.0 * odd - 1
        assert abs(signs.mean()) < 4 / np.sqrt(len(odd))
        # of no word, and of no pair of words, more than chance has it
        own, chance = (
            np.linalg.norm(counts.T @ (half[:, None] * counts) - np.diag(half @ counts), 2)
            for half in (signs, rng.permuted(signs))
        )
        assert own < 1.5 * chance
    rows = rng.integers(-300, 300, (20_000, 3)).astype(np.int16)
    odd = odd_half(row_keys(np.arange(20_001) * 3, rows.ravel()))
    assert abs(np.corrcoef(odd, rows[:, 0])[0, 1]) < 0.03
    assert abs(odd.mean() - 0.5) < 0.015


def test_halves_by_place_follow_no_order_of_the_rows():
    signs = 2.0 * odd_by_place(0, 20_000) - 1
    assert np.array_equal(odd_by_place(123, 40), odd_by_place(0, 163)[123:])
    for period in range(1, 30):
        means = [signs[start::period].mean() for start in range(period)]
        assert np.abs(means).max() < 4 / np.sqrt(20_000 / period), period
    sums = signs.reshape(-1, 100).sum(axis=1)
    assert 8.5 < sums.std() < 11.5


def test_what_repeats_by_chance_is_of_halves_by_place():
    """Rows that are few different ones: of one half each, halves would differ by far too much."""
    rows = np.tile([1, 0, 1, 1, 0], (8, 1))
    even = np.flatnonzero(~odd_by_place(0, 8)).size
    assert 0 < even < 8
    batch = batch_of(rows)
    pairs = MomentStatistics.of(batch_of(rows[:even]), sketch_of(WORDS), halves=False).pair_counts
    sets = SetsFoundation(WORDS, sketch_of(WORDS))
    assert np.array_equal(sets.of_sets(batch).even_pair_counts, pairs)
    views = ViewsFoundation((sketch_of(WORDS),) * 3, (WORDS,) * 3)
    assert views.of_counts(ViewBatch(batch, batch, batch)).totals.even_documents == even
    table = TableColumns.of_terms(["a=0", "a=1", "b=0", "b=1"])
    basis = replace(Basis(np.eye(4, 2, dtype=np.int8), 4), table=table)
    coded = table.batch(np.tile([0, 1], (8, 1)))
    found = MomentStatistics.of(coded, basis)
    assert np.array_equal(8 * found.even_pair_counts, even * found.pair_counts)
    assert not CountsFoundation(basis, codocuments=True).halves_by_content
    # of documents they are copies
    assert MomentStatistics.of(batch, sketch_of(WORDS)).even_pair_counts.max() in (0, 8)


def test_what_was_pickled_before_halves_were_of_the_content_goes_on():
    foundation = SequencesFoundation(WIDE, sketch_of(WIDE))
    state = {name: value for name, value in vars(foundation).items() if name != "by_content"}
    old = object.__new__(SequencesFoundation)
    vars(old).update(state)
    again = pickle.loads(pickle.dumps(old))
    batch = SymbolBatch.of([[0, 1, 2, 0], [1, 1, 2], [0, 2, 1]])
    assert again.of_sequences(batch) == foundation.of_sequences(batch)
    assert again.fingerprint == replace(again, by_content=False).fingerprint
