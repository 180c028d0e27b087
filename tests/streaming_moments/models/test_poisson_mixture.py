"""Mixtures of Poissons: exact from exact moments, and found again in planted documents."""

import numpy as np
import pytest

from streaming_moments import METHODS, Basis, CountBatch, MomentStatistics, fit
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.registry import MODELS
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.counts.weighted import WeightedStatistics
from streaming_moments.testing.exact_statistics import same_columns, statistics_of

WEIGHTS = np.array([0.5, 0.3, 0.2])
# documents of a component are the longer, the rarer it is
LENGTHS = np.array([5.0, 15.0, 40.0])


def drawn_rates(words, seed):
    return np.random.default_rng(seed).dirichlet(np.full(words, 0.5), size=3).T * LENGTHS


def fitted(statistics, **options):
    return PoissonMixture.fit(InMemory((statistics,)), PoissonMixture.Options(topics=3, **options))


@pytest.mark.parametrize("method", METHODS)
def test_exact_moments_give_rates_and_weights(method):
    D, w = drawn_rates(12, 1), WEIGHTS
    M3 = np.einsum("ij,kj,lj,j->ikl", D, D, D, w)
    model = fitted(statistics_of(D @ w, (D * w) @ D.T, M3, core=9, columns=5), method=method)
    order = same_columns(model.rates, D)
    # the iterative methods stop before
    atol = 2e-13 if method in ("joint", "feature", "svd") else 1e-9
    np.testing.assert_allclose(model.rates[:, order] / D.max(), D / D.max(), atol=atol)
    np.testing.assert_allclose(model.weights[order], w, atol=atol)
    np.testing.assert_allclose(model.lengths[order] / LENGTHS, 1, atol=10 * atol)
    np.testing.assert_allclose(model.word_probabilities, D @ w / (D @ w).sum())


def planted(documents, seed=3, words=60):
    rng = np.random.default_rng(seed)
    D = drawn_rates(words, seed)
    chosen = rng.choice(3, size=documents, p=WEIGHTS)
    batch = CountBatch.from_csr(rng.poisson(D[:, chosen].T))
    basis = Basis.from_pilot(batch, max_topics=3, length_weights="pooled")
    statistics = MomentStatistics.of(batch, basis)
    return D, chosen, batch, statistics


def test_planted_rates_come_back_like_one_over_sqrt_documents():
    errors = []
    for documents in (1000, 4000, 16_000):
        D, _, batch, statistics = planted(documents)
        assert batch.lengths.min() < 3  # these count as well
        model = fitted(statistics)
        order = same_columns(model.rates, D)
        errors.append((np.abs(model.rates[:, order] - D).sum(axis=0) / LENGTHS).mean())
        np.testing.assert_allclose(model.weights[order], WEIGHTS, atol=2 / np.sqrt(documents))
    # measured 0.155, 0.068, 0.041; the bounds leave a quarter
    assert (np.array(errors) < [0.194, 0.085, 0.051]).all()


@pytest.mark.parametrize("model", [PoissonMixture, IndependentIntensities])
def test_length_weights_are_refused_where_lengths_tell_of_components(model):
    batch = planted(1000)[2]
    statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=3))
    half = WeightedStatistics.of([(0.5, statistics), (1.0, statistics)])
    for weighted in (statistics, half):
        with pytest.raises(NotIdentifiable, match="--length-weights pooled"):
            model.fit(InMemory((weighted,)), model.Options(topics=2))


def test_lengths_tell_components_apart_that_share_their_words():
    D, chosen, batch, statistics = planted(4000)
    same = np.array([1.0, 1.0, 0.0])
    D = np.outer(D[:, 0] / D[:, 0].sum(), LENGTHS) * same + D * (1 - same)
    batch = CountBatch.from_csr(np.random.default_rng(0).poisson(D[:, chosen].T))
    given = fitted(statistics)
    rates = PoissonMixture(
        **{**vars(given), "topics": D / LENGTHS, "raw_topics": D, "weights": WEIGHTS}
    )
    # two components of 5 and 15 words a document overlap a little
    assert (rates.assign(batch) == chosen).mean() > 0.94  # measured 0.962
    proportions = rates.transform(batch)
    np.testing.assert_allclose(proportions.sum(axis=1), 1)
    assert np.array_equal(proportions.argmax(axis=1), rates.assign(batch))


def test_the_topics_are_those_of_the_single_topic_model_and_the_parts_make_it_again():
    *_, statistics = planted(4000)
    model = fitted(statistics)
    assert MODELS[model.name].from_parts(*model.parts()).rates.tobytes() == model.rates.tobytes()
    single = fit(statistics, 3, 0.0, refine=0).topics
    order = same_columns(single, model.topics)
    np.testing.assert_allclose(single[:, order], model.topics, atol=0.002)
    turned = model.reordered(np.array([2, 0, 1]))
    assert np.array_equal(turned.rates, model.rates[:, [2, 0, 1]])
    assert "<th>words a document</th>" in model._repr_html_()
    said = model.described()
    assert np.array_equal(said.columns["words a document"], model.lengths)
