"""The estimators against sums over word positions, and unbiased over many corpora."""

import itertools

import numpy as np
import pytest

from streaming_moments import CountBatch
from streaming_moments.decompositions.moments import Moments, dirichlet_moments
from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.statistics.counts import estimators
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.statistics.counts.estimators import (
    ESTIMATORS,
    estimate,
    per_document_moments,
    pooled_moments,
    three_word_moments,
    weighted_moments,
)
from streaming_moments.statistics.counts.lengths.weights import LengthWeights
from streaming_moments.synthetic.corpora import lda_corpus

N_WORDS = 5


def batch_of(documents, n_words=N_WORDS):
    rows = np.repeat(np.arange(len(documents)), [len(words) for words in documents])
    words = np.array([word for document in documents for word in document], dtype=np.int64)
    return CountBatch.from_entries(rows, words, None, (len(documents), n_words))


def positions(words, order):
    """How often words stand at `order` distinct positions of a document, by enumeration."""
    total = np.zeros((N_WORDS,) * order)
    for chosen in itertools.permutations(words, order):
        total[chosen] += 1
    return total


def assert_same(found, expected, **tolerance):
    for one, two in zip((found.M1, found.M2, found.M3), expected, strict=True):
        np.testing.assert_allclose(one, two, **(tolerance or {"atol": 1e-14}))


@pytest.fixture(params=range(3))
def documents(request):
    """Documents as lists of words; an empty one, one of a word and one of two among them."""
    rng = np.random.default_rng(request.param)
    sizes = [0, 1, 2, *rng.integers(3, 8, size=9)]
    return [rng.integers(0, N_WORDS, size=size).tolist() for size in sizes]


@pytest.fixture(params=[1, 4_000_000], ids=["a document at a time", "all at once"])
def cells(request, monkeypatch):
    monkeypatch.setattr(estimators, "_CELLS", request.param)


@pytest.mark.usefixtures("cells")
def test_pooled_moments_are_the_shares_of_all_positions(documents):
    sums = [sum(positions(words, order) for words in documents) for order in (1, 2, 3)]
    found = pooled_moments(batch_of(documents))
    assert_same(found, [total / total.sum() for total in sums])
    assert found.symmetrized() is found


@pytest.mark.usefixtures("cells")
def test_weighted_moments_count_each_document_as_often(documents):
    weights = LengthWeights(np.array([9, 8, 7, 5, 3, 2, 1]))
    sums = [
        sum(int(weights.at(len(words))) * positions(words, order) for words in documents)
        for order in (1, 2, 3)
    ]
    batch = batch_of(documents)
    assert_same(weighted_moments(batch, weights), [total / total.sum() for total in sums])
    even = weighted_moments(batch, LengthWeights.even(2 * max(map(len, documents))))
    assert_same(estimate(batch), (even.M1, even.M2, even.M3))


@pytest.mark.usefixtures("cells")
def test_per_document_moments_are_the_mean_of_the_documents_shares(documents):
    kept = [words for words in documents if len(words) >= 3]
    shares = [
        np.mean([positions(w, order) / positions(w, order).sum() for w in kept], axis=0)
        for order in (1, 2, 3)
    ]
    assert_same(per_document_moments(batch_of(documents)), shares)


def test_three_words_are_at_distinct_positions_each_as_often():
    document = [0, 0, 1, 3]
    found = three_word_moments(batch_of([document] * 20_000), seed=1)
    for moment, order in ((found.M1, 1), (found.M2, 2), (found.M3, 3)):
        shares = positions(document, order)
        shares /= shares.sum()
        spread = np.sqrt(shares * (1 - shares) / 20_000)
        assert (np.abs(moment - shares) <= 4.5 * spread).all()
    # three different words: each of their six orders, and nothing else
    orders = three_word_moments(batch_of([[1, 2, 4]] * 600), seed=0).M3
    assert {tuple(place) for place in np.argwhere(orders).tolist()} == set(
        itertools.permutations((1, 2, 4))
    )


def test_three_words_follow_the_seed(documents):
    batch = batch_of(documents)
    one, two, other = (three_word_moments(batch, seed).M3 for seed in (0, 0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimates_are_unbiased(estimator):
    """Means over 400 corpora of 12 documents lie within 4.5 standard errors of the truth.

    39 entries: an unbiased estimator would fail once in four thousand seeds.
    """
    rng = np.random.default_rng(7)
    topics = np.array([[0.6, 0.2], [0.2, 0.3], [0.2, 0.5]])
    weights = np.array([0.7, 0.3])
    truth = Moments.of_mixture(topics, weights)
    found = []
    for corpus in range(400):
        # lengths 0 to 12, one document much longer than the others
        lengths = np.append(rng.integers(0, 13, size=11), 40)
        drawn = rng.multinomial(lengths, topics.T[rng.choice(2, size=12, p=weights)])
        found.append(estimate(CountBatch.from_csr(drawn), estimator, seed=corpus))
    for name in ("M1", "M2", "M3"):
        values = np.stack([getattr(moments, name) for moments in found])
        error = values.mean(axis=0) - getattr(truth, name)
        deviation = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert np.abs(error / deviation).max() < 4.5


def test_pooled_moments_spread_less_than_three_words():
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.ones(6), size=2).T
    truth = Moments.of_mixture(topics, np.array([0.5, 0.5])).M3
    squares = dict.fromkeys(ESTIMATORS, 0.0)
    for corpus in range(100):
        drawn = rng.multinomial(rng.integers(3, 40, size=30), topics.T[rng.integers(0, 2, 30)])
        batch = CountBatch.from_csr(drawn)
        for estimator in ESTIMATORS:
            squares[estimator] += ((estimate(batch, estimator, corpus).M3 - truth) ** 2).sum()
    assert max(squares["pooled"], squares["per-document"]) < 0.5 * squares["three-words"]


def test_short_documents_are_left_out_as_said(documents):
    short = [words for words in documents if len(words) < 3]
    enough = [words for words in documents if len(words) >= 3]
    for estimator in ("per-document", "three-words"):
        found, expected = (estimate(batch_of(d), estimator) for d in (documents, enough))
        assert_same(found, (expected.M1, expected.M2, expected.M3))
    pooled, expected = pooled_moments(batch_of(documents)), pooled_moments(batch_of(enough))
    assert np.array_equal(pooled.M3, expected.M3)
    counts = sum(positions(words, 1) for words in short + enough)
    np.testing.assert_allclose(pooled.M1, counts / counts.sum())
    assert not np.allclose(pooled.M2, expected.M2)


def test_corrected_moments_of_lda_documents_tend_to_the_mixture():
    alpha0 = 2.0
    corpus = lda_corpus(
        20_000, n_words=8, n_topics=3, alpha0=alpha0, mean_length=20, concentration=5, seed=2
    )
    raw = pooled_moments(corpus.batch)
    found = dirichlet_moments(raw, alpha0)
    expected = Moments.of_mixture(corpus.topics, corpus.weights / (alpha0 + 1))
    for name in ("M2", "M3"):
        truth = getattr(expected, name)
        assert np.linalg.norm(getattr(found, name) - truth) < 0.05 * np.linalg.norm(truth)
        # the raw moments are those of mixed documents, far from it
        assert np.linalg.norm(getattr(raw, name) - truth) > 0.5 * np.linalg.norm(truth)


def test_moments_that_cannot_be_estimated_are_refused():
    short = batch_of([[0, 1], [2]])
    for estimator in ESTIMATORS:
        with pytest.raises(InvalidInput, match="none of 2 documents has three words .* has 2"):
            estimate(short, estimator)
        with pytest.raises(InvalidInput, match="none of 0 documents"):
            estimate(short.select(0, 0), estimator)
        with pytest.raises(BoundExceeded, match="513 words takes 1,080,045,576 bytes"):
            estimate(batch_of([[0, 1, 2]], 513), estimator)
    enough = concatenate([short, batch_of([[0, 1, 1]])])
    with pytest.raises(InvalidInput, match='estimator is "median"; choose even, pooled'):
        estimate(enough, "median")
    with pytest.raises(InvalidInput, match="the seed is -2"):
        estimate(enough, "three-words", seed=-2)
