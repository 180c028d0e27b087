"""Every decomposition recovers the model from its exact moments, and says when it cannot."""

import numpy as np
import pytest

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock, fit, fit_by
from streaming_moments.decompositions.evidence import GapEvidence
from streaming_moments.decompositions.forms import Mixture, form_of
from streaming_moments.decompositions.least_squares import by_alternating_least_squares
from streaming_moments.decompositions.methods import METHODS, decompose
from streaming_moments.decompositions.moments import Moments, dirichlet_moments
from streaming_moments.decompositions.one_direction import by_eigenvectors
from streaming_moments.decompositions.power_method import by_power_method
from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.decompositions.svtd import recover, svtd
from streaming_moments.decompositions.whitened import WhitenedMoments, whiten_moments
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.rows import added
from streaming_moments.models.sweeps import slice_evidence, solve, topic_rows, whiten_rows
from streaming_moments.numerics.packing import unpack
from streaming_moments.statistics.counts.estimators import pooled_moments, three_word_moments
from streaming_moments.statistics.counts.slices import rotated_diagonals, whitened_slices
from streaming_moments.statistics.counts.tensor import unwhitened_rows, whitened_tensor
from streaming_moments.statistics.counts.whitening import CoreMoments, core_rows, whiten
from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus, topic_error

# k = 3 topics over 5 words with common denominator 6; the last word lies outside the core
NUMERATORS = np.array([[3, 0, 1], [2, 1, 0], [1, 3, 0], [0, 2, 2], [0, 0, 3]])
TOPICS, CORE = NUMERATORS / 6, 4


def dirichlet_cubes(alpha):
    """`a0 (a0+1) (a0+2) E[theta (x) theta (x) theta]`, whole numbers for whole alpha."""
    a, eye = np.asarray(alpha), np.eye(len(alpha), dtype=np.asarray(alpha).dtype)
    cubes = np.einsum("i,j,k->ijk", a, a, a) + 2 * np.einsum("ij,jk,i->ijk", eye, eye, a)
    for places in ("ij,i,k->ijk", "ik,i,j->ijk", "jk,j,i->ijk"):
        cubes = cubes + np.einsum(places, eye, a, a)
    return cubes


def lda_moments(topics, alpha):
    """Exact moments of the words of LDA documents."""
    a0 = alpha.sum()
    pairs = (np.outer(alpha, alpha) + np.diag(alpha)) / (a0 * (a0 + 1))
    cubes = dirichlet_cubes(alpha) / (a0 * (a0 + 1) * (a0 + 2))
    third = np.einsum("ia,jb,kc,abc->ijk", topics, topics, topics, cubes, optimize=True)
    return Moments(topics @ alpha / a0, topics @ pairs @ topics.T, third)


def all_triples(alpha):
    """Every document of three words, as often as the model draws it: its moments are exact.

    `alpha` None is the single-topic model with weights 3:2:1.
    """
    if alpha is None:
        cubes = np.zeros((3, 3, 3), dtype=np.int64)
        cubes[range(3), range(3), range(3)] = [3, 2, 1]
    else:
        cubes = dirichlet_cubes(alpha)
    times = np.einsum("ia,jb,kc,abc->ijk", NUMERATORS, NUMERATORS, NUMERATORS, cubes)
    words = np.repeat(np.argwhere(times >= 0), times.ravel(), axis=0)
    documents = np.repeat(np.arange(len(words)), 3)
    return CountBatch.from_entries(documents, words.ravel(), None, (len(words), len(TOPICS)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_exact_moments_of_a_mixture_give_its_topics(method, seed):
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.ones(30), size=7).T, rng.dirichlet(np.full(7, 3.0))
    topics, weights = topics[:, np.argsort(-weights)], np.sort(weights)[::-1]
    found = decompose(Moments.of_mixture(topics, weights), 7, method, seed)
    np.testing.assert_allclose(found.topics, topics, atol=1e-8)
    np.testing.assert_allclose(found.raw, topics, atol=1e-8)
    np.testing.assert_allclose(found.weights, weights, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha0", [0.3, 2.0, 9.0])
def test_exact_moments_of_lda_give_its_topics(method, alpha0):
    rng = np.random.default_rng(int(10 * alpha0))
    topics, weights = rng.dirichlet(np.ones(20), size=5).T, rng.dirichlet(np.full(5, 5.0))
    topics, weights = topics[:, np.argsort(-weights)], np.sort(weights)[::-1]
    moments = lda_moments(topics, alpha0 * weights)
    found = decompose(dirichlet_moments(moments, alpha0), 5, method, 1)
    np.testing.assert_allclose(found.topics, topics, atol=1e-6)
    np.testing.assert_allclose(found.weights, weights, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_columns_of_other_latent_variable_models_need_not_be_distributions(method):
    rng = np.random.default_rng(2)
    columns, weights = rng.standard_normal((9, 4)), np.array([0.4, 0.3, 0.2, 0.1])
    columns *= np.sign(columns.sum(axis=0))
    found = decompose(Moments.of_mixture(columns, weights), 4, method)
    np.testing.assert_allclose(found.raw, columns, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha", [None, (2, 1, 1), (3, 2, 1)])
def test_statistics_of_all_documents_give_the_exact_model(method, alpha):
    batch = all_triples(alpha)
    matrix = np.random.default_rng(1).integers(-127, 128, size=(CORE, 4)).astype(np.int8)
    statistics = MomentStatistics.of(batch, Basis(matrix, len(TOPICS)))
    weights = np.array([3, 2, 1] if alpha is None else alpha) / sum(alpha or (3, 2, 1))
    alpha0 = 0.0 if alpha is None else float(sum(alpha))
    model = fit_by(statistics, 3, alpha0, method, seed=2, refine=0)
    order = np.abs(model.topics[:, :, None] - TOPICS[:, None, :]).sum(axis=0).argmin(axis=1)
    assert sorted(order.tolist()) == [0, 1, 2]
    np.testing.assert_allclose(model.topics, TOPICS[:, order], atol=1e-8)
    np.testing.assert_allclose(model.weights, weights[order], atol=1e-8)
    assert model.method == method


@pytest.fixture(scope="module")
def counted():
    corpus = single_topic_corpus(300, n_words=14, n_topics=3, lengths=(1, 12), seed=3)
    matrix = np.random.default_rng(0).integers(-127, 128, size=(10, 5)).astype(np.int8)
    return corpus.batch, MomentStatistics.of(corpus.batch, Basis(matrix, 14))


@pytest.mark.parametrize("alpha0", [0.0, 0.1])
def test_the_stored_sketch_holds_the_whitened_tensor(counted, alpha0):
    batch, statistics = counted
    core = CoreMoments(
        statistics.pair_counts[:10], statistics.word_counts[:10], statistics.length_histogram
    )
    whitening = whiten(core, statistics.basis, 3, form_of(alpha0))
    moments = dirichlet_moments(pooled_moments(batch), alpha0)
    W = np.zeros((14, 3))
    W[:10] = whitening.vectors
    expected = np.einsum("ijk,ia,jb,kc->abc", moments.M3, W, W, W)
    tolerance = 1e-11 * np.abs(expected).max()
    np.testing.assert_allclose(whitened_tensor(statistics, whitening), expected, atol=tolerance)
    np.testing.assert_allclose(unwhitened_rows(statistics, whitening), moments.M2 @ W, atol=1e-13)

    blocks = [RowBlock(index, 3) for index in range(3)]
    parts = [MomentStatistics.of(batch, statistics.basis, block) for block in blocks]
    added = sum(whitened_tensor(part, whitening) for part in parts)
    np.testing.assert_allclose(added, expected, atol=tolerance)
    for block, part in zip(blocks, parts, strict=True):
        rows = unwhitened_rows(part, whitening)
        np.testing.assert_allclose(rows, (moments.M2 @ W)[block.rows], atol=1e-13)


def test_errors_on_planted_topics_are_those_measured():
    # measured: joint, power and als 0.087, feature 0.135, svd 0.155, eigen 0.235
    corpus = lda_corpus(3000, 300, 10, mean_length=80, concentration=100, seed=0)
    basis = Basis.from_pilot(corpus.batch.select(0, 1000), max_topics=10)
    statistics = MomentStatistics.of(corpus.batch, basis, codocuments=False)
    errors = {
        method: topic_error(fit_by(statistics, 10, 1.0, method, refine=0).topics, corpus.topics)
        for method in METHODS
    }
    assert errors["joint"] < 0.11
    # power and least squares use all of the tensor, the others one direction or one slice
    assert max(errors["power"], errors["als"]) < 1.2 * errors["joint"]
    assert max(errors.values()) < 0.25


def test_k_sums_of_the_slices_turn_like_all_of_them():
    corpus = lda_corpus(2000, 300, 10, mean_length=60, concentration=100, seed=2)
    basis = Basis.from_pilot(corpus.batch, max_topics=10)
    statistics = MomentStatistics.of(corpus.batch, basis, codocuments=False)
    core = CoreMoments(statistics.pair_counts, statistics.word_counts, statistics.length_histogram)
    whitening = whiten(core, basis, 10, form_of(1.0))
    slices = unpack(np.concatenate(list(whitened_slices(statistics, whitening))), 10)
    rows = rotated_diagonals(statistics, whitening, by_joint_diagonalization(slices))
    by_all = recover(rows, np.ones(10)).topics
    found = fit_by(statistics, 10, 1.0, "joint", refine=0).topics
    error = topic_error(found, corpus.topics)
    assert topic_error(found, by_all) < 0.1 * error  # measured: 0.03
    assert error == pytest.approx(topic_error(by_all, corpus.topics), rel=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_moments_and_seed_give_the_same_bits(method):
    corpus = single_topic_corpus(400, n_words=20, n_topics=3, seed=1)
    moments = pooled_moments(corpus.batch)
    one, two, other = (decompose(moments, 3, method, seed) for seed in (5, 5, 6))
    assert np.array_equal(one.topics, two.topics)
    assert np.array_equal(one.weights, two.weights)
    assert (np.diff(one.weights) <= 1e-9).all()
    # one direction decides in these two; the others reach the same components from any start
    assert np.allclose(one.topics, other.topics, atol=1e-6) == (method not in ("svd", "eigen"))


@pytest.mark.parametrize("method", METHODS)
def test_too_many_states_say_how_many_there_are(method):
    rng = np.random.default_rng(0)
    moments = Moments.of_mixture(rng.dirichlet(np.ones(8), size=3).T, np.array([0.5, 0.3, 0.2]))
    with pytest.raises(
        NotIdentifiable, match="4 latent states are asked for, but M2 has 3 positive"
    ):
        decompose(moments, 4, method)
    with pytest.raises(InvalidInput, match="0 topics are asked for"):
        decompose(moments, 0, method)
    mixed = Moments(np.ones(3) / 3, np.diag([3.0, 2.0, -1.0]), np.zeros((3, 3, 3)))
    with pytest.raises(
        NotIdentifiable, match="3 latent states are asked for, but M2 has 2 positive"
    ):
        decompose(mixed, 3, method)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("power", "found 0 of 2 components"),
        ("svd", "Excess Correlation Analysis cannot separate"),
        ("eigen", "the eigenvector method cannot separate"),
        ("als", "put two of 2 components in one direction"),
        ("joint", "2 of 2 topics have no positive entry"),
    ],
)
def test_a_third_moment_without_anything_in_it_is_refused(method, message):
    nothing = Moments(np.ones(3) / 3, np.diag([3.0, 2.0, 1.0]), np.zeros((3, 3, 3)))
    with pytest.raises(NotIdentifiable, match=message):
        decompose(nothing, 2, method)


def test_the_power_method_says_how_many_components_there_are():
    v = np.array([0.6, 0.8, 0.0])
    tensor = 2 * np.einsum("i,j,k->ijk", v, v, v)
    with pytest.raises(NotIdentifiable, match="found 1 of 3 components"):
        by_power_method(WhitenedMoments(tensor, np.eye(3), np.ones(3)), np.random.default_rng(0))


def test_complex_eigenvalues_are_named_with_the_remedy():
    batch = single_topic_corpus(60, n_words=6, n_topics=3, seed=4).batch
    # three words of each document in their order: symmetric in the mean only
    moments = three_word_moments(batch, seed=3)
    with pytest.raises(NotIdentifiable, match=r"2 of 3 eigenvalues are complex \(.*j.*symmetrise"):
        decompose(moments, 3, "eigen", seed=1)
    assert decompose(moments.symmetrized(), 3, "eigen", seed=1).topics.shape == (6, 3)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "eigen"])
def test_moments_of_ordered_words_are_symmetrized_first(method):
    moments = three_word_moments(single_topic_corpus(800, 6, 2, seed=4).batch, seed=3)
    assert not np.array_equal(moments.M3, moments.M3.transpose(1, 0, 2))
    found, even = (decompose(m, 2, method).topics for m in (moments, moments.symmetrized()))
    np.testing.assert_allclose(found, even, atol=1e-10)


def test_eigenvectors_are_the_columns_of_the_first_of_three_views():
    rng = np.random.default_rng(3)
    first, second, third = rng.standard_normal((3, 4, 4))
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    views = WhitenedMoments(
        np.einsum("aj,bj,cj,j->abc", first, second, third, weights),
        (first * weights) @ second.T,
        np.array([4.0, 3.0, 2.0, 1.0]),
    )
    found = by_eigenvectors(views, np.random.default_rng(0)).vectors
    cosines = np.abs(found.T @ (first / np.linalg.norm(first, axis=0)))
    np.testing.assert_allclose(np.sort(cosines, axis=1)[:, -1], 1.0, atol=1e-10)
    assert sorted(cosines.argmax(axis=1).tolist()) == [0, 1, 2, 3]


def test_eigenvectors_of_ordered_words_come_near_the_topics():
    corpus = single_topic_corpus(30_000, n_words=8, n_topics=3, lengths=(3, 9), seed=6)
    moments = three_word_moments(corpus.batch, seed=0)
    assert topic_error(decompose(moments, 3, "eigen", seed=1).topics, corpus.topics) < 0.2


def test_least_squares_with_orthogonal_sweeps_find_components_that_plain_ones_miss():
    rng = np.random.default_rng(0)
    topics, weights = rng.dirichlet(np.ones(40), size=12).T, rng.dirichlet(np.full(12, 2.0))
    whitened, _ = whiten_moments(Moments.of_mixture(topics, weights), 12)
    found = by_alternating_least_squares(whitened, np.random.default_rng(1), restarts=3)
    np.testing.assert_allclose(np.sort(found.values), np.sort(weights**-0.5), rtol=1e-8)
    v = found.vectors
    again = np.einsum("aj,bj,cj,j->abc", v, v, v, found.values, optimize=True)
    np.testing.assert_allclose(again, whitened.tensor, atol=1e-8)
    with pytest.raises(NotIdentifiable, match="put two of 12 components in one direction"):
        by_alternating_least_squares(
            whitened, np.random.default_rng(1), restarts=3, orthogonal_sweeps=0
        )


@pytest.mark.parametrize("seed", range(6))
def test_components_of_plain_least_squares_have_the_sign_of_the_tensor(seed):
    weights = np.array([0.5, 0.3, 0.2])
    columns = np.random.default_rng(seed).standard_normal((5, 3))
    whitened, _ = whiten_moments(Moments.of_mixture(columns, weights), 3)
    rng = np.random.default_rng(seed)
    found = by_alternating_least_squares(whitened, rng, orthogonal_sweeps=0)
    v = found.vectors
    again = np.einsum("aj,bj,cj,j->abc", v, v, v, found.values)
    np.testing.assert_allclose(again, whitened.tensor, atol=1e-8)


def test_least_squares_explain_as_much_as_tensorly():
    from tensorly.decomposition import parafac

    corpus = lda_corpus(3000, 300, 6, mean_length=80, concentration=100, seed=1)
    basis = Basis.from_pilot(corpus.batch, max_topics=6)
    statistics = MomentStatistics.of(corpus.batch, basis, codocuments=False)
    core = CoreMoments(statistics.pair_counts, statistics.word_counts, statistics.length_histogram)
    tensor = whitened_tensor(statistics, whiten(core, basis, 6, form_of(1.0)))
    whitened = WhitenedMoments(tensor, np.eye(6), np.ones(6)).symmetrized()
    found = by_alternating_least_squares(whitened, np.random.default_rng(0))
    theirs = parafac(whitened.tensor, 6, init="svd", n_iter_max=2000, tol=1e-12, random_state=0)
    v = found.vectors
    ours = np.einsum("aj,bj,cj,j->abc", v, v, v, found.values)
    residuals = [np.linalg.norm(whitened.tensor - fit) for fit in (ours, theirs.to_tensor())]
    assert residuals[0] < 1.01 * residuals[1]


def test_names_seeds_shapes_and_numbers_are_checked():
    moments = Moments.of_mixture(np.eye(3), np.array([0.5, 0.3, 0.2]))
    with pytest.raises(InvalidInput, match='method is "jacobi"; choose joint, feature, power'):
        decompose(moments, 2, "jacobi")
    with pytest.raises(InvalidInput, match="the seed is -1"):
        decompose(moments, 2, "power", seed=-1)
    with pytest.raises(InvalidInput, match=r"shapes \(3,\), \(3, 3\), \(3, 3\)"):
        Moments(moments.M1, moments.M2, moments.M2)
    with pytest.raises(InvalidInput, match="M2 holds 9 numbers that are not finite"):
        Moments(moments.M1, np.full((3, 3), np.nan), moments.M3)
    with pytest.raises(InvalidInput, match="M3 is not an array of real numbers"):
        Moments(moments.M1, moments.M2, [[1.0], [2.0, 3.0]])
    with pytest.raises(InvalidInput, match="moments is of type tuple; decompose takes Moments"):
        decompose((moments.M1, moments.M2, moments.M3), 2)
    with pytest.raises(TypeError, match="svtd has no argument n_components; give k"):
        svtd(moments.M1, moments.M2, moments.M3, n_components=2)
    with pytest.raises(InvalidInput, match="alpha0 is -1"):
        dirichlet_moments(moments, -1.0)
    whitened, _ = whiten_moments(moments, 2)
    for method in (by_power_method, by_alternating_least_squares):
        with pytest.raises(InvalidInput, match="restarts is 0"):
            method(whitened, np.random.default_rng(0), 0)


def test_lists_of_numbers_are_decomposed_as_their_arrays():
    moments = Moments.of_mixture(np.eye(3), np.array([0.5, 0.3, 0.2]))
    lists = moments.M1.tolist(), moments.M2.tolist(), moments.M3.tolist()
    assert np.array_equal(svtd(*lists, 3).raw, svtd(moments.M1, moments.M2, moments.M3, 3).raw)
    assert np.array_equal(Moments(*lists).M3, moments.M3)


@pytest.mark.parametrize("method", ["joint", "feature"])
def test_by_name_or_by_rotation_svtd_gives_the_same_bits(counted, method):
    _, statistics = counted
    one, two = fit_by(statistics, 3, 0.1, method), fit(statistics, 3, 0.1, method)
    assert np.array_equal(one.topics, two.topics)
    assert np.array_equal(one.weights, two.weights)


def whiten_all(statistics, k, form=Mixture()):
    """As the fit whitens."""
    lengths = statistics.length_histogram
    return whiten_rows([core_rows(statistics)], lengths, statistics.basis, k, form)


@pytest.mark.parametrize("method", METHODS)
def test_evidence_of_blocks_adds_up_to_that_of_all_rows(counted, method):
    batch, statistics = counted
    whitening = whiten_all(statistics, 3)
    expected = solve(slice_evidence(statistics, whitening, method), whitening, seed=1)
    blocks = [RowBlock(index, 3) for index in range(3)]
    parts = [MomentStatistics.of(batch, statistics.basis, block) for block in blocks]
    total = added(slice_evidence(part, whitening, method) for part in parts)
    found = solve(total, whitening, seed=1)
    whole, _ = topic_rows(statistics, whitening, expected)
    for block, part in zip(blocks, parts, strict=True):
        rows, counts = topic_rows(part, whitening, found)
        assert np.array_equal(counts, statistics.word_counts[block.rows])
        np.testing.assert_allclose(np.abs(rows), np.abs(whole[block.rows]), atol=1e-9)


@pytest.mark.parametrize("alpha0", [0.0, 0.4])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "feature"])
def test_evidence_for_fewer_topics_is_a_part_of_that_for_more(counted, method, alpha0):
    _, statistics = counted
    more, fewer = (whiten_all(statistics, k, form_of(alpha0)) for k in (3, 2))
    np.testing.assert_allclose(more.leading(2).vectors, fewer.vectors)
    np.testing.assert_allclose(more.leading(2).second, fewer.second, atol=1e-12)
    assert more.leading(2).captured == pytest.approx(fewer.captured)
    part = slice_evidence(statistics, more, method).leading(2)
    expected = slice_evidence(statistics, fewer, method)
    (found, _), (wanted, _) = (
        topic_rows(statistics, fewer, solve(evidence, fewer, seed=1))
        for evidence in (part, expected)
    )
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=1e-9)


def test_the_feature_rule_chooses_its_slice_for_one_number_of_topics():
    with pytest.raises(InvalidInput, match="chosen for 3 topics.*; gather the evidence for 2"):
        GapEvidence.of("feature", 3, []).leading(2)


def test_evidence_of_two_methods_does_not_add_up(counted):
    _, statistics = counted
    whitening = whiten_all(statistics, 2)
    joint, power = (slice_evidence(statistics, whitening, name) for name in ("joint", "power"))
    with pytest.raises(InvalidInput, match='evidence for "joint" and "power" cannot be added'):
        joint + power


def test_a_part_of_the_rows_is_refused(counted):
    batch, statistics = counted
    part = MomentStatistics.of(batch, statistics.basis, RowBlock(0, 2))
    with pytest.raises(InvalidInput, match="row block 0 of 2; merge all blocks"):
        fit_by(part, 2, method="power")
