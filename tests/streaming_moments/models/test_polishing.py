"""Passes over documents: against brute force, planted topics, and in any order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import Basis, CountBatch, MomentStatistics, fit, polished
from streaming_moments.errors import BoundExceeded, ForeignStatistics, InvalidInput
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.passes.families import passes_of
from streaming_moments.models.passes.polishing import ExpectedCounts, Reader
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.reading import topic_reading
from streaming_moments.models.rows import InMemory
from streaming_moments.models.topics import TopicModel
from streaming_moments.synthetic import lda_corpus, single_topic_corpus, topic_error


def drawn(seed, n=9, k=3, alpha0=0.7):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(k, 5.0))
    return TopicModel.from_topics(rng.dirichlet(np.ones(n), k).T, weights, alpha0)


def by_hand(counts, model, sweeps):
    """Collapsed variational Bayes as it is written, document by document."""
    topics, alpha = model.smoothed(1e-3), model.alpha
    total = np.zeros_like(topics)
    for row in counts:
        words = np.flatnonzero(row)
        shares = np.zeros((words.size, alpha.size))
        for _ in range(sweeps):
            for place, word in enumerate(words):
                tokens = row[words] @ shares
                chances = topics[word] * (alpha + tokens - shares[place])
                shares[place] = chances / chances.sum()
        total[words] += row[words, None] * shares
    return total


@given(st.integers(0, 2**32), st.integers(1, 11))
def test_a_pass_is_collapsed_variational_bayes(seed, k):
    counts = np.random.default_rng(seed).poisson(0.8, (6, 9))
    model, batch = drawn(seed, k=k), CountBatch.from_csr(counts)
    totals, prior = np.zeros((9, k), dtype=np.int64), np.zeros(k + 1, dtype=np.int64)
    arrays = (batch.indptr, batch.words, batch.counts, model.smoothed(1e-3), model.alpha)
    topic_reading.expected_counts(*arrays, 4, 0.0, totals, prior)
    found = totals / topic_reading.TOKEN
    np.testing.assert_allclose(found, by_hand(counts, model, 4), atol=6 * 2.0**-20)
    lengths = counts.sum(axis=1)
    harmonic = sum(0.7 / (0.7 + m) for length in lengths for m in range(length))
    assert prior[-1] / topic_reading.TOKEN == pytest.approx(harmonic, abs=1e-5)
    # of one topic all tokens are its own
    if k == 1:
        assert prior[0] == pytest.approx(prior[1], abs=counts.size)


@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from([0.0, 0.7]))
def test_sums_are_the_same_bits_in_any_parts_and_order(seed, parts, alpha0):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.8, (12, 9))
    model = drawn(seed, alpha0=alpha0)
    reader = Reader(model)
    whole = reader.add(CountBatch.from_csr(counts), ExpectedCounts.zero(model))
    cut = np.array_split(counts[rng.permutation(12)], parts)
    total = ExpectedCounts.zero(model)
    for part in cut:
        total = total.add(reader.add(CountBatch.from_csr(part), ExpectedCounts.zero(model)))
    assert (total.counts == whole.counts).all()
    assert (total.prior == whole.prior).all()
    assert (total.documents, total.tokens) == (12, counts.sum())


def test_two_passes_bring_planted_topics_nearer():
    corpus = lda_corpus(4000, n_words=800, n_topics=6, alpha0=1.0, mean_length=60, seed=3)
    basis = Basis.from_pilot(corpus.batch, max_topics=8)
    model = fit(MomentStatistics.of(corpus.batch, basis), 6, 1.0, refine=0)
    errors = [topic_error(model.topics, corpus.topics)]
    for _ in range(2):
        model = polished(model, corpus.batch, 1)
        errors.append(topic_error(model.topics, corpus.topics))
    assert errors[1] < 0.85 * errors[0]
    assert errors[2] < 0.80 * errors[0]


def test_what_the_fit_told_of_pairs_stays_and_is_marked():
    corpus = lda_corpus(4000, n_words=800, n_topics=6, alpha0=1.0, mean_length=60, seed=3)
    basis = Basis.from_pilot(corpus.batch.select(0, 2000), max_topics=8)
    model = fit(MomentStatistics.of(corpus.batch, basis), 6, 1.0)
    after = polished(model, corpus.batch, 2, alpha=True)
    for name in ("topic_bars", "word_bars", "pair_weights", "held_out", "refined"):
        assert getattr(after, name) is getattr(model, name)
    # as wide as errors are after the passes too
    assert 0.8 < after.topic_bars.mean() / topic_error(after.topics, corpus.topics) < 1.25
    again = TopicModel.from_parts(*after.parts())
    assert np.array_equal(again.pair_weights, model.pair_weights)
    said = again.described()
    assert said.facts["error_bars_of"] == "the fit before it was polished"
    assert said.sentence.endswith("error bars are of the fit before that")
    assert "per word pair before polishing" in said.sentence
    assert "error_bars_of" not in model.described().facts
    # of a fit that was not refined Omega follows alpha
    plain = polished(replace(model, refined=0), corpus.batch, 1, alpha=True)
    assert np.allclose(plain.pair_weights.sum(axis=0), plain.weights)


def test_single_topics_are_polished_by_their_posterior():
    corpus = single_topic_corpus(3000, n_words=60, n_topics=4, lengths=(10, 60), seed=2)
    basis = Basis.from_pilot(corpus.batch, max_topics=6, length_weights="pooled")
    model = fit(MomentStatistics.of(corpus.batch, basis), 4, 0.0, refine=0)
    after = polished(model, corpus.batch)
    assert topic_error(after.topics, corpus.topics) < 0.8 * topic_error(model.topics, corpus.topics)
    assert after.weights.sum() == pytest.approx(1)
    assert np.isnan(after.npmi).all()
    assert after.polishing.documents == 3000


def test_rates_of_a_poisson_mixture_follow_its_posterior():
    rates = np.array([[2.0, 3.0, 0.5], [0.2, 8.0, 7.0]])
    rng = np.random.default_rng(0)
    batch = CountBatch.from_csr(rng.poisson(np.repeat(rates, 2000, 0)))
    statistics = MomentStatistics.of(
        batch, Basis.from_pilot(batch, max_topics=2, length_weights="pooled")
    )
    model = PoissonMixture.fit(InMemory((statistics,)), PoissonMixture.Options(topics=2))
    after = polished(model, batch)
    found = after.rates[:, np.argsort(after.lengths)]
    np.testing.assert_allclose(found, rates.T, atol=0.2)


def test_alpha_moves_towards_that_of_the_documents():
    corpus = lda_corpus(3000, n_words=300, n_topics=4, alpha0=2.0, seed=1)
    model = TopicModel.from_topics(corpus.topics, corpus.weights, alpha0=0.5)
    learned = polished(model, corpus.batch, 2, alpha=True)
    assert 1.0 < learned.alpha_sum < 3.5
    assert learned.alpha0 == TopicModel.from_parts(*learned.parts()).alpha0 == 0.5
    assert polished(model, corpus.batch, 2).alpha_sum == 0.5


def test_what_cannot_be_polished_says_why():
    model, batch = drawn(0), CountBatch.from_csr(np.ones((2, 9), dtype=int))
    with pytest.raises(ForeignStatistics):
        polished(model, CountBatch.from_csr([[1, 2]]))
    with pytest.raises(InvalidInput, match="no alpha to learn"):
        polished(replace(model, alpha_sum=0.0), batch, alpha=True)
    with pytest.raises(InvalidInput, match="passes is -1"):
        polished(model, batch, -1)
    with pytest.raises(InvalidInput, match="independent has no passes over records; polish"):
        passes_of(IndependentIntensities)
    with pytest.raises(InvalidInput, match="no passes over records"):
        polished(object.__new__(IndependentIntensities), batch)
    with pytest.raises(InvalidInput, match="reads rows of numbers"):
        polished(object.__new__(GaussianMixture), batch)
    full = replace(ExpectedCounts.zero(model), tokens=1 << 42)
    with pytest.raises(BoundExceeded, match="fewer shards"):
        Reader(model).add(batch, full)


def test_topics_without_a_token_stay_as_they_are():
    model = TopicModel.from_topics(np.eye(3), np.array([0.5, 0.5, 0.0]))
    after = polished(model, CountBatch.from_csr([[3, 1, 0], [1, 4, 0]]))
    assert (after.topics[:, 2] == model.topics[:, 2]).all()
    assert polished(model, CountBatch.from_csr(np.zeros((2, 3), dtype=int))).polishing.tokens == 0


def test_a_polished_model_is_itself_again_from_its_parts():
    model = polished(drawn(1), CountBatch.from_csr(np.ones((2, 9), dtype=int)), 1)
    again = TopicModel.from_parts(*model.parts())
    assert again.polishing == model.polishing
    assert "2 records read once" in again.described().sentence
