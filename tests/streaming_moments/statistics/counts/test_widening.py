"""Words that came later: the laws, brute force, and the topics of the new rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from widening import widened

from streaming_moments import (
    Basis,
    CountBatch,
    LengthHistogram,
    MomentStatistics,
    RowBlock,
    fit,
    fit_by,
)
from streaming_moments.decompositions.forms import Dirichlet
from streaming_moments.errors import ForeignStatistics
from streaming_moments.models.sweeps import slice_evidence, solve, whiten_rows
from streaming_moments.quality.matching import match_topics
from streaming_moments.statistics.counts.lengths.weights import LengthWeights
from streaming_moments.statistics.counts.slices import rotated_diagonals, whitened_slices
from streaming_moments.statistics.counts.statistics import merge_blocks
from streaming_moments.statistics.counts.weighted import WeightedStatistics
from streaming_moments.statistics.counts.whitening import core_rows
from streaming_moments.synthetic.corpora import lda_corpus
from streaming_moments.testing.laws import check_laws

ERAS = (4, 5, 7)  # words
MATRIX = np.array([[3, 1], [-2, 5], [4, 0]], dtype=np.int8)
WEIGHTS = LengthWeights(np.array([9, 9, 5, 4, 4, 2, 1]))
BASES = [Basis(MATRIX, words, weights=WEIGHTS) for words in ERAS]


def of_eras(parts, block=RowBlock()):
    """Statistics of documents counted with the vocabulary of their era, on the largest."""
    total = MomentStatistics.zero(BASES[-1], block)
    for counts, basis in zip(parts, BASES, strict=True):
        batch = CountBatch.from_csr(counts[:, : basis.n_words])
        # a document is of the same half wherever it stands
        batch = replace(batch, halves=counts.sum(axis=1) % 2 == 1)
        total = total + widened(MomentStatistics.of(batch, basis, block), BASES[-1])
    return total


@st.composite
def eras(draw):
    """Documents of each era."""
    numbers = [draw(st.integers(0, 3)) for _ in ERAS]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [rng.poisson(1.0, (documents, ERAS[-1])) for documents in numbers]


@given(st.lists(eras(), min_size=2, max_size=4), st.integers(1, 3), st.data())
@settings(max_examples=60)
def test_statistics_of_several_eras_obey_the_laws(parts, step, data):
    block = RowBlock(data.draw(st.integers(0, step - 1)), step)
    check_laws(
        MomentStatistics.zero(BASES[-1], block),
        lambda sample: of_eras(sample, block),
        lambda samples: [np.vstack(era) for era in zip(*samples, strict=True)],
        parts,
        data.draw(st.permutations(range(len(parts)))),
    )


@given(eras(), st.integers(1, 4))
@settings(max_examples=30)
def test_row_blocks_of_several_eras_make_up_the_whole(parts, step):
    assert merge_blocks([of_eras(parts, RowBlock(i, step)) for i in range(step)]) == of_eras(parts)


def test_every_row_is_that_of_the_documents_that_count_it():
    rng = np.random.default_rng(5)
    parts = [rng.poisson(1.0, (documents, ERAS[-1])) for documents in (6, 3, 8)]
    found = of_eras(parts)
    seen = [part * (np.arange(ERAS[-1]) < words) for part, words in zip(parts, ERAS, strict=True)]
    pairs = np.zeros((ERAS[-1], 3), dtype=np.int64)
    triples = np.zeros((ERAS[-1], 3), dtype=np.int64)
    for x in np.vstack(seen):
        y = x[:3] @ MATRIX.astype(np.int64)
        w = WEIGHTS.at(x.sum())
        pairs += w * (np.outer(x, x[:3]) - np.eye(ERAS[-1], 3, dtype=np.int64) * x[:, None])
        triples += w * np.outer(x, [y[0] * y[0], y[0] * y[1], y[1] * y[1]])
    assert found.pair_counts.tolist() == pairs.tolist()
    assert found.triple_sketch.tolist() == triples.tolist()
    assert found.word_counts.tolist() == np.vstack(seen).sum(axis=0).tolist()
    tokens = np.vstack(seen).sum(axis=1)
    weighted = (WEIGHTS.at(tokens)[:, None] * np.vstack(seen)).sum(axis=0)
    assert found.weighted_counts.tolist() == weighted.tolist()
    for row in range(ERAS[-1]):
        counting = [own for own, words in zip(seen, ERAS, strict=True) if row < words]
        lengths = LengthHistogram.of(np.vstack(counting).sum(axis=1), WEIGHTS)
        assert found.row_lengths.at(row) == lengths
        constants = [values[0] for values in found.row_lengths.constants(np.array([row]))]
        assert constants == [lengths.C1, lengths.C2, lengths.C3]
    assert [first for first, _ in found.later] == [4, 5]


def test_a_matrix_of_another_kind_is_refused():
    statistics = MomentStatistics.zero(BASES[1])
    for basis in (BASES[0], Basis(MATRIX[:, :1], 7)):
        with pytest.raises(ForeignStatistics, match="5 words"):
            widened(statistics, basis)


OLD, ALL, CORE, TOPICS = 90, 120, 60, 4


@pytest.fixture(scope="module")
def grown():
    """Two halves of a planted corpus: the first counted without thirty of the words."""
    corpus = lda_corpus(8000, ALL, TOPICS, mean_length=60, concentration=80, seed=4)
    late = np.arange(24, 114, 3)
    order = np.concatenate([np.setdiff1d(np.arange(ALL), late), late])
    counts = corpus.batch.to_csr()[:, order]
    before = CountBatch.from_csr(counts[:4000, :OLD])
    basis = Basis.from_pilot(before, max_topics=TOPICS, core=CORE)
    large = basis.with_words(ALL, "")
    after = MomentStatistics.of(CountBatch.from_csr(counts[4000:]), large)
    first = MomentStatistics.of(before, basis)
    return first, after, widened(first, large) + after, corpus.topics[order]


def error_of_new_rows(model, truth):
    """Sum of the errors of the new words, beside their share of the topics."""
    ours, theirs, _ = match_topics(model.topics, truth)
    errors = np.abs(model.topics[OLD:, ours] - truth[OLD:, theirs])
    return errors.sum() / truth[OLD:].sum()


@pytest.mark.parametrize("method", ["joint", "feature", "power"])
def test_the_topics_of_grown_words_are_those_of_the_model(grown, method):
    *_, both, truth = grown
    model = fit_by(both, TOPICS, alpha0=1.0, method=method)
    assert error_of_new_rows(model, truth) < 0.2
    assert model.word_probabilities.sum() == pytest.approx(1.0)
    expected = truth[OLD:].mean(axis=1)
    # the others hold the tokens of the first half alone: their share is a little too large
    assert np.abs(model.word_probabilities[OLD:] - expected).sum() < 0.1 * expected.sum()
    # as if all documents had counted them
    wrong = fit_by(replace(both, later=()), TOPICS, alpha0=1.0, method=method)
    assert error_of_new_rows(wrong, truth) > 0.35


def test_rows_of_new_words_are_those_of_the_documents_since(grown):
    _, after, both, _ = grown
    lengths = both.length_histogram
    whitening = whiten_rows([core_rows(both)], lengths, both.basis, TOPICS, Dirichlet(1.0))
    O = solve(slice_evidence(both, whitening, "joint"), whitening, seed=0).vectors
    rows = rotated_diagonals(both, whitening, O)
    assert (rows[OLD:] == rotated_diagonals(after, whitening, O)[OLD:]).all()
    alike = replace(both, later=())
    assert (rows[:OLD] == rotated_diagonals(alike, whitening, O)[:OLD]).all()
    slices = np.vstack(list(whitened_slices(both, whitening)))
    assert (slices[OLD:] == np.vstack(list(whitened_slices(after, whitening)))[OLD:]).all()
    assert (slices[:OLD] == np.vstack(list(whitened_slices(alike, whitening)))[:OLD]).all()


def test_words_that_no_document_counts_have_no_share(grown):
    first, after, _, _ = grown
    model = fit(widened(first, after.basis), TOPICS, alpha0=1.0)
    assert not model.topics[OLD:].any()
    assert not model.word_probabilities[OLD:].any()
    small = fit(first, TOPICS, alpha0=1.0)
    assert np.allclose(model.topics[:OLD], small.topics, rtol=0, atol=1e-14)


def test_weighted_rows_have_weighted_constants(grown):
    first, after, both, _ = grown
    weighted = WeightedStatistics.of([(0.5, widened(first, after.basis)), (2.0, after)])
    C1, _, C3 = weighted.row_lengths.constants(np.array([0, OLD]))
    one, other = first.length_histogram, after.length_histogram
    assert C1.tolist() == [0.5 * one.C1 + 2.0 * other.C1, 2.0 * other.C1]
    assert C3.tolist() == [0.5 * one.C3 + 2.0 * other.C3, 2.0 * other.C3]
    alike = WeightedStatistics.of([(1.0, widened(first, after.basis)), (1.0, after)])
    assert np.allclose(fit(alike, TOPICS, 1.0).topics, fit(both, TOPICS, 1.0).topics)
