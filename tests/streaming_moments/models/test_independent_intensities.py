"""Independent intensities: exact from exact cumulants, found when planted, refused elsewhere."""

import numpy as np
import pytest

from streaming_moments import METHODS, Basis, CountBatch, MomentStatistics
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.poissons.independent_intensities import (
    IndependentIntensities,
    implied_alpha0,
)
from streaming_moments.models.registry import MODELS
from streaming_moments.models.rows import InMemory
from streaming_moments.synthetic.corpora import lda_corpus, topic_error
from streaming_moments.testing.exact_statistics import in_all_places, same_columns, statistics_of

SHAPES, RATES = np.array([0.3, 0.5, 0.2]), np.array([0.02, 0.05, 0.01])


def drawn_topics(words, seed):
    return np.random.default_rng(seed).dirichlet(np.full(words, 0.3), size=len(SHAPES)).T


def fitted(statistics, topics=3, **options):
    given = IndependentIntensities.Options(topics=topics, **options)
    return IndependentIntensities.fit(InMemory((statistics,)), given)


@pytest.mark.parametrize("method", METHODS)
def test_exact_cumulants_give_topics_shapes_and_rates(method):
    D = drawn_topics(12, 1)
    mean, variance, third = (
        times * SHAPES / RATES**power for times, power in ((1, 1), (1, 2), (2, 3))
    )
    M1 = D @ mean
    A, T = (D * variance) @ D.T, np.einsum("ij,kj,lj,j->ikl", D, D, D, third)
    M2 = A + np.outer(M1, M1)
    M3 = T + in_all_places(np.einsum("ik,l->ikl", A, M1)) + np.einsum("i,k,l->ikl", M1, M1, M1)
    model = fitted(statistics_of(M1, M2, M3, core=9, columns=5), method=method)
    order = same_columns(model.topics, D)
    exact = method in ("joint", "feature", "svd")
    rtol = 1e-11 if exact else 1e-7
    np.testing.assert_allclose(model.topics[:, order], D, atol=2e-13 if exact else 1e-9)
    np.testing.assert_allclose(model.shapes[order], SHAPES, rtol=rtol)
    np.testing.assert_allclose(model.rates[order], RATES, rtol=rtol)
    np.testing.assert_allclose(model.variances[order], SHAPES / RATES**2, rtol=rtol)
    np.testing.assert_allclose(model.weights[order], mean / mean.sum(), rtol=rtol)
    assert "<th>shape</th>" in model._repr_html_()
    assert model.described().facts["check"] < 10 * rtol


def planted(documents, rates=RATES, seed=3, words=60):
    rng = np.random.default_rng(seed)
    D = drawn_topics(words, seed)
    intensities = rng.gamma(SHAPES, 1 / rates, size=(documents, len(SHAPES)))
    batch = CountBatch.from_csr(rng.poisson(intensities @ D.T))
    basis = Basis.from_pilot(batch, max_topics=3, length_weights="pooled")
    statistics = MomentStatistics.of(batch, basis)
    return D, intensities, batch, statistics


def test_planted_topics_and_intensities_come_back():
    errors = []
    for documents in (1000, 4000, 16_000):
        D, _, _, statistics = planted(documents)
        model = fitted(statistics)
        errors.append(topic_error(model.topics, D))
        order = same_columns(model.topics, D)
    np.testing.assert_allclose(model.shapes[order], SHAPES, rtol=0.2)
    np.testing.assert_allclose(model.rates[order], RATES, rtol=0.2)
    assert model.described().facts["check"] < 0.2
    # measured 0.098, 0.056, 0.036; the bounds leave a quarter
    assert (np.array(errors) < [0.123, 0.070, 0.045]).all()


def test_proportions_are_those_of_the_intensities():
    D, intensities, batch, statistics = planted(4000)
    model = fitted(statistics)
    order = same_columns(model.topics, D)
    truth = intensities / intensities.sum(axis=1, keepdims=True)
    found = model.transform(batch)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    long = batch.lengths > 20
    assert np.abs(found[:, order] - truth)[long].sum(axis=1).mean() < 0.19  # measured 0.154
    with pytest.raises(InvalidInput, match='cannot be inferred by "gibbs"'):
        model.transform(batch, "gibbs", seed=1)


def test_equal_rates_imply_the_alpha0_of_the_lda_that_they_are():
    *_, statistics = planted(16_000, rates=np.full(3, 0.02))
    model = fitted(statistics)
    np.testing.assert_allclose(model.alpha0, SHAPES.sum(), rtol=0.1)
    np.testing.assert_allclose(model.alpha.sum(), model.alpha0, rtol=0.3)
    assert f"alpha0 {model.alpha0:.3g}" in model.described().sentence


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([20] * 50, r"imply alpha0 -2"),
        ([19, 20, 21] * 50, r"imply alpha0 -"),
        ([10, 20, 30] * 50, r"imply alpha0 8\.571, .* up to 5"),
    ],
)
def test_lengths_that_imply_no_alpha0_are_refused(lengths, said):
    rng = np.random.default_rng(0)
    batch = CountBatch.from_csr(np.array([rng.multinomial(n, np.full(9, 1 / 9)) for n in lengths]))
    basis = Basis.from_pilot(batch, max_topics=2, length_weights="pooled")
    statistics = MomentStatistics.of(batch, basis)
    with pytest.raises(NotIdentifiable, match=said):
        fitted(statistics)


def test_planted_poisson_lengths_are_refused_and_a_smaller_bound_refuses_what_passed():
    batch = lda_corpus(2000, 100, 3, mean_length=40, seed=1).batch
    basis = Basis.from_pilot(batch, max_topics=3, length_weights="pooled")
    statistics = MomentStatistics.of(batch, basis)
    with pytest.raises(NotIdentifiable, match="lengths vary too little"):
        fitted(statistics)
    *_, statistics = planted(4000)
    implied = implied_alpha0(statistics.length_histogram)
    fitted(statistics, max_alpha0=1.01 * implied)
    with pytest.raises(NotIdentifiable, match=f"imply alpha0 {implied:.4g}"):
        fitted(statistics, max_alpha0=0.99 * implied)


def test_the_parts_make_it_again_and_numbers_move_together():
    *_, statistics = planted(4000)
    model = fitted(statistics)
    again = MODELS[model.name].from_parts(*model.parts())
    for name in model.parts()[0]:
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    turned = model.reordered(np.array([2, 0, 1]))
    for name in ("shapes", "rates", "variances", "weights"):
        assert np.array_equal(getattr(turned, name), getattr(model, name)[[2, 0, 1]])
