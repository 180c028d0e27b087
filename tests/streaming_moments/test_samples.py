"""Draws from fitted models, their information criteria, and labels: against the fits themselves."""

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.sklearn import (
    MomentBernoulliMixture,
    MomentCommunities,
    MomentGaussianMixture,
    MomentHMM,
    MomentViews,
)
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import view_records


def test_rows_of_a_gaussian_mixture_have_its_means_and_variances():
    variances = np.array([[1.0], [0.25]])
    model = GaussianMixture(np.array([[0.0, 3], [5, -3]]), np.array([0.7, 0.3]), variances)
    rows, drawn = model.sample(20_000, seed=1)
    assert np.bincount(drawn) / 20_000 == pytest.approx(model.weights, abs=0.02)
    for component in range(2):
        own = rows[drawn == component]
        assert own.mean(axis=0) == pytest.approx(model.means[component], abs=0.05)
        assert own.var(axis=0) == pytest.approx([variances[component, 0]] * 2, rel=0.1)


def test_rows_of_a_bernoulli_mixture_have_its_probabilities():
    probabilities = np.array([[0.9, 0.1], [0.5, 0.2], [0.0, 1.0]])
    rows, drawn = BernoulliMixture(probabilities, np.array([0.4, 0.6])).sample(10_000, seed=1)
    for component in range(2):
        own = rows[drawn == component]
        assert own.mean(axis=0) == pytest.approx(probabilities[:, component], abs=0.03)


def test_sequences_of_a_chain_have_its_transitions_and_symbols():
    emission = np.array([[0.9, 0.0], [0.1, 0.2], [0.0, 0.8]])
    transition = np.array([[0.8, 0.3], [0.2, 0.7]])
    model = HiddenMarkovModel(emission, transition, np.array([0.0, 1.0]), np.array([0.6, 0.4]))
    symbols, states = model.sample(20_000, seed=1)
    assert states[0] == 1
    for state in range(2):
        assert np.bincount(symbols[states == state], minlength=3) / (states == state).sum() == (
            pytest.approx(emission[:, state], abs=0.02)
        )
        following = states[1:][states[:-1] == state]
        assert (following == 0).mean() == pytest.approx(transition[0, state], abs=0.02)


@pytest.mark.parametrize(
    ("covariance", "free"),
    [("spherical", 9), ("tied-spherical", 8), ("diag", 13), ("tied-diag", 10)],
)
def test_criteria_count_the_free_parameters(covariance, free):
    rows = np.random.default_rng(0).normal(size=(300, 3)) + np.repeat([[0], [9]], 150, axis=0)
    found = MomentGaussianMixture(2, covariance_type=covariance).fit(rows)
    # two means and a weight, and the variances
    assert found.model_.n_parameters == free
    total = found.score_samples(rows).sum()
    assert found.aic(rows) == pytest.approx(2 * free - 2 * total)
    assert found.bic(rows) == pytest.approx(free * np.log(300) - 2 * total)
    one = MomentGaussianMixture(1, covariance_type=covariance).fit(rows)
    assert found.bic(rows) < one.bic(rows)
    assert (found.fit_predict(rows) == found.predict(rows)).all()


def test_estimators_draw_what_their_models_draw():
    rows = np.random.default_rng(0).normal(size=(300, 3)) + np.repeat([[0], [9]], 150, axis=0)
    mixture = MomentGaussianMixture(2).fit(rows)
    assert (mixture.sample(5, random_state=3)[0] == mixture.model_.sample(5, 3)[0]).all()
    sets = MomentBernoulliMixture(2).fit((rows > 4).astype(int))
    assert sets.sample(4)[0].shape == (4, 3)
    assert sets.model_.n_parameters == 7
    symbols = np.random.default_rng(0).integers(0, 3, 600)
    chain = MomentHMM(2, 3, refine=5).fit(symbols)
    assert chain.model_.n_parameters == 2 * 2 + 2 + 1
    assert chain.bic(symbols) == pytest.approx(7 * np.log(600) - 2 * chain.score(symbols))
    assert chain.aic(symbols) == pytest.approx(14 - 2 * chain.score(symbols))
    assert (chain.sample(9, random_state=1)[0] == chain.model_.sample(9, 1)[0]).all()
    for estimator in (mixture, chain):
        with pytest.raises(InvalidInput, match="n_samples is 0; give at least 1"):
            estimator.sample(0)


def test_labels_of_communities_and_states_of_views():
    graph = community_graph(80, 2, 0.6, 0.05, 0.0, seed=1)
    found = MomentCommunities(2, alpha0=0.0)
    labels = found.fit_predict(graph.batch.to_csr())
    assert (labels == found.labels_).all()
    truth = graph.memberships.argmax(axis=1)
    assert (labels == truth).all() or (labels == 1 - truth).all()
    planted = view_records(900, sizes=(6, 5, 4), k=2, seed=1)
    X = [view.to_csr() for view in planted.batch.views]
    views = MomentViews(2)
    assert (views.fit_predict(X) == views.predict(X)).all()
