"""Refinement: likelier in every round, at rest at exact moments, the same for any blocks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock, fit, fit_by
from streaming_moments.errors import InvalidInput
from streaming_moments.models import refinement
from streaming_moments.models.refinement import (
    PairTopics,
    begun,
    correlations,
    dirichlet_pair_weights,
    expected_ratios,
    implied_alpha0,
    next_topics,
    pair_rows,
    refined,
)
from streaming_moments.models.rows import InMemory
from streaming_moments.models.second_start import repeated_topics
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.pair_rows import PairRows
from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus, topic_error
from streaming_moments.testing.exact_statistics import statistics_of

N_WORDS, CORE, K = 40, 25, 4


def planted(seed, diagonal=False):
    """Topics and pair weights, of any correlations, and the statistics whose pairs are theirs."""
    rng = np.random.default_rng(seed)
    M = rng.dirichlet(np.full(N_WORDS, 0.3), size=K).T
    M = M[np.argsort(-M.sum(axis=1))]
    thetas = rng.dirichlet(np.full(K, 0.4), size=6)
    Omega = np.diag(rng.dirichlet(np.ones(K))) if diagonal else thetas.T @ thetas / 6
    M1 = M @ Omega.sum(axis=1)
    statistics = statistics_of(M1, M @ Omega @ M.T, np.zeros((N_WORDS,) * 3), CORE, 5)
    # the third moments are of no use here, but no total may be 0
    lengths = replace(statistics.length_histogram, C3=1.0)
    state = PairTopics(M, Omega, M1, CORE)
    return state, replace(statistics, length_histogram=lengths)


def one_round(statistics, state, dtype=np.float64, relaxation=1.0):
    return next_topics([expected_ratios(PairRows.of(statistics, dtype), state)], state, relaxation)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 19),
    density=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    core=st.sampled_from([1, 7, 530]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_ratios_are_those_of_the_whole_matrix(seed, k, density, core, dtype):
    rng = np.random.default_rng(seed)
    n = core + 3
    P = rng.poisson(3.0, (n, core)) * (rng.random((n, core)) < density)
    P[0] = rng.poisson(3.0, core)  # rows of both kinds
    M, Omega = rng.dirichlet(np.ones(n), size=k).T, rng.random((k, k))
    zeros = np.zeros(n, dtype=np.int64)
    basis = Basis(np.ones((core, 1), dtype=np.int8), n)
    batch = CountBatch.from_csr(np.ones((1, n), dtype=np.int64))
    statistics = replace(MomentStatistics.of(batch, basis), word_counts=zeros, pair_counts=P)
    left = M @ Omega
    found = PairRows.of(statistics, dtype).ratios(left, M[:core], M.mean(axis=1))
    expected = P / (left @ M[:core].T) @ M[:core]
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("relaxation", [1.0, 1.8])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_exact_moments_are_a_fixed_point(seed, diagonal, relaxation):
    truth, statistics = planted(seed, diagonal)
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 2e-6)):
        state = truth
        for _ in range(20):
            state = one_round(statistics, state, dtype, relaxation)
        np.testing.assert_allclose(state.topics, truth.topics, atol=tolerance)
        np.testing.assert_allclose(state.pair_weights, truth.pair_weights, atol=tolerance)


def core_likelihood(statistics, state):
    """Mean log probability of the pairs of core words."""
    P = statistics.pair_counts[:CORE]
    M = state.topics[:CORE]
    expected = M @ state.pair_weights @ M.T
    seen = P > 0
    return (P[seen] * np.log(expected[seen] / expected.sum())).sum() / P.sum()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), alpha0=st.sampled_from([0.0, 0.5, 5.0]))
def test_no_plain_round_makes_the_pairs_of_core_words_less_likely(seed, alpha0):
    rng = np.random.default_rng(seed)
    batch = lda_corpus(200, N_WORDS, K, mean_length=20, concentration=20, seed=seed).batch
    basis = Basis(np.ones((CORE, 1), dtype=np.int8), N_WORDS)
    statistics = MomentStatistics.of(batch, basis)
    M1 = statistics.word_counts / statistics.word_counts.sum()
    weights = rng.dirichlet(np.ones(K))
    topics = rng.dirichlet(np.ones(N_WORDS), size=K).T
    state = begun(PairTopics(topics, dirichlet_pair_weights(weights, alpha0), M1, CORE))
    likelihoods = [core_likelihood(statistics, state)]
    for _ in range(15):
        state = one_round(statistics, state)
        likelihoods.append(core_likelihood(statistics, state))
        np.testing.assert_allclose(state.topics.sum(axis=0), 1)
        np.testing.assert_array_equal(state.pair_weights, state.pair_weights.T)
        assert state.pair_weights.sum() == pytest.approx(1)
    assert (np.diff(likelihoods) > -1e-12).all()
    assert likelihoods[-1] > likelihoods[0]


def test_documents_of_one_topic_keep_a_diagonal():
    corpus = single_topic_corpus(2000, seed=1)
    basis = Basis.from_pilot(corpus.batch, max_topics=5)
    model = fit(MomentStatistics.of(corpus.batch, basis), 5, 0.0)
    assert model.refined == 10
    np.testing.assert_array_equal(model.pair_weights, np.diag(model.weights))
    assert model.implied_alpha0 == pytest.approx(0, abs=1e-9)


@pytest.fixture(scope="module")
def corpus():
    return lda_corpus(4000, n_words=400, n_topics=12, concentration=100, seed=0)


def gathered(corpus, blocks=1, **options):
    basis = Basis.from_pilot(corpus.batch.select(0, 1000), max_topics=12, core=300)
    rows = (RowBlock(index, blocks) for index in range(blocks))
    return InMemory([MomentStatistics.of(corpus.batch, basis, block, **options) for block in rows])


def test_refined_topics_err_less_and_know_alpha0(corpus):
    [statistics] = gathered(corpus).blocks
    before, after = (fit(statistics, 12, 1.0, refine=rounds) for rounds in (0, 10))
    # measured 0.0793 and 0.0726
    assert topic_error(after.topics, corpus.topics) < 0.95 * topic_error(
        before.topics, corpus.topics
    )
    assert (before.implied_alpha0, before.refined) == (None, 0)
    assert after.implied_alpha0 == pytest.approx(1.0, abs=0.2)
    assert (np.diff(after.weights) <= 0).all()
    np.testing.assert_allclose(after.pair_weights.sum(axis=1), after.weights)


def test_bits_are_the_same_however_the_rows_are_divided(corpus):
    start = fit(*gathered(corpus).blocks, 12, 1.0, refine=0)
    one, *others = (start.likelier(pair_rows(gathered(corpus, blocks)), 4) for blocks in (1, 3, 7))
    assert one.refined == 4
    for other in others:
        np.testing.assert_array_equal(other.topics, one.topics)
        np.testing.assert_array_equal(other.pair_weights, one.pair_weights)


def test_no_rounds_are_no_change(corpus):
    rows = gathered(corpus)
    model = TopicModel.fit(rows, TopicOptions(topics=12, alpha0=1.0, refine=0))
    np.testing.assert_array_equal(model.topics, fit_by(*rows.blocks, 12, 1.0, refine=0).topics)
    np.testing.assert_array_equal(
        model.pair_weights, dirichlet_pair_weights(model.weights, alpha0=1.0)
    )
    start = PairTopics(model.topics, model.pair_weights, model.word_probabilities, 300)
    assert refined(pair_rows(rows), start, 0) is start
    for wrong in (-1, 100_000):
        with pytest.raises(InvalidInput, match=f"refine is {wrong}; it must be 0 to 10,000"):
            fit(*rows.blocks, 12, refine=wrong)


def test_topics_that_stand_together_are_correlated():
    rng = np.random.default_rng(4)
    topics = lda_corpus(1, n_words=300, n_topics=4, concentration=60, seed=1).topics
    # a document mixes the first two topics, or the last two
    shares, first = rng.dirichlet([1.0, 1.0], size=6000), rng.random((6000, 1)) < 0.5
    thetas = np.hstack([first * shares, ~first * shares])
    batch = CountBatch.from_csr(rng.poisson(60 * thetas @ topics.T))
    basis = Basis.from_pilot(batch.select(0, 1000), max_topics=4)
    statistics = MomentStatistics.of(batch, basis)
    model = fit(statistics, 4, 1.0, refine=40)
    order = np.abs(model.topics[:, :, None] - topics[:, None, :]).sum(axis=0).argmin(axis=0)
    found = model.correlations[np.ix_(order, order)]
    same = np.kron(np.eye(2), np.ones((2, 2))) > np.eye(4)
    other = np.kron(1 - np.eye(2), np.ones((2, 2))) > 0
    # a Dirichlet has -1/3 for all pairs; measured -0.12 to -0.13, and -0.43 to -0.44
    assert found[same].min() > -0.2
    assert found[other].max() < -0.4
    # from the topics themselves it is nearly the truth, and nearer with every round
    start = PairTopics(
        topics, dirichlet_pair_weights(np.full(4, 0.25), 1.0), topics.mean(axis=1), 300
    )
    Omega = refined(pair_rows(InMemory((statistics,))), start, 40).pair_weights
    truth = np.corrcoef(thetas.T)
    np.testing.assert_allclose(correlations(Omega), truth, atol=0.15)
    np.testing.assert_allclose(correlations(thetas.T @ thetas / len(thetas)), truth)


def test_an_alpha0_that_no_dirichlet_has_is_not_told():
    assert implied_alpha0(np.array([[1.0]])) is None
    # both topics in the same shares in every document
    assert implied_alpha0(np.full((2, 2), 0.25)) is None


def test_a_refined_model_is_made_again_of_its_parts(corpus):
    model = fit(*gathered(corpus).blocks, 12, 1.0, refine=2)
    arrays, attributes = model.parts()
    again = TopicModel.from_parts(arrays, attributes)
    np.testing.assert_array_equal(again.pair_weights, model.pair_weights)
    assert again.refined == 2
    del arrays["pair_weights"]
    with pytest.raises(InvalidInput, match="lacks pair_weights; refit it"):
        TopicModel.from_parts(arrays, attributes)


def test_a_word_that_came_later_is_refined_by_the_documents_that_count_it():
    truth, statistics = planted(seed=5)
    # all documents hold the last words, but only a quarter of them was counted with these
    first, quarter = N_WORDS - 3, statistics.length_histogram
    part = np.where(np.arange(N_WORDS) < first, 1.0, 0.25)
    less = replace(quarter, **{name: getattr(quarter, name) / 4 for name in ("C1", "C2", "C3")})
    held = replace(
        statistics,
        pair_counts=statistics.pair_counts * part[:, None],
        word_counts=statistics.word_counts * part,
        later=((first, less),),
    )
    found = one_round(held, truth)
    np.testing.assert_allclose(found.topics, truth.topics, atol=1e-8)
    # words that no document counts are in no topic
    none = replace(quarter, C1=0.0, C2=0.0, C3=0.0)
    part[first:] = 0
    held = replace(
        held,
        pair_counts=statistics.pair_counts * part[:, None],
        word_counts=statistics.word_counts * part,
        later=((first, none),),
    )
    found = one_round(held, truth)
    assert (found.topics[first:] == 0).all()
    inside = truth.topics[:first] / truth.topics[:first].sum(axis=0)
    np.testing.assert_allclose(found.topics[:first], inside, atol=1e-8)


def test_the_last_two_rounds_are_plain(corpus, monkeypatch):
    powers = []

    def seen(parts, state, relaxation):
        powers.append(relaxation)
        return next_topics(parts, state, relaxation)

    monkeypatch.setattr(refinement, "next_topics", seen)
    state, statistics = planted(0)
    for rounds in (1, 2, 5):
        powers.clear()
        refined(pair_rows(InMemory((statistics,))), state, rounds)
        assert powers == [1.8] * max(rounds - 2, 0) + [1.0] * min(rounds, 2)


def test_a_topic_that_is_like_one_that_repeats_is_no_repetition_of_it():
    """The second is like the first, the third like the second alone."""
    apart = np.array([[1.0, 0.0], [0.8, 0.6], [0.2, 1.0]]).T
    directions = np.array([[1, -1, 0, 0], [0, 0, 1, -1.0]]).T
    model = TopicModel.from_topics(0.25 + 0.2 * directions @ apart, np.full(3, 1 / 3))
    flat = replace(model, word_probabilities=np.full(4, 0.25))
    assert repeated_topics(flat) == (1,)
    # beside the second alone the third repeats it
    assert repeated_topics(replace(flat, topics=flat.topics[:, 1:])) == (1,)
    # and what is like the first alone repeats that
    unlike = replace(flat, topics=flat.topics[:, [0, 2, 1]])
    assert repeated_topics(replace(unlike, topics=unlike.topics[:, [0, 1, 0]])) == (2,)
