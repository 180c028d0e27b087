"""Coherence from counts against the direct computation over documents."""

import numpy as np
import pytest

from streaming_moments import Basis, CountBatch, MomentStatistics
from streaming_moments.errors import InvalidInput
from streaming_moments.quality import npmi_coherence, relevance, top_words, umass_coherence


@pytest.fixture
def counted():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.4, 1.5, size=(60, 12)))
    batch = CountBatch.from_csr(counts)
    statistics = MomentStatistics.of(batch, Basis(np.eye(12, 2, dtype=np.int8), 12))
    return counts > 0, statistics, rng.dirichlet(np.ones(12), size=3).T


def test_umass_is_the_direct_sum(counted):
    present, statistics, topics = counted
    found = umass_coherence(
        topics, statistics.document_frequencies, statistics.codocuments, number=5
    )
    for topic in range(3):
        top = np.argsort(-topics[:, topic])[:5]
        expected = sum(
            np.log(((present[:, top[b]] & present[:, top[a]]).sum() + 1) / present[:, top[a]].sum())
            for b in range(5)
            for a in range(b)
        )
        assert found[topic] == pytest.approx(expected)


def test_npmi_is_the_direct_mean(counted):
    present, statistics, topics = counted
    found = npmi_coherence(
        topics, statistics.document_frequencies, statistics.codocuments, 60, number=4
    )
    for topic in range(3):
        top = np.argsort(-topics[:, topic])[:4]
        scores = []
        for b in range(4):
            for a in range(b):
                both = (present[:, top[a]] & present[:, top[b]]).mean()
                if both == 0:
                    scores.append(-1.0)
                    continue
                lift = both / (present[:, top[a]].mean() * present[:, top[b]].mean())
                scores.append(np.log(lift) / -np.log(both))
        assert found[topic] == pytest.approx(np.mean(scores))


def test_npmi_of_words_never_together_is_minus_one():
    topics = np.array([[0.5], [0.5]])
    scores = npmi_coherence(topics, np.array([2, 2]), np.array([[2, 0], [0, 2]]), 4, 2)
    assert scores.tolist() == [-1.0]


def test_relevance_and_top_words():
    topics = np.array([[0.6, 0.0], [0.3, 0.5], [0.1, 0.5]])
    mean = np.array([0.6, 0.3, 0.1])
    assert top_words(relevance(topics, mean, 1.0), 2).tolist() == [[0, 1], [1, 2]]
    assert top_words(relevance(topics, mean, 0.0), 1).tolist() == [[0], [2]]
    assert relevance(topics, mean)[0, 1] == -np.inf
    with pytest.raises(InvalidInput, match="lambda is 2"):
        relevance(topics, mean, 2)
    with pytest.raises(InvalidInput, match="30 top words"):
        umass_coherence(topics, np.ones(3, int), np.ones((3, 3), int), 30)
