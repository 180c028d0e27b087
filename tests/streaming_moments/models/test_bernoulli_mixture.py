"""Mixtures of Bernoullis: exact from exact moments, found again in planted rows, and polished."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.bernoullis.acceleration import accelerated
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.bernoullis.distinct import SetMoments, components_of
from streaming_moments.models.bernoullis.passes import ExpectedSets, SetReader, improved
from streaming_moments.models.passes.in_memory import polished
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch, concatenate
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.statistics.views.sketches import sketch_of
from streaming_moments.synthetic.sets import feature_sets, probability_error
from streaming_moments.testing.laws import check_laws
from streaming_moments.testing.recovery import check_rate


def foundation_of(batch, columns=None, halves=True, core=None):
    n = batch.n_words
    features = Vocabulary(tuple(f"f{place}" for place in range(n)), core or n)
    rows = batch.to_csr()[:5000]
    basis = sketch_of((rows.T @ rows).tocsr(), features, columns)
    return SetsFoundation(features, basis, halves)


def named(batch, foundation):
    return replace(batch, vocabulary=foundation.features.fingerprint)


def statistics_of(batch, **how):
    foundation = foundation_of(batch, **how)
    return foundation.of_sets(named(batch, foundation))


def fitted(statistics, k):
    return BernoulliMixture.fit(InMemory((statistics,)), BernoulliMixture.Options(topics=k))


def likeliest_from(batch, probabilities, weights, steps=30):
    """Expectation maximisation, plainly."""
    X = batch.to_csr()
    for _ in range(steps):
        P = np.clip(probabilities, 1e-9, 1 - 1e-9)
        logs = np.log(weights) + np.log1p(-P).sum(axis=0) + X @ (np.log(P) - np.log1p(-P))
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        probabilities, weights = (X.T @ shares) / shares.sum(axis=0), shares.mean(axis=0)
    return probabilities


# Features, components, mean: all pairs and triples kept, a sketch, and a sketch of a core alone.
CASES = {
    "few features": (20_000, 12, 3, 0.3, {}),
    "all triples": (5_000, 60, 5, 0.2, {}),
    "a sketch": (10_000, 200, 8, 0.1, {"columns": 20}),
    "a core": (10_000, 200, 8, 0.1, {"columns": 20, "core": 150}),
}


@pytest.mark.parametrize("case", CASES)
def test_two_passes_err_as_expectation_maximisation_from_the_truth(case):
    rows, n, k, mean, how = CASES[case]
    for seed in (1, 2, 3):
        drawn = feature_sets(rows, n, k, mean, seed)
        model = fitted(statistics_of(drawn.batch, **how), k)
        best = likeliest_from(drawn.batch, drawn.probabilities, drawn.weights)
        least = probability_error(best, drawn.probabilities)
        assert probability_error(model.probabilities, drawn.probabilities) < 2 * least
        found = polished(model, drawn.batch, 2)
        assert probability_error(found.probabilities, drawn.probabilities) < 1.1 * least
        assert found.polishing.passes == 2
        order = np.argsort(-drawn.weights)
        np.testing.assert_allclose(found.weights, drawn.weights[order], atol=3 / np.sqrt(rows))


def test_planted_probabilities_come_back_like_one_over_sqrt_rows():
    def error(rows):
        drawn = feature_sets(rows, 40, 4, seed=5)
        return probability_error(fitted(statistics_of(drawn.batch), 4).probabilities, truth)

    truth = feature_sets(1, 40, 4, seed=5).probabilities
    check_rate(error, (2000, 8000, 32_000), (0.025, 0.0125, 0.00625))


def exact_moments(P, w):
    n = len(P)
    pairs = (P * w) @ P.T
    triples = np.einsum("ih,jh,lh,h->ijl", P, P, P, w)
    for place in range(n):
        pairs[place, place] = 0
        triples[place, place] = triples[place, :, place] = triples[:, place, place] = 0
    return SetMoments(np.eye(n), 1.0, P @ w, pairs, triples)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_exact_moments_of_distinct_features_give_the_mixture(k):
    rng = np.random.default_rng(k)
    P, w = rng.uniform(0.05, 0.95, (20, k)), np.sort(rng.dirichlet(np.full(k, 5.0)))[::-1]
    found = components_of(exact_moments(P, w), k)
    # as near as what is filled in has settled
    assert np.abs(found.probabilities - P).max() < 5e-3
    assert np.abs(found.weights - w).max() < 5e-3


def test_moments_are_of_distinct_features():
    drawn = feature_sets(300, 7, 2, 0.4, seed=3)
    X = drawn.batch.to_csr().toarray().astype(float)
    moments = SetMoments.of(statistics_of(drawn.batch))
    expected = np.einsum("ri,rj,rl->ijl", X, X, X) / len(X)
    for i in range(7):
        expected[i, i] = expected[i, :, i] = expected[:, i, i] = 0
    np.testing.assert_allclose(moments.triples, expected, atol=1e-12)
    assert moments.rows == 300
    np.testing.assert_allclose(moments.first, X.mean(axis=0))


def test_rows_without_features_count():
    drawn = feature_sets(4000, 20, 2, 0.1, seed=1)
    assert (drawn.batch.lengths == 0).any()
    empty = CountBatch.from_csr(np.zeros((4000, 20), dtype=np.int8))
    with_them = fitted(statistics_of(concatenate([drawn.batch, empty])), 3)
    mean = with_them.probabilities @ with_them.weights
    np.testing.assert_allclose(mean, drawn.batch.to_csr().mean(axis=0) / 2, atol=0.02)
    assert with_them.documents == 8000


def test_a_feature_that_a_row_names_twice_counts_once():
    once = CountBatch.from_csr([[1, 1, 0], [0, 1, 1]])
    twice = CountBatch.from_csr([[3, 1, 0], [0, 2, 7]])
    foundation = foundation_of(once)
    assert foundation.of_sets(named(once, foundation)) == foundation.of_sets(
        named(twice, foundation)
    )
    model = BernoulliMixture(np.array([[0.9], [0.4], [0.2]]), np.ones(1))
    assert np.array_equal(model.log_likelihoods(once), model.log_likelihoods(twice))
    # a row with the first two features, a little of the mean mixed in
    assert np.isclose(np.exp(model.log_likelihoods(once)[0]), 0.9 * 0.4 * 0.8)


def test_sets_obey_the_laws():
    batch = feature_sets(60, 9, 2, seed=2).batch
    foundation = foundation_of(batch)
    parts = [named(batch.select(20 * part, 20 * part + 20), foundation) for part in range(3)]
    parts = [replace(part, halves=part.odd) for part in parts]
    zero = foundation.of([])
    check_laws(zero, foundation.of_sets, concatenate, parts, (2, 0, 1))


def test_row_blocks_give_the_same_bits():
    drawn = feature_sets(3000, 30, 3, seed=7)
    foundation = foundation_of(drawn.batch)
    batch = named(drawn.batch, foundation)
    whole = fitted(foundation.of_sets(batch), 3)
    blocks = tuple(foundation.of_sets(batch, RowBlock(index, 4)) for index in range(4))
    found = BernoulliMixture.fit(InMemory(blocks), BernoulliMixture.Options(topics=3))
    for name, array in whole.parts()[0].items():
        assert np.array_equal(array, found.parts()[0][name]), name


def test_foundation_comes_back_of_its_parts():
    foundation = foundation_of(feature_sets(200, 9, 2).batch, columns=4)
    assert SetsFoundation.from_parts(*foundation.parts()) == foundation
    other = replace(foundation, halves=False)
    assert other.fingerprint != foundation.fingerprint
    with pytest.raises(InvalidInput, match="different vocabularies"):
        replace(foundation, basis=Basis(np.eye(9, dtype=np.int8), 9))


def test_passes_are_the_same_bits_in_any_cut():
    drawn = feature_sets(999, 40, 4, seed=4)
    model = fitted(statistics_of(drawn.batch), 4)
    reader = SetReader(model)
    whole = reader.add(drawn.batch, ExpectedSets.zero(model))
    parts = ExpectedSets.zero(model)
    for start, stop in ((500, 999), (0, 13), (13, 500)):
        parts = reader.add(drawn.batch.select(start, stop), parts)
    assert np.array_equal(whole.features, parts.features)
    assert np.array_equal(whole.rows, parts.rows)
    assert (whole.documents, whole.tokens) == (parts.documents, parts.tokens)
    arrays, numbers = whole.parts()
    again = ExpectedSets.from_parts(arrays, numbers)
    assert np.array_equal(
        improved(model, again).probabilities, improved(model, whole).probabilities
    )
    by_one, by_three = (polished(model, drawn.batch, 2, threads=number) for number in (1, 3))
    assert np.array_equal(by_one.probabilities, by_three.probabilities)


def test_passes_do_not_make_rows_less_likely():
    drawn = feature_sets(2000, 30, 3, seed=6)
    rng = np.random.default_rng(0)
    model = BernoulliMixture(rng.uniform(0.2, 0.8, (30, 3)), np.full(3, 1 / 3))
    before = -np.inf
    for _ in range(6):
        likelihood = model.log_likelihoods(drawn.batch).sum()
        assert likelihood > before
        before, model = likelihood, polished(model, drawn.batch, 1)


def test_a_component_without_rows_keeps_its_probabilities():
    model = BernoulliMixture(np.array([[0.9, 0.5], [0.2, 0.5]]), np.array([1.0, 0.0]))
    with pytest.raises(InvalidInput, match="passes is -1"):
        polished(model, CountBatch.from_csr([[1, 0], [1, 1]]), -1)
    found = polished(model, CountBatch.from_csr([[1, 0], [1, 1]]), 1)
    assert found.probabilities[:, 1].tolist() == [0.5, 0.5]
    assert found.weights.tolist() == [1.0, 0.0]


def test_error_bars_are_about_as_long_as_the_errors():
    ratios = []
    for seed in range(4):
        drawn = feature_sets(5000, 60, 5, seed=seed)
        model = fitted(statistics_of(drawn.batch), 5)
        order = np.argsort(-drawn.weights)
        errors = np.abs(model.probabilities - drawn.probabilities[:, order])
        seen = model.probability_bars > 1e-6
        ratios.append(np.median(errors[seen] / model.probability_bars[seen]))
    # of a normal distribution it is 0.67
    assert 0.4 < np.mean(ratios) < 1.0
    assert "error bar" in model.described().columns
    assert fitted(statistics_of(drawn.batch, halves=False), 5).bars is None


def test_what_rows_do_not_hold_is_refused():
    drawn = feature_sets(3000, 20, 2, seed=1)
    with pytest.raises(NotIdentifiable, match="no row has three features"):
        fitted(statistics_of(CountBatch.from_csr(np.eye(4, dtype=np.int8))), 2)
    with pytest.raises(NotIdentifiable, match="3 components are asked for"):
        fitted(statistics_of(drawn.batch, columns=1), 3)
    with pytest.raises(InvalidInput, match='moments of sets are decomposed by "joint"'):
        BernoulliMixture.Options(topics=2, method="als")
    model = fitted(statistics_of(drawn.batch), 2)
    with pytest.raises(ForeignStatistics, match="rows have 3 features, but the model has 20"):
        model.assign(CountBatch.from_csr(np.eye(3, dtype=np.int8)))


def test_rows_are_assigned_to_what_drew_them():
    drawn = feature_sets(4000, 60, 4, seed=8)
    model = fitted(statistics_of(drawn.batch), 4)
    order = np.argsort(-drawn.weights)
    assert (order[model.assign(drawn.batch)] == drawn.labels).mean() > 0.95
    np.testing.assert_allclose(model.transform(drawn.batch).sum(axis=1), 1)


def codes(seed, n=40, k=3, rows=5000):
    """Groups of patients that overlap, and codes that become rare."""
    rng = np.random.default_rng(seed)
    P = rng.beta(0.5, 1.0, (n, k)) * np.arange(1, n + 1)[:, None] ** -0.8
    weights = rng.dirichlet(np.full(k, 10.0))
    labels = rng.choice(k, size=rows, p=weights)
    return CountBatch.from_csr((rng.random((rows, n)) < P.T[labels]).astype(np.int8)), P, weights


def test_two_passes_reach_the_maximum_where_components_overlap():
    ratios, unaccelerated = [], []
    for seed in range(3, 9):
        batch, P, weights = codes(seed)
        least = probability_error(likeliest_from(batch, P, weights, steps=100), P)
        model = fitted(statistics_of(batch), 3)
        ratios.append(probability_error(polished(model, batch, 2).probabilities, P) / least)
        plain = likeliest_from(batch, model.probabilities, model.weights, steps=2)
        unaccelerated.append(probability_error(plain, P) / least)
    assert np.median(ratios) < 1.05
    assert max(ratios) < 1.1
    # such draws need it
    assert np.median(unaccelerated) > 1.1
    assert max(unaccelerated) > 1.2


def expected(model, batch):
    return SetReader(model).add(batch, ExpectedSets.zero(model))


def test_two_passes_are_accelerated_and_later_ones_are_plain():
    batch, *_ = codes(1)
    model = fitted(statistics_of(batch), 3)
    for _ in range(2):
        plain = improved(model, expected(model, batch))
        found = polished(model, batch, 1)
        assert np.abs(found.probabilities - plain.probabilities).max() > 1e-3
        model = found
    start = fitted(statistics_of(batch), 3)
    two, three = polished(start, batch, 2), polished(start, batch, 3)
    assert np.array_equal(two.probabilities, model.probabilities)
    assert np.array_equal(three.probabilities, improved(two, expected(two, batch)).probabilities)
    cut = [batch.select(*ends) for ends in ((0, 1700), (1700, 1701), (1701, 5000))]
    assert np.array_equal(polished(start, cut, 2, threads=2).probabilities, two.probabilities)


def test_clear_components_are_not_accelerated():
    drawn = feature_sets(2000, 60, 4, seed=8)
    model = fitted(statistics_of(drawn.batch), 4)
    after = improved(model, expected(model, drawn.batch))
    assert accelerated(model, after) is after


def test_features_that_tell_components_apart_are_accelerated_first():
    batch, *_ = codes(1, n=30)
    model = fitted(statistics_of(batch), 3)
    # with features that all components have alike, of which 139 are accelerated
    alike = np.full((200, 3), 0.5)
    after = improved(model, expected(model, batch))
    wide, wider = (
        replace(one, probabilities=np.vstack([alike, one.probabilities])) for one in (model, after)
    )
    found = accelerated(wide, wider).probabilities
    assert np.array_equal(found[139:200], alike[139:])
    assert np.abs(found[200:] - after.probabilities).max() > 1e-3
    np.testing.assert_allclose(found[200:], accelerated(model, after).probabilities, atol=0.02)
    many = BernoulliMixture(np.full((40, 23), 0.5), np.full(23, 1 / 23))
    assert accelerated(many, many) is many
