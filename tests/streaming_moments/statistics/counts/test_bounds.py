"""The bounds hold over many corpora, and are no looser than their proof."""

import numpy as np
import pytest

from streaming_moments import CountBatch, LengthHistogram
from streaming_moments.decompositions.moments import Moments
from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.estimators import per_document_moments, pooled_moments
from streaming_moments.statistics.counts.lengths.bounds import (
    concentration,
    error_radius,
    expected_error,
)

# one long document among short ones: far fewer documents count in effect than there are
LENGTHS = np.array([3] * 10 + [5] * 6 + [8] * 3 + [40])
MIXED = LengthHistogram.of(LENGTHS)


def errors(topics, weights, order, corpora, estimator=pooled_moments):
    """Frobenius distances of a moment from the truth, over corpora of the lengths above."""
    rng = np.random.default_rng(order)
    truth = getattr(Moments.of_mixture(topics, weights), f"M{order}")
    found = np.empty(corpora)
    for corpus in range(corpora):
        chosen = rng.choice(weights.size, size=LENGTHS.size, p=weights)
        batch = CountBatch.from_csr(rng.multinomial(LENGTHS, topics.T[chosen]))
        found[corpus] = np.linalg.norm(getattr(estimator(batch), f"M{order}") - truth)
    return found


def test_concentration_is_the_sum_of_squared_weights():
    c = LENGTHS.astype(float)
    for order, weights in ((1, c), (2, c * (c - 1)), (3, c * (c - 1) * (c - 2))):
        shares = weights / weights.sum()
        assert concentration(MIXED, order) == pytest.approx((shares**2).sum())
    assert 1 / concentration(MIXED) == pytest.approx(MIXED.effective_documents)
    assert MIXED.effective_documents < 1.2


@pytest.mark.parametrize("order", [1, 2, 3])
def test_topics_of_one_word_reach_the_bound_on_the_mean(order):
    # every document is its topic's word alone: |Y_d| = 1 and E |M^ - M|^2 = W (1 - |M|^2) exactly
    weights = np.full(8, 1 / 8)
    found = errors(np.eye(8), weights, order, 250)
    assert found.mean() <= expected_error(MIXED, order)
    assert np.sqrt((found**2).mean()) == pytest.approx(
        expected_error(MIXED, order) * np.sqrt(7 / 8), rel=0.05
    )


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("spread", [0.05, 1.0])
def test_errors_keep_within_the_radius_as_often_as_promised(order, spread):
    rng = np.random.default_rng(5)
    topics, weights = rng.dirichlet(np.full(6, spread), size=3).T, np.array([0.6, 0.3, 0.1])
    found = errors(topics, weights, order, 250)
    for delta in (0.9, 0.5, 0.2, 0.05):
        assert (found > error_radius(MIXED, delta, order)).mean() <= delta
    assert found.mean() <= expected_error(MIXED, order)


def test_counting_every_document_alike_would_promise_too_much():
    found = errors(np.eye(2), np.array([0.5, 0.5]), 3, 200)
    alike = LengthHistogram.of([3] * LENGTHS.size)
    assert (found > error_radius(alike, 0.2)).mean() > 0.5
    # it is what holds for the estimator that gives them the same weight
    equal = errors(np.eye(2), np.array([0.5, 0.5]), 3, 200, per_document_moments)
    assert (equal > error_radius(alike, 0.2)).mean() <= 0.2


def test_bounds_that_make_no_sense_are_refused():
    for delta in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(InvalidInput, match="delta is .*; it must be between 0 and 1"):
            error_radius(MIXED, delta)
    with pytest.raises(InvalidInput, match="the order is 4"):
        error_radius(MIXED, 0.1, 4)
    for order, lengths in ((3, [2, 2]), (2, [1]), (1, [0]), (1, [])):
        with pytest.raises(InvalidInput, match=f"has {order} words"):
            concentration(LengthHistogram.of(lengths), order)
