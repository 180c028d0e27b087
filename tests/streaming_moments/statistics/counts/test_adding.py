"""Sums of a block: whatever is in cells, opened, read or taken away, they are those of NumPy."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from brute_halves import odd_document
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock
from streaming_moments.errors import ForeignStatistics
from streaming_moments.statistics.counts.adding import BlockSums
from streaming_moments.statistics.counts.kernels.pair_kernels import CellFields
from streaming_moments.statistics.counts.lengths.weights import LengthWeights
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.statistics.counts.statistics import zero_arrays

N_WORDS, CORE = 6, 4
Q = np.array([[1, 0], [-1, 2], [0, 3], [2, 1]], dtype=np.int8)

# a product may be of 2 bits or of 45
counts = st.sampled_from([0, 0, 1, 1, 2, 8000])
# with three words of 8,000 the triples of a document pass its bound
documents = st.lists(counts, min_size=N_WORDS, max_size=N_WORDS).filter(
    lambda row: row.count(8000) < 3
)
corpora = st.lists(st.lists(documents, min_size=1, max_size=5), min_size=1, max_size=5)
blocks = st.sampled_from([RowBlock(), RowBlock(0, 2), RowBlock(1, 4), RowBlock(5, 6)])
gathered = st.tuples(st.booleans(), st.booleans())
# None: those of the fields
limits = st.sampled_from([None, (0, 0), (1 << 20, 3), (1 << 23, 1 << 18)])


def by_hand(rows, basis, block, codocuments, halves):
    """Arrays of a block by name, in Python's integers."""
    X = np.array([row for part in rows for row in part] or [[0] * N_WORDS], dtype=object)
    even = np.array([not odd_document(dict(enumerate(row))) for row in X.tolist()])
    weights = basis.weights.at(X.astype(np.int64).sum(axis=1)).astype(object)
    V, y, seen = weights[:, None] * X, X[:, :CORE] @ Q.astype(object), (X > 0).astype(object)

    def pairs(V, X):
        return (V.T @ X - np.diag(V.sum(axis=0)))[:, :CORE]

    upper = np.triu_indices(2)
    triples = [
        sum(v * np.outer(u, u)[upper] for v, u in zip(V[:, i], y, strict=True))
        for i in range(N_WORDS)
    ]
    arrays = {
        "word_counts": X.sum(axis=0),
        "document_frequencies": seen.sum(axis=0),
        "pair_counts": pairs(V, X),
        "triple_sketch": np.array(triples),
        "weighted_counts": V.sum(axis=0),
    }
    if codocuments:
        arrays["codocuments"] = (seen.T @ seen)[:CORE, :CORE]
    if halves:
        arrays["even_pair_counts"] = pairs(V[even], X[even])
    return {name: array[block.rows].astype(np.int64) for name, array in arrays.items()}


@given(corpora, blocks, gathered, st.sampled_from([1, 3, 1 << 17]), limits, st.data())
def test_cells_hold_what_is_added_and_not_taken_away(corpus, block, kept, weight, limit, data):
    basis = Basis(Q, N_WORDS, weights=LengthWeights(np.array([2 * weight, weight])))
    batches = [ProjectedBatch.of(CountBatch.from_csr(np.array(part)), basis) for part in corpus]
    held = []
    fields = CellFields.largest if limit is None else property(lambda _: limit)
    with patch.object(CellFields, "largest", fields):
        sums = BlockSums(basis, block, zero_arrays(basis, block, *kept))
        for place, batch in enumerate(batches):
            if held and data.draw(st.booleans()):
                gone = held.pop(data.draw(st.integers(0, len(held) - 1)))
                sums.subtract([batches[gone]])
            sums.add([batch])
            held.append(place)
            expected = by_hand([corpus[one] for one in held], basis, block, *kept)
            start = data.draw(st.integers(0, 2))
            for rows in (slice(None), slice(start, start + 2)):
                found = sums.rows(rows)
                assert found.keys() == expected.keys()
                for name, array in expected.items():
                    assert np.array_equal(found[name], array[rows]), name
    for name, array in sums.opened().items():
        assert np.array_equal(array, expected[name]), name


@pytest.mark.parametrize(
    ("codocuments", "count", "weight", "documents"),
    [
        pytest.param(True, 47, 178_481, 1, id="23 bits"),
        pytest.param(False, 4369, 2**16 + 1, 15, id="32 bits"),
    ],
)
def test_a_field_that_is_full_keeps_to_its_bits(codocuments, count, weight, documents):
    most, _ = CellFields(True, codocuments).largest
    assert count * weight * documents == most
    basis = Basis(Q, N_WORDS, weights=LengthWeights(np.array([weight])))
    sums = BlockSums(basis, RowBlock(), zero_arrays(basis, RowBlock(), codocuments, True))
    [even, odd] = (
        ProjectedBatch.of(replace(batch, halves=np.full(documents, half)), basis)
        for half in (False, True)
        for batch in [CountBatch.from_csr([[1, count, 0, 0, 0, 0]] * documents)]
    )
    for number, one in enumerate([even, odd, odd], start=1):
        sums.add([one])
        found = sums.rows(slice(0, 1))
        assert found["pair_counts"].tolist() == [[0, number * most, 0, 0]]
        assert found["even_pair_counts"].tolist() == [[0, most, 0, 0]]
        if codocuments:
            assert found["codocuments"].tolist() == [[number, number, 0, 0]]


def test_rows_of_no_document_are_not_written():
    basis = Basis(Q, N_WORDS)
    arrays = zero_arrays(basis, RowBlock(), True, True)
    sums = BlockSums(basis, RowBlock(), arrays)
    batch = replace(CountBatch.from_csr([[0, 1, 0, 0, 0, 2]] * 2), halves=np.array([False, True]))
    sums.add([ProjectedBatch.of(batch, basis)])
    # to write the zeros of all other words would take the memory of all words
    marked = 7
    for name in ("even_pair_counts", "codocuments"):
        arrays[name][[0, 2]] = marked
    opened = sums.opened()
    assert (opened["even_pair_counts"][[0, 2]] == marked).all()
    assert (opened["codocuments"][[0, 2]] == marked).all()
    assert opened["codocuments"][1].tolist() == [0, 2, 0, 0]
    assert opened["even_pair_counts"][5].tolist() == [0, 2, 0, 0]


def test_batches_of_another_basis_are_refused():
    basis, other = Basis(Q, N_WORDS), Basis(-Q, N_WORDS)
    sums = BlockSums(basis, RowBlock(), zero_arrays(basis, RowBlock(), True, True))
    foreign = ProjectedBatch.of(CountBatch.from_csr(np.eye(N_WORDS, dtype=int)), other)
    with pytest.raises(ForeignStatistics, match="only statistics of one basis"):
        sums.add([foreign])
    assert MomentStatistics.zero(basis) == MomentStatistics(
        basis, RowBlock(), MomentStatistics.zero(basis).length_histogram, **sums.opened()
    )
