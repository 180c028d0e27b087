"""Recovery: exact from exact moments, and like 1/sqrt(N) from documents."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments import Basis, LengthHistogram, MomentStatistics, RowBlock, fit, svtd
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.rows import InMemory
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus, topic_error
from streaming_moments.testing.exact_statistics import raw_sketch
from streaming_moments.testing.recovery import check_rate, matched

N_WORDS, CORE = 8, 6
DENOMINATOR = 16
# k = 3 topics with common denominator 16; the last two words lie outside the core
TOPICS = np.array(
    [[6, 0, 1], [4, 1, 0], [2, 6, 1], [1, 5, 1], [0, 1, 7], [1, 1, 4], [2, 0, 1], [0, 2, 1]]
)


def ideal_statistics(alpha, columns=4):
    """Integer statistics whose moments are exactly those of the model, as of 3-word documents.

    `alpha` are whole Dirichlet parameters; None is the single-topic model with weights 4:3:1.
    """
    if alpha is None:
        weights = np.array([4, 3, 1])
        scale = 8
        second = np.diag(weights)
        third = np.zeros((3, 3, 3), dtype=np.int64)
        third[range(3), range(3), range(3)] = weights
    else:
        a = np.array(alpha)
        a0 = int(a.sum())
        eye = np.eye(3, dtype=np.int64)
        scale = a0 * (a0 + 1) * (a0 + 2)
        weights = a * (a0 + 1) * (a0 + 2)
        second = (np.outer(a, a) + np.diag(a)) * (a0 + 2)
        third = np.einsum("i,j,k->ijk", a, a, a)
        third = third + np.einsum("ij,i,k->ijk", eye, a, a) + np.einsum("ik,i,j->ijk", eye, a, a)
        third = third + np.einsum("jk,j,i->ijk", eye, a, a)
        third = third + 2 * np.einsum("ij,jk,i->ijk", eye, eye, a)
    documents = scale * DENOMINATOR**3
    word_counts = 3 * DENOMINATOR**2 * TOPICS @ weights
    pairs = 6 * DENOMINATOR * TOPICS @ second @ TOPICS.T
    triples = 6 * np.einsum("ia,jb,kc,abc->ijk", TOPICS, TOPICS, TOPICS, third)
    assert word_counts.sum() == 3 * documents
    assert pairs.sum() == triples.sum() == 6 * documents
    rng = np.random.default_rng(3)
    Q = rng.integers(-127, 128, size=(CORE, columns)).astype(np.int8)
    return MomentStatistics(
        Basis(Q, N_WORDS),
        RowBlock(),
        LengthHistogram(np.array([3]), np.array([documents])),
        word_counts,
        np.full(N_WORDS, documents),
        np.ascontiguousarray(pairs[:, :CORE]),
        raw_sketch(triples, pairs, word_counts, Q.astype(np.int64)),
        None,
    )


@pytest.mark.parametrize("rotation", ["joint", "feature"])
@pytest.mark.parametrize("alpha", [None, (2, 1, 1), (3, 2, 1)])
def test_exact_statistics_give_the_exact_model(alpha, rotation):
    weights = np.array([4, 3, 1]) / 8 if alpha is None else np.array(alpha) / sum(alpha)
    alpha0 = 0.0 if alpha is None else float(sum(alpha))
    model = fit(ideal_statistics(alpha), 3, alpha0, rotation, refine=0)
    truth = TOPICS / DENOMINATOR
    order = matched(model.topics, truth)
    np.testing.assert_allclose(model.topics, truth[:, order], atol=1e-8)
    np.testing.assert_allclose(model.raw_topics, truth[:, order], atol=1e-8)
    np.testing.assert_allclose(model.weights, weights[order], atol=1e-8)
    np.testing.assert_allclose(model.alpha, alpha0 * weights[order], atol=1e-7)
    assert model.captured <= 1 + 1e-9


@pytest.mark.parametrize("rotation", ["joint", "feature"])
@pytest.mark.parametrize("seed", range(5))
def test_svtd_recovers_any_latent_variable_model_from_exact_moments(rotation, seed):
    rng = np.random.default_rng(seed)
    M, w = rng.standard_normal((12, 4)), rng.dirichlet(np.full(4, 5.0))
    M *= np.sign(M.sum(axis=0))  # the canonical sign of columns that are no distributions
    M3 = np.einsum("ij,kj,lj,j->ikl", M, M, M, w)
    found = svtd(M @ w, (M * w) @ M.T, M3, 4, rotation)
    assert np.abs(found.raw - M[:, matched(found.raw, M)]).max() < 1e-8


def test_svtd_topics_and_weights_are_those_of_the_mixture():
    rng = np.random.default_rng(0)
    M, w = rng.dirichlet(np.ones(10), size=3).T, np.array([0.5, 0.3, 0.2])
    found = svtd(M @ w, (M * w) @ M.T, np.einsum("ij,kj,lj,j->ikl", M, M, M, w), 3)
    np.testing.assert_allclose(found.topics, M, atol=1e-8)
    np.testing.assert_allclose(found.weights, w, atol=1e-8)


def test_too_many_topics_say_how_many_there_are():
    statistics = ideal_statistics(None)
    with pytest.raises(
        NotIdentifiable, match="4 topics are asked for, .* has 3 positive eigenvalues"
    ):
        fit(statistics, 4)
    with pytest.raises(
        NotIdentifiable, match="5 topics are asked for, but the basis has 4 columns"
    ):
        fit(statistics, 5)
    # a basis has no more columns than core words
    larger = "raise the limit by a larger max_topics of Basis.from_pilot and core"
    with pytest.raises(NotIdentifiable, match=larger):
        fit(statistics, 5000)
    with pytest.raises(InvalidInput, match="0 topics"):
        fit(statistics, 0)
    with pytest.raises(InvalidInput, match="alpha0 is -1"):
        fit(statistics, 2, alpha0=-1)
    with pytest.raises(InvalidInput, match='rotation is "jacobi"'):
        fit(statistics, 2, rotation="jacobi")
    with pytest.raises(NotIdentifiable, match="3 latent states"):
        svtd(np.ones(3) / 3, np.ones((3, 3)), np.ones((3, 3, 3)), 3)


def planted_error(documents, rotation="joint", k=6, refine=ROUNDS):
    """Mean topic error over three planted LDA corpora."""
    errors = []
    for seed in range(3):
        corpus = lda_corpus(
            documents, n_words=400, n_topics=k, mean_length=80, concentration=100, seed=seed
        )
        basis = Basis.from_pilot(corpus.batch.select(0, 1000), max_topics=k)
        statistics = MomentStatistics.of(corpus.batch, basis, codocuments=False)
        model = fit(statistics, k, 1.0, rotation, refine)
        errors.append(topic_error(model.topics, corpus.topics))
    return float(np.mean(errors))


def test_error_on_planted_topics_falls_like_one_over_sqrt_documents():
    # measured 0.080, 0.041, 0.021; the bounds leave a quarter
    check_rate(planted_error, (2000, 8000, 32_000), (0.100, 0.051, 0.026))


def weighted_errors(spread, seed):
    """Topic errors of one planted corpus, by length weights."""
    corpus = lda_corpus(
        3000, n_words=400, n_topics=6, mean_length=80, concentration=100, seed=seed, spread=spread
    )
    found = {}
    for weights in ("even", "pooled"):
        basis = Basis.from_pilot(corpus.batch, max_topics=6, length_weights=weights)
        statistics = MomentStatistics.of(corpus.batch, basis, codocuments=False)
        found[weights] = topic_error(fit(statistics, 6, 1.0).topics, corpus.topics)
    return found


@pytest.mark.parametrize(("spread", "bound"), [(1.0, 0.11), (1.5, 0.13)])
def test_even_weights_halve_the_error_where_lengths_differ(spread, bound):
    errors = [weighted_errors(spread, seed) for seed in range(3)]
    even, pooled = (np.mean([one[name] for one in errors]) for name in ("even", "pooled"))
    assert even < 0.5 * pooled, errors
    assert even < bound, errors


def test_even_weights_err_no_more_where_lengths_hardly_differ():
    errors = [weighted_errors(0.0, seed) for seed in range(3)]
    even, pooled = (np.mean([one[name] for one in errors]) for name in ("even", "pooled"))
    assert even < 1.005 * pooled, errors


@pytest.mark.parametrize("alpha", [None, (2, 1, 1)])
def test_the_mean_with_second_moment_rows_is_exact_as_well(alpha):
    held, alpha0 = ideal_statistics(alpha), 0.0 if alpha is None else 4.0
    options = TopicOptions(topics=3, alpha0=alpha0, rows="mean", refine=0)
    model = TopicModel.fit(InMemory((held,)), options)
    np.testing.assert_allclose(model.topics, fit(held, 3, alpha0, refine=0).topics, atol=1e-8)


def test_the_mean_with_second_moment_rows_errs_less_on_planted_topics():
    gains, options = [], TopicOptions(topics=12, alpha0=1.0, refine=0)
    for seed in range(3):
        corpus = lda_corpus(4000, n_words=400, n_topics=12, concentration=100, seed=seed)
        basis = Basis.from_pilot(corpus.batch.select(0, 1000), max_topics=12)
        held = InMemory((MomentStatistics.of(corpus.batch, basis, codocuments=False),))
        third, mean = (
            topic_error(
                TopicModel.fit(held, replace(options, rows=rows)).topics,
                corpus.topics,
            )
            for rows in ("third", "mean")
        )
        gains.append(mean / third)
    assert max(gains) < 1, gains


def test_joint_diagonalisation_beats_the_feature_rule():
    joint, feature = (planted_error(4000, name, k=16, refine=0) for name in ("joint", "feature"))
    # measured 0.106 and 0.277
    assert joint < 0.6 * feature


def test_single_topic_documents_are_assigned_to_their_topics():
    corpus = single_topic_corpus(3000, seed=2)
    basis = Basis.from_pilot(corpus.batch, max_topics=5)
    model = fit(MomentStatistics.of(corpus.batch, basis), 5)
    assert topic_error(model.topics, corpus.topics) < 0.15
    cost = np.abs(model.topics[:, :, None] - corpus.topics[:, None, :]).sum(axis=0)
    truth = corpus.proportions.argmax(axis=1)
    right = cost.argmin(axis=1)[model.assign(corpus.batch)] == truth
    assert right.mean() > 0.95


def test_the_same_statistics_give_the_same_model():
    statistics = ideal_statistics((2, 1, 1))
    one, two = (fit(statistics, 3, 4.0) for _ in range(2))
    assert np.array_equal(one.topics, two.topics)
    assert (np.diff(one.weights) <= 1e-9).all()
