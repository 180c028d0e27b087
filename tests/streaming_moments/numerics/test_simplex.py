"""The nearest distribution: against a solver that knows nothing of the formula, and its laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from streaming_moments.numerics.simplex import nearest_distributions
from streaming_moments.synthetic.corpora import lda_corpus

ENTRIES = st.floats(-1, 1).map(lambda x: round(x, 6))
COLUMNS = arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=ENTRIES)


def with_a_positive_entry(columns):
    return np.vstack([np.ones(columns.shape[1]), columns])


def summing_to_one(columns):
    return columns + (1 - columns.sum(axis=0)) / len(columns)


@given(COLUMNS)
def test_every_column_becomes_a_distribution_in_the_same_order(columns):
    columns = with_a_positive_entry(columns)
    topics = nearest_distributions(columns)
    assert (topics >= 0).all()
    np.testing.assert_allclose(topics.sum(axis=0), 1)
    rising = np.take_along_axis(topics, columns.argsort(axis=0), axis=0)
    assert (np.diff(rising, axis=0) >= 0).all()


@given(COLUMNS)
def test_a_column_without_a_positive_entry_has_its_nearest_distribution(columns):
    columns = -np.abs(columns)
    found = nearest_distributions(columns)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=0), 1)
    # the Euclidean projection does not change where all entries grow alike
    np.testing.assert_allclose(found, nearest_distributions(summing_to_one(columns)), atol=1e-9)


def test_of_nothing_the_nearest_distribution_is_uniform():
    np.testing.assert_array_equal(nearest_distributions(np.zeros((4, 2))), np.full((4, 2), 0.25))


@given(COLUMNS, st.integers(0, 2**32 - 1))
def test_no_distribution_is_nearer(columns, seed):
    columns = summing_to_one(columns)
    topics = nearest_distributions(columns)
    rng = np.random.default_rng(seed)
    for other in rng.dirichlet(np.full(len(columns), 0.5), size=20):
        # the obtuse angle at a projection: it is nearer than any other point of the simplex
        assert (((columns - topics) * (other[:, None] - topics)).sum(axis=0) <= 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_a_general_solver_finds(seed):
    rng = np.random.default_rng(seed)
    column = summing_to_one(rng.dirichlet(np.ones(8)) + 0.1 * rng.standard_normal(8))
    found = minimize(
        lambda x: ((x - column) ** 2).sum(),
        np.full(8, 1 / 8),
        bounds=[(0, 1)] * 8,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(nearest_distributions(column[:, None])[:, 0], found.x, atol=1e-6)


def test_exact_distributions_stay():
    topics = np.random.default_rng(0).dirichlet(np.full(50, 0.1), size=4).T
    np.testing.assert_allclose(nearest_distributions(topics), topics, atol=1e-15)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        # sums to 2 of 3 that are positive: (x - 1/2)+ does
        ([2.0, 1.0, -1.0], [2.0 - 1 / 2, 1.0 - 1 / 2, 0.0]),
        # sums to 0, and 2 are positive: (x - 1/2)+ sums to 1
        ([1.0, 1.0, -2.0], [0.5, 0.5, 0.0]),
        # what is positive does not reach 1: clipping and no more
        ([0.4, 0.2, -0.4], [0.4, 0.2, 0.0]),
    ],
)
def test_only_a_surplus_over_the_sum_and_over_1_is_noise(column, expected):
    expected = np.array(expected) / np.sum(expected)
    np.testing.assert_allclose(nearest_distributions(np.array(column)[:, None])[:, 0], expected)


def test_it_errs_less_than_clipping():
    topics = lda_corpus(1, n_words=2000, n_topics=5, concentration=200, seed=0).topics
    rng = np.random.default_rng(1)
    noise = np.sqrt(topics.mean(axis=1))[:, None] * rng.standard_normal(topics.shape)
    noisy = summing_to_one(topics + 0.01 * noise)
    clipped = np.clip(noisy, 0, None)
    clipped /= clipped.sum(axis=0)
    ours, other = (np.abs(t - topics).sum() for t in (nearest_distributions(noisy), clipped))
    assert ours < 0.9 * other
