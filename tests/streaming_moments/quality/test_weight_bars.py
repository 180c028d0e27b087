"""Bars of the weights of topics are as wide as their errors, over corpora without a trend."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from streaming_moments.models.fit import fit
from streaming_moments.quality.weight_bars import grown_bars, weight_bars
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics

WEIGHTS = np.array([0.35, 0.25, 0.2, 0.12, 0.08])


def corpus(rng, topics, alpha0, long, documents):
    k = WEIGHTS.size
    lengths = rng.lognormal(4.5, 0.8, documents) if long else rng.integers(5, 16, documents)
    if alpha0:
        proportions = rng.dirichlet(alpha0 * WEIGHTS, documents)
    else:
        proportions = np.eye(k)[rng.choice(k, documents, p=WEIGHTS)]
    words = proportions @ topics.T
    words /= words.sum(axis=1, keepdims=True)
    pairs = zip(np.maximum(lengths, 1).astype(int), words, strict=True)
    return np.array([rng.multinomial(length, p) for length, p in pairs])


@pytest.mark.parametrize("long", [False, True], ids=["5 to 15 words", "lognormal"])
@pytest.mark.parametrize("alpha0", [0, 0.3])
def test_bars_are_as_wide_as_errors_and_moves(alpha0, long):
    """Of 1,500 documents, and of these and 300 more."""
    rng = np.random.default_rng(1)
    topics, basis = rng.dirichlet(np.full(300, 0.1), 5).T, None
    errors, moves = [], []
    for _ in range(12):
        fits = []
        counts = corpus(rng, topics, alpha0, long, 1800)
        for documents in (1500, 1800):
            batch = CountBatch.from_csr(counts[:documents])
            basis = basis or Basis.from_pilot(batch, max_topics=8)
            statistics = MomentStatistics.of(batch, basis)
            model = fit(statistics, 5, alpha0)
            apart = np.abs(model.topics[:, :, None] - topics[:, None, :]).sum(axis=0)
            order = linear_sum_assignment(apart.T)[1]
            fits.append((model.weights[order], weight_bars(model, statistics.length_histogram)))
            fits[-1] = fits[-1][0], fits[-1][1][order]
        (before, bars), (now, bars_now) = fits
        errors.append((before - WEIGHTS) / bars)
        moves.append((now - before) / grown_bars(bars_now, 1800, 1500))
    assert 0.75 < np.sqrt(np.mean(np.square(errors))) < 1.25
    assert 0.6 < np.sqrt(np.mean(np.square(moves))) < 1.1


def test_weights_without_refinement_or_of_ages_have_no_bars():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(50, 0.1), 5).T
    batch = CountBatch.from_csr(corpus(rng, topics, 0, False, 400))
    statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=5))
    lengths = statistics.length_histogram
    assert weight_bars(fit(statistics, 3, refine=0), lengths) is None
    model = fit(statistics, 3)
    assert weight_bars(model, lengths).shape == (3,)
    assert weight_bars(replace(model, half_life=7.0), lengths) is None
    fewer = weight_bars(replace(model, documents=100), lengths)
    np.testing.assert_allclose(fewer / weight_bars(model, lengths), 2, rtol=0.01)
