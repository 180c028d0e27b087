"""Decompositions by functions of users."""

import numpy as np
import pytest

from streaming_moments import Basis, MomentStatistics, fit_by
from streaming_moments.decompositions import Moments, decompose
from streaming_moments.errors import InvalidInput
from streaming_moments.synthetic import lda_corpus


def by_mean_slice(tensor):
    weights = np.random.default_rng(1).normal(size=len(tensor))
    return np.linalg.eigh(np.tensordot(weights, tensor, axes=1))[1]


def test_a_function_is_a_method():
    columns = np.random.default_rng(0).dirichlet(np.full(20, 0.2), size=3).T
    planted = Moments.of_mixture(columns, np.array([0.5, 0.3, 0.2]))
    # order and signs of the columns do not matter
    for own in (by_mean_slice, lambda tensor: -by_mean_slice(tensor)[:, [2, 0, 1]]):
        found = decompose(planted, 3, own)
        np.testing.assert_allclose(found.topics, columns, atol=1e-8)
        np.testing.assert_allclose(found.weights, [0.5, 0.3, 0.2], atol=1e-8)
    batch = lda_corpus(n_documents=300, n_words=20, n_topics=2, mean_length=30).batch
    statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=2))
    model = fit_by(statistics, 2, method=by_mean_slice)
    assert model.method == "by_mean_slice"
    assert type(model).from_parts(*model.parts()).method == "by_mean_slice"
    for wrong in (lambda tensor: tensor, lambda tensor: np.zeros((2, 2))):
        with pytest.raises(InvalidInput, match=r"given as method returned an array of shape .*2"):
            fit_by(statistics, 2, method=wrong)


def test_a_singular_rotation_is_refused_and_a_poor_one_warned_of():
    columns = np.random.default_rng(0).dirichlet(np.full(20, 0.2), size=4).T
    planted = Moments.of_mixture(columns, np.full(4, 0.25))
    nearly = np.eye(4) + 1e-18
    nearly[:, 1] = nearly[:, 0] + 1e-17
    for singular in (np.ones((4, 4)), nearly):
        with pytest.raises(InvalidInput, match=r"rank \d; return 4 linearly independent columns"):
            decompose(planted, 4, lambda tensor, found=singular: found)
    with pytest.warns(
        UserWarning, match=r'explain \d+% of the whitened tensor.*"joint" explain 100%'
    ):
        decompose(planted, 4, lambda tensor: np.eye(4))
