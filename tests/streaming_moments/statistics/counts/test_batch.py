"""CountBatch, Vocabulary and Basis: what they accept, refuse and keep."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streaming_moments import Basis, CountBatch, Vocabulary
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.statistics.counts.lengths.room import documents_that_fit
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights
from streaming_moments.statistics.counts.vocabulary import TermFrequencies, select_terms

matrices = arrays(
    np.int64, st.tuples(st.integers(0, 6), st.integers(1, 7)), elements=st.integers(0, 4)
)


@given(matrices)
def test_a_matrix_is_kept_and_not_changed(matrix):
    kept = matrix.copy()
    for given_matrix in (matrix, sp.csr_array(matrix), sp.coo_array(matrix), matrix.astype(float)):
        batch = CountBatch.from_csr(given_matrix)
        assert np.array_equal(batch.to_csr().toarray(), kept)
        assert batch.lengths.tolist() == kept.sum(axis=1).tolist()
        assert batch.tokens == kept.sum()
    assert np.array_equal(matrix, kept)


@given(matrices, st.randoms(use_true_random=False))
def test_entries_in_any_order_add_up(matrix, random):
    documents, words = np.nonzero(matrix)
    tokens = [(d, w) for d, w in zip(documents, words, strict=True) for _ in range(matrix[d, w])]
    random.shuffle(tokens)
    places = np.array(tokens, dtype=np.int64).reshape(-1, 2)
    batch = CountBatch.from_entries(places[:, 0], places[:, 1], None, matrix.shape)
    assert np.array_equal(batch.to_csr().toarray(), matrix)
    weighted = CountBatch.from_entries(documents, words, matrix[documents, words], matrix.shape)
    assert np.array_equal(weighted.to_csr().toarray(), matrix)
    # each document's in any order, and some of no word
    by_document = np.argsort(places[:, 0], kind="stable")
    indptr = np.concatenate([[0], np.cumsum(matrix.sum(axis=1))])
    rows = CountBatch.from_rows(indptr, places[by_document, 1], None, matrix.shape[1])
    assert np.array_equal(rows.to_csr().toarray(), matrix)
    assert (rows.indptr.dtype, rows.words.dtype, rows.counts.dtype) == (
        np.int64,
        np.int32,
        np.int32,
    )


def test_rows_whose_sum_is_too_large_are_refused():
    with pytest.raises(InvalidInput, match="above 2147483647"):
        CountBatch.from_rows([0, 2], [0, 0], [2**30, 2**30], 1)


@given(matrices, st.data())
def test_selected_documents_concatenate_to_the_batch(matrix, data):
    batch = CountBatch.from_csr(matrix)
    cut = data.draw(st.integers(0, batch.documents))
    joined = concatenate([batch.select(0, cut), batch.select(cut, batch.documents)])
    assert np.array_equal(joined.to_csr().toarray(), matrix)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 0], [0, -2]], "document 1 counts word 1 -2 times"),
        ([[1.0, 0.5]], r"document 0 counts word 1 0.5 times; counts must be whole"),
        ([[np.nan, 1.0]], "document 0 counts word 0 nan times"),
        (sp.csr_array(np.array([[0, 0], [3, -1]])), "document 1 counts word 1 -1 times"),
        ([[2**31, 0]], "above 2147483647"),
        ([1, 2], r"\(documents, words\)"),
        ([["a"]], "matrix of numbers"),
    ],
)
def test_bad_counts_are_refused_with_their_place(matrix, message):
    with pytest.raises(InvalidInput, match=message):
        CountBatch.from_csr(matrix)


def test_batches_of_different_words_do_not_concatenate():
    with pytest.raises(ForeignStatistics, match="aaaa with 2 words, .* bbbb with 3;"):
        concatenate(
            [CountBatch.from_csr([[1, 1]], "aaaa"), CountBatch.from_csr([[1, 1, 1]], "bbbb")]
        )
    with pytest.raises(InvalidInput, match="there are no batches to concatenate"):
        concatenate([])


def test_vocabulary_fingerprint_depends_on_everything():
    terms = ("law", "sea", "ship")
    vocabularies = [
        Vocabulary(terms, 2),
        Vocabulary(terms, 3),
        Vocabulary(terms[::-1], 2),
        Vocabulary(terms, 2, policy="p"),
        Vocabulary(terms, 2, token_ids=(3, 4, 5)),
        Vocabulary(terms, 2, token_ids=(3, 4, 6)),
    ]
    assert len({vocabulary.fingerprint for vocabulary in vocabularies}) == len(vocabularies)
    assert Vocabulary(terms, 2).fingerprint == vocabularies[0].fingerprint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a", "b"), 3), "core is 3 but the vocabulary has 2"),
        ((("a", "b"), 0), "core is 0"),
        ((("a", "a"), 1), "repeats a term"),
        ((("a", "b"), 1, "", (1,)), "2 terms need as many different token ids, got 1"),
    ],
)
def test_bad_vocabularies(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        Vocabulary(*arguments)


def test_terms_are_selected_by_frequency_and_bounds():
    sample = TermFrequencies(
        ["the", "rare", "b", "a", "big"],
        np.array([90, 1, 5, 5, 30]),
        np.array([10, 1, 4, 4, 5]),
        10,
    )
    assert [sample.terms[i] for i in select_terms(sample, 10, 2, 0.9)] == ["big", "a", "b"]
    assert [sample.terms[i] for i in select_terms(sample, 2, 2, 0.9)] == ["big", "a"]
    assert len(select_terms(sample, 10, 1, 1.0)) == 5
    with pytest.raises(InvalidInput, match="5 terms in 10 documents, 5 occur in fewer than 20"):
        select_terms(sample, 10, 20)
    with pytest.raises(InvalidInput, match="size is 0"):
        select_terms(sample, 0)
    with pytest.raises(InvalidInput, match="fraction is 1.5"):
        select_terms(sample, 5, 1, 1.5)


def test_basis_from_a_pilot_is_integer_seeded_and_leading():
    rng = np.random.default_rng(0)
    pilot = CountBatch.from_csr(rng.poisson(rng.gamma(0.3, 1.0, size=(400, 300))))
    one, two, other = (Basis.from_pilot(pilot, 8, seed=seed, core=280) for seed in (0, 0, 1))
    assert one == two
    assert one != other
    assert one.matrix.dtype == np.int8
    assert (one.core, one.columns, one.packed) == (280, 14, 105)
    X = pilot.to_csr().toarray()[:, :280].astype(float)
    weighted = one.weights.at(pilot.lengths)[:, None] * X
    _, vectors = np.linalg.eigh(weighted.T @ X - np.diag(weighted.sum(axis=0)))
    leading = vectors[:, ::-1][:, :4]
    Q = np.linalg.qr(one.matrix[:, :12].astype(float))[0]
    # the exact leading eigenvectors lie in the span of those rounded to +-31
    assert np.linalg.norm(leading - Q @ (Q.T @ leading)) < 0.05 * 127 / 31


def test_length_weights_are_those_of_the_longest_document_of_the_pilot():
    pilot = CountBatch.from_csr(np.diag([1, 2, 40]) + 1)
    basis = Basis.from_pilot(pilot, max_topics=1)
    assert basis.weights == LengthWeights.even(86)
    assert basis.weights.at([0, 4, 43, 10**6]).tolist() == [15, 12, 3, 1]
    pooled = Basis.from_pilot(pilot, max_topics=1, length_weights="pooled")
    assert pooled.weights == POOLED
    assert np.array_equal(pooled.matrix, basis.matrix)
    assert pooled.fingerprint != basis.fingerprint
    assert basis.with_words(9, "").weights == basis.weights
    with pytest.raises(InvalidInput, match='length weights are "zou"; choose even or pooled'):
        Basis.from_pilot(pilot, max_topics=1, length_weights="zou")


def test_pooled_bases_are_called_as_before_there_were_weights():
    # of a basis as version 0.1.0 made it, and of one whose table says the same
    matrix = np.array([[127, 31], [-58, 127]], dtype=np.int8)
    fingerprint = "872203ef519f3c1ba1d72bfd69721139bbb021a9d89e99aa382e9625ceb81833"
    words = "761a3e2456b0092c46660b71b76122d72065ce760462cfaeb1edcef0495ec848"
    for weights in (POOLED, LengthWeights(np.array([1, 1, 1]))):
        assert Basis(matrix, 3, words, weights).fingerprint == fingerprint
    other = Basis(matrix, 3, words, LengthWeights(np.array([2, 1])))
    assert other.fingerprint != fingerprint


@pytest.mark.parametrize("table", [[], [[1]], [0, 1], [1.0], [2, -1]])
def test_tables_that_are_no_weights_are_refused(table):
    with pytest.raises(InvalidInput, match="length weights must be a non-empty .* int64 array"):
        LengthWeights(np.array(table, dtype=float if 1.0 in table else np.int64))


def test_weights_leave_room():
    rng = np.random.default_rng(0)
    lengths = rng.lognormal(5, 1, size=400).astype(int) + 3
    short = CountBatch.from_csr(rng.multinomial(lengths, rng.dirichlet(np.ones(50), 400)))
    # one document a thousand times as long as the others
    outlier = concatenate([short, CountBatch.from_csr(1 + 8000 * np.eye(1, 50, dtype=int))])
    for pilot in (short, outlier):
        basis = Basis.from_pilot(pilot, max_topics=8)
        room = documents_that_fit(pilot, basis.matrix, basis.weights)
        assert room >= min(10**9, documents_that_fit(pilot, basis.matrix, POOLED) // 16)
        assert basis.weights.at(100) > 1
    alike = CountBatch.from_csr(rng.poisson(1.0, (400, 50)))
    longest = int(alike.lengths.max())
    assert Basis.from_pilot(alike, max_topics=8).weights == LengthWeights.even(2 * longest)


def test_basis_of_few_words_is_the_identity():
    basis = Basis.from_pilot(CountBatch.from_csr([[2, 1, 1]] * 3), max_topics=2)
    assert np.array_equal(basis.matrix, np.eye(3))


@pytest.mark.parametrize(
    ("matrix", "n_words", "message"),
    [
        (np.ones((3, 2), dtype=np.int8), 3, "linearly dependent"),
        (np.ones((3, 1)), 3, "int8"),
        (np.ones((3, 1), dtype=np.int8), 2, "3 rows, more than the 2 words"),
    ],
)
def test_bad_bases(matrix, n_words, message):
    with pytest.raises(InvalidInput, match=message):
        Basis(matrix, n_words)


def test_bad_pilots():
    with pytest.raises(InvalidInput, match="5 topics cannot be separated by 2 core words"):
        Basis.from_pilot(CountBatch.from_csr([[1, 2]]), 5)
    with pytest.raises(InvalidInput, match="none of the pilot's 2 documents holds two"):
        Basis.from_pilot(CountBatch.from_csr(np.eye(2, 30, dtype=int)), 2)
    with pytest.raises(InvalidInput, match="core is 9"):
        Basis.from_pilot(CountBatch.from_csr([[1, 2]]), 1, core=9)
