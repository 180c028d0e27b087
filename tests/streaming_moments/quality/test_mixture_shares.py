"""Shares from summed counts: the most probable, with bars that are as wide as the errors."""

import numpy as np
import pytest

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.reading import topic_reading
from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.mixture_shares import mixture_shares
from streaming_moments.statistics.counts.lengths import LengthHistogram
from streaming_moments.statistics.counts.lengths.concentration import token_concentration


def drawn(seed, n=200, k=4):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n, 0.2), k).T
    return TopicModel.from_topics(topics, np.full(k, 1 / k)), rng


def test_shares_are_the_most_probable():
    model, rng = drawn(0)
    counts = rng.multinomial(5000, model.topics @ [0.6, 0.25, 0.1, 0.05])
    shares, _ = mixture_shares(model, counts)

    def likelihood(theta):
        return counts @ np.log(model.smoothed(1e-3) @ theta) + np.log(theta).mean()

    best = likelihood(shares)
    for _ in range(200):
        step = shares * np.exp(0.02 * rng.standard_normal(4))
        assert likelihood(step / step.sum()) <= best + 1e-6
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("burst", [1, 8])
def test_bars_are_as_wide_as_the_errors(burst):
    """Also where every draw brings a word so many times."""
    truth, ratios = np.array([0.5, 0.3, 0.15, 0.05]), []
    model, rng = drawn(1)
    for _ in range(60):
        counts = burst * rng.multinomial(4000, model.topics @ truth)
        shares, bars = mixture_shares(model, counts)
        ratios.append((shares - truth) / bars)
    assert 0.8 < np.sqrt(np.mean(np.square(ratios))) < 1.2


def test_words_that_some_documents_do_not_count_bias_no_share():
    """Half of the first topic, and a sixth of the others, are words of every fourth document."""
    truth, ratios = np.array([0.4, 0.3, 0.2, 0.1]), []
    model, rng = drawn(4)
    late, counted = np.arange(200) >= 150, np.where(np.arange(200) >= 150, 0.25, 1.0)
    share = np.array([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    scale = np.where(late[:, None], share, 1 - share)
    topics = model.topics * scale
    topics /= np.where(late[:, None], topics[late].sum(axis=0), topics[~late].sum(axis=0)) / scale
    model = TopicModel.from_topics(topics, np.full(4, 0.25))
    for _ in range(40):
        parts = [rng.multinomial(size, topics @ truth) for size in (3000, 1000)]
        counts = np.where(late, 0, parts[0]) + parts[1]
        shares, bars = mixture_shares(model, counts, counted)
        assert shares.sum() == pytest.approx(1)
        ratios.append((shares - truth) / bars)
    assert np.abs(np.mean(ratios, axis=0)).max() < 0.6
    assert 0.8 < np.sqrt(np.mean(np.square(ratios))) < 1.2
    every = mixture_shares(model, counts, np.ones(200))
    np.testing.assert_allclose(every, mixture_shares(model, counts), atol=1e-9)


def test_counts_beyond_32_bits_are_taken():
    model, _ = drawn(2)
    counts = np.rint(1e12 * model.topics @ [0.7, 0.1, 0.1, 0.1]).astype(np.int64)
    shares, bars = mixture_shares(model, counts)
    np.testing.assert_allclose(shares, [0.7, 0.1, 0.1, 0.1], atol=0.01)
    assert (bars < 1e-3).all()


@pytest.mark.parametrize("weight", [1e-9, 1e-12])
def test_a_topic_that_is_nearly_gone_comes_back(weight):
    model, _ = drawn(2, n=50, k=3)
    model = TopicModel.from_topics(model.topics, np.array([0.5, 0.5, weight]) / (1 + weight))
    counts = np.rint(1e6 * model.topics @ [0.2, 0.1, 0.7]).astype(np.int64)
    np.testing.assert_allclose(mixture_shares(model, counts)[0], [0.2, 0.1, 0.7], atol=0.01)


def test_shares_are_found_in_few_steps(monkeypatch):
    steps, solve = [], np.linalg.lstsq

    def counted(*told, **how):
        steps.append(1)
        return solve(*told, **how)

    monkeypatch.setattr(np.linalg, "lstsq", counted)
    for seed in range(10):
        model, rng = drawn(seed, n=1000, k=10)
        steps.clear()
        mixture_shares(model, rng.multinomial(10 ** (3 + seed % 6), model.topics @ model.weights))
        assert len(steps) < 30


def test_words_that_no_document_counts_say_nothing():
    model, rng = drawn(5)
    counts = rng.multinomial(5000, model.topics @ [0.4, 0.3, 0.2, 0.1])
    counted = np.where(np.arange(200) < 150, 1.0, 0.0)
    without = np.where(counted > 0, counts, 0)
    found = mixture_shares(model, counts, counted)
    np.testing.assert_array_equal(found, mixture_shares(model, without, counted))
    assert np.isnan(mixture_shares(model, counts - without, counted)).all()


def test_counts_of_nothing_have_no_shares():
    model, _ = drawn(3)
    shares, bars = mixture_shares(model, np.zeros(200, dtype=np.int64))
    assert np.isnan(shares).all()
    assert np.isnan(bars).all()
    with pytest.raises(ForeignStatistics, match="3 words"):
        mixture_shares(model, np.ones(3, dtype=np.int64))
    with pytest.raises(ForeignStatistics, match="2 words"):
        mixture_shares(model, np.ones(200, dtype=np.int64), np.ones(2))
    with pytest.raises(InvalidInput, match="-1"):
        mixture_shares(model, np.full(200, -1))


@pytest.mark.parametrize("seed", range(6))
def test_shares_are_those_at_which_the_reading_of_a_document_settles(seed):
    rng = np.random.default_rng(seed)
    words, k, tokens = 80, 2 + seed, 10 ** (1 + seed)
    topics, weights = rng.dirichlet(np.full(words, 0.1), k).T, rng.dirichlet(np.ones(k))
    model = TopicModel.from_topics(topics, weights)
    counts = rng.multinomial(tokens, topics @ rng.dirichlet(np.full(k, 0.2)))
    there = np.flatnonzero(counts).astype(np.int32)
    read, ends = np.empty((1, k)), np.array([0, there.size])
    taken = there, counts[there], model.smoothed(1e-3), model.weights
    topic_reading.proportions(ends, *taken, 1.0, 20_000, read)
    np.testing.assert_allclose(mixture_shares(model, counts)[0], read[0], atol=1e-5)


def corpora(rng, model, long, documents):
    """Counts and lengths of documents of a model, for ever: each of its own proportions."""
    k, weights = model.n_topics, model.weights
    while True:
        drawn = rng.lognormal(4.5, 0.9, documents) if long else rng.integers(5, 16, documents)
        lengths = np.maximum(np.rint(drawn), 1).astype(int)
        if model.alpha0:
            proportions = rng.dirichlet(model.alpha, documents)
        else:
            proportions = np.eye(k)[rng.choice(k, documents, p=weights)]
        tokens = rng.multinomial(lengths, proportions).sum(axis=0)
        words = (rng.multinomial(number, model.topics[:, j]) for j, number in enumerate(tokens))
        yield sum(words), token_concentration(LengthHistogram.of(lengths))


@pytest.mark.parametrize("long", [False, True], ids=["5 to 15 words", "lognormal"])
@pytest.mark.parametrize("alpha0", [0, 0.1, 1])
def test_of_periods_without_a_trend_one_difference_in_twenty_is_beyond_two_bars(alpha0, long):
    """Days of 285 documents: 400 pairs of them, six topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.1), 6).T
    model = TopicModel.from_topics(topics, np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1]), alpha0)
    days, ratios = corpora(rng, model, long, 285), []
    for _ in range(400):
        pair = [next(days) for _ in range(2)]
        (one, bar), (other, its) = (
            mixture_shares(model, counts, concentration=share) for counts, share in pair
        )
        ratios.append((one - other) / np.hypot(bar, its))
    assert 0.03 < (np.abs(ratios) > 2).mean() < 0.07
    assert 0.9 < np.std(ratios) < 1.1


def test_a_topic_that_few_documents_do_not_show_has_a_bar():
    """Of ten documents of one topic each, by which a topic of a tenth is often missed."""
    model, _ = drawn(6)
    model = TopicModel.from_topics(model.topics, np.array([0.4, 0.3, 0.2, 0.1]))
    counts = np.rint(1e6 * model.topics @ [0.5, 0.5, 0, 0]).astype(np.int64)
    shares, bars = mixture_shares(model, counts, concentration=0.1)
    assert shares[3] < 1e-3
    assert 0.02 < bars[3] < 0.1


def test_the_topics_of_a_model_that_has_one_have_no_scatter():
    model = TopicModel.from_topics(np.full((2, 1), 0.5), np.ones(1))
    shares, bars = mixture_shares(model, np.array([3, 5]), concentration=0.5)
    assert (shares, bars) == (1.0, 0.0)


def test_a_concentration_is_a_sum_of_squared_shares():
    model, _ = drawn(3)
    with pytest.raises(InvalidInput, match="1.5"):
        mixture_shares(model, np.ones(200, dtype=np.int64), concentration=1.5)
