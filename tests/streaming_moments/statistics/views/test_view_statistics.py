"""Statistics of three views: the laws, brute force, blocks of rows, halves, bounds and guards."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.errors import BoundExceeded, ForeignStatistics, InvalidInput
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.statistics.views.records import ViewBatch, join_views
from streaming_moments.testing.laws import check_laws

SIZES = (5, 4, 3)
WORDS = tuple(
    Vocabulary(tuple(f"{name}{i}" for i in range(n)), n - 1)
    for name, n in zip("abc", SIZES, strict=True)
)


def made(seed=0, halves=True, columns=2):
    rng = np.random.default_rng(seed)
    bases = []
    for words in WORDS:
        while True:
            matrix = rng.integers(-127, 128, (words.core, columns)).astype(np.int8)
            if np.linalg.matrix_rank(matrix) == columns:
                break
        bases.append(Basis(matrix, words.n_words, words.fingerprint))
    return ViewsFoundation(tuple(bases), WORDS, halves=halves)


def drawn(seed, records=12, most=3):
    rng = np.random.default_rng(seed)
    odd = rng.random(records) < 0.5
    counts = [rng.integers(0, most, (records, n)) * (rng.random((records, 1)) < 0.8) for n in SIZES]
    views = [
        CountBatch.from_csr(table, words.fingerprint)
        for table, words in zip(counts, WORDS, strict=True)
    ]
    return ViewBatch(*(replace(view, halves=odd) for view in views)), counts, odd


def sketched(basis, counts):
    return np.hstack(
        [counts.sum(axis=1)[:, None], counts[:, : basis.core] @ basis.matrix.astype(int)]
    )


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_the_definition_in_any_block(seed):
    foundation = made(seed)
    batch, counts, odd = drawn(seed)
    sketches = [sketched(b, c) for b, c in zip(foundation.bases, counts, strict=True)]
    held = np.prod([c.sum(axis=1) for c in counts], axis=0) > 0
    for half, wanted in (("", held), ("even_", held & ~odd)):
        expected = {
            "triple_sketch": np.einsum(
                "di,da,db->iab", *(part[wanted] for part in (counts[0], *sketches[1:]))
            ),
            "left_rows": np.einsum("di,da->ia", counts[1][wanted], sketches[0][wanted]),
            "right_rows": np.einsum("di,da->ia", counts[2][wanted], sketches[0][wanted]),
        }
        for step in (1, 3, 7):
            for index in range(step):
                block = RowBlock(index, step)
                found = foundation.of_counts(batch, block)
                for name, array in expected.items():
                    assert np.array_equal(found.sums[half + name], array[block.rows])
                assert found.totals == foundation.of_counts(batch).totals


@settings(max_examples=12)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_laws_hold_whatever_the_cut(seeds, order):
    foundation = made()
    parts = [drawn(seed, records=1 + seed % 5)[0] for seed in seeds]
    places = list(range(len(parts)))
    order.shuffle(places)
    check_laws(foundation.of([]), foundation.of_counts, join_views, parts, places)


def test_batches_joined_give_the_same_bits():
    foundation = made()
    prepared = [foundation.prepared(drawn(seed)[0]) for seed in range(6)]
    whole = foundation.of(prepared)
    assert foundation.of(foundation.joined(prepared, 10**9)) == whole
    assert len(list(foundation.joined(prepared, 10**9))) == 1
    assert len(list(foundation.joined(prepared, 1))) == 6


def test_large_counts_are_added_in_integers():
    foundation = made(halves=False)
    views = []
    for words in WORDS:
        table = np.zeros((1, words.n_words), dtype=np.int64)
        table[0, 0] = 40_000
        views.append(CountBatch.from_csr(table, words.fingerprint))
    found = foundation.of_counts(ViewBatch(*views)).sums["triple_sketch"]
    tops = [int(value) for basis in foundation.bases[1:] for value in basis.matrix[0]]
    assert int(found[0, 1, 1]) == 40_000**3 * tops[0] * tops[2]
    assert 127**2 * 40_000**3 > 2**53


def test_what_could_pass_its_integer_is_refused():
    views = [
        CountBatch.from_csr(np.full((1, words.n_words), 2**24), words.fingerprint)
        for words in WORDS
    ]
    with pytest.raises(BoundExceeded, match=r"record 0 .* cut it into several records"):
        made().prepared(ViewBatch(*views))
    large = made().of([])
    many = replace(large, totals=replace(large.totals, triples=2**48))
    with pytest.raises(BoundExceeded, match="create another store"):
        many + many


def test_halves_add_up_to_the_whole():
    foundation = made()
    batch, _, odd = drawn(3, records=30)
    whole = foundation.of_counts(batch)
    alone = replace(foundation, halves=False)
    for half in (False, True):
        kept = np.flatnonzero(odd == half)
        views = [CountBatch.from_csr(view.to_csr()[kept], view.vocabulary) for view in batch.views]
        expected = alone.of_counts(ViewBatch(*views))
        assert whole.half(half).sums.keys() == expected.sums.keys()
        for name, array in expected.sums.items():
            assert np.array_equal(whole.half(half).sums[name], array)
        assert whole.half(half).totals.triples == expected.totals.triples
    with pytest.raises(InvalidInput, match="no halves"):
        alone.of_counts(batch).half(False)


def test_what_was_never_added_is_not_taken_away():
    foundation = made()
    one, other = (foundation.of_counts(drawn(seed)[0]) for seed in (1, 2))
    with pytest.raises(InvalidInput, match="never added"):
        one - other
    with pytest.raises(ForeignStatistics, match="on one foundation"):
        one + made(seed=9).of([])
    with pytest.raises(ForeignStatistics, match="same rows"):
        one + foundation.of([], RowBlock(0, 2))


def test_damage_is_told():
    foundation = made()
    batch = drawn(1)[0]
    sound = foundation.of_counts(batch)
    assert list(foundation.problems([(RowBlock(), sound.sums)], sound.totals)) == []

    def told(name, place, value):
        sums = {key: array.copy() for key, array in sound.sums.items()}
        sums[name][place] = value
        return [text for _, text in foundation.problems([(RowBlock(), sums)], sound.totals)]

    assert any("below zero" in text for text in told("triple_sketch", (0, 0, 0), -1))
    assert any(
        "beyond the bound from the counts" in text
        for text in told("triple_sketch", (0, 1, 1), 2**40)
    )
    assert any(
        "beyond the bound from the counts" in text for text in told("left_rows", (0, 1), 2**40)
    )
    assert any("odd half" in text for text in told("even_left_rows", (0, 0), 2**40))
    assert any("the totals" in text for text in told("triple_sketch", (0, 0, 0), 2**30))


def test_parts_describe_a_foundation():
    foundation = made()
    again = ViewsFoundation.from_parts(*foundation.parts())
    assert again.fingerprint == foundation.fingerprint
    assert again == foundation
    assert replace(foundation, halves=False).fingerprint != foundation.fingerprint


def test_views_of_other_records_or_words_are_refused():
    batch = drawn(0)[0]
    with pytest.raises(InvalidInput, match="each record in all three"):
        ViewBatch(batch.rows.select(0, 3), batch.left, batch.right)
    with pytest.raises(ForeignStatistics, match="vocabularies of the foundation"):
        made().prepared(ViewBatch(batch.left, batch.rows, batch.right))
