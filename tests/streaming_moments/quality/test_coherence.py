"""Coherence against the direct computation over documents; diversity and agreement by hand."""

import numpy as np
import pytest

from streaming_moments import Basis, CountBatch, MomentStatistics, TopicModel
from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.relevance import relevance, top_words
from streaming_moments.quality.agreement import adjusted_rand_index
from streaming_moments.quality.coherences import npmi_coherence, umass_coherence
from streaming_moments.quality.diversity import topic_diversity
from streaming_moments.synthetic.corpora import single_topic_corpus


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


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.7, 1.0])
def test_relevance_is_the_direct_sum_over_the_corpus(weight):
    rng = np.random.default_rng(3)
    counts, topics = rng.poisson(1.0, size=(40, 9)), rng.dirichlet(np.ones(9), size=2).T
    statistics = MomentStatistics.of(
        CountBatch.from_csr(counts), Basis(np.eye(9, 2, dtype=np.int8), 9)
    )
    mean = statistics.word_counts / statistics.length_histogram.C1
    found = relevance(topics, mean, weight)
    for word in range(9):
        share = counts[:, word].sum() / counts.sum()
        for topic in range(2):
            chance = topics[word, topic]
            expected = weight * np.log(chance) + (1 - weight) * np.log(chance / share)
            assert found[word, topic] == pytest.approx(expected)


def test_coherences_of_the_papers_twenty_top_words_are_the_direct_ones():
    rng = np.random.default_rng(1)
    counts = rng.poisson(rng.gamma(0.5, 1.0, size=(80, 30)))
    statistics = MomentStatistics.of(
        CountBatch.from_csr(counts), Basis(np.eye(30, 2, dtype=np.int8), 30)
    )
    present, topics = (counts > 0).astype(float), rng.dirichlet(np.ones(30), size=2).T
    single, joint = present.sum(axis=0), present.T @ present
    umass = umass_coherence(topics, statistics.document_frequencies, statistics.codocuments)
    npmi = npmi_coherence(
        topics, statistics.document_frequencies, statistics.codocuments, 80, number=20
    )
    for topic in range(2):
        top = np.argsort(-topics[:, topic])[:20]
        pairs = [(a, b) for place, a in enumerate(top) for b in top[place + 1 :]]
        logs = [np.log((joint[a, b] + 1) / single[a]) for a, b in pairs]
        assert umass[topic] == pytest.approx(sum(logs))
        scores = [
            np.log(80 * joint[a, b] / (single[a] * single[b])) / np.log(80 / joint[a, b])
            if joint[a, b]
            else -1.0
            for a, b in pairs
        ]
        assert npmi[topic] == pytest.approx(np.mean(scores))


def test_diversity_is_the_share_of_different_top_words():
    apart = np.kron(np.eye(3), np.full((4, 1), 0.25))
    assert topic_diversity(apart, 4) == 1.0
    assert topic_diversity(np.repeat(apart[:, :1], 3, axis=1), 4) == pytest.approx(1 / 3)
    # top words {0, 1}, {1, 2}, {0, 1}: three words in six places
    topics = np.array([[0.5, 0.1, 0.6], [0.4, 0.5, 0.3], [0.1, 0.4, 0.1]])
    assert topic_diversity(topics, 2) == 0.5
    for number in (0, 4):
        with pytest.raises(InvalidInput, match=f"{number} top words are asked for; give 1 to 3"):
            topic_diversity(topics, number)


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1.0),
        # contingency [[2, 0, 0], [0, 1, 1]]: (1 - 2/6) / (3/2 - 2/6)
        ([0, 0, 1, 1], [0, 0, 1, 2], 4 / 7),
        # [[1, 1], [1, 1]]: (0 - 4/6) / (2 - 4/6)
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
        # one cluster against every document alone says nothing
        ([3, 3, 3, 3], [0, 1, 2, 3], 0.0),
        ([3, 3, 3, 3], [7, 7, 7, 7], 1.0),
        ([0, 1, 2], [5, 3, 9], 1.0),
        ([4], [2], 1.0),
        # [[2, 1, 0], [1, 1, 0], [0, 0, 3]]: 4 together, sums of pairs 7 and 7 of 28
        ([0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2, 2, 2], (4 - 49 / 28) / (7 - 49 / 28)),
    ],
)
def test_adjusted_rand_index_of_small_assignments(one, two, expected):
    assert adjusted_rand_index(one, two) == pytest.approx(expected)
    assert adjusted_rand_index(two, one) == pytest.approx(expected)


def test_adjusted_rand_index_is_the_direct_count_of_pairs():
    rng = np.random.default_rng(2)
    one = rng.integers(0, 4, 60)
    two = np.where(rng.random(60) < 0.6, one, rng.integers(0, 5, 60))
    pairs = [(a, b) for a in range(60) for b in range(a)]
    in_one = np.array([one[a] == one[b] for a, b in pairs])
    in_two = np.array([two[a] == two[b] for a, b in pairs])
    # of random partitions with these sizes as many pairs agree by chance
    chance = in_one.sum() * in_two.sum() / len(pairs)
    most = (in_one.sum() + in_two.sum()) / 2
    expected = ((in_one & in_two).sum() - chance) / (most - chance)
    assert 0.1 < expected < 0.9
    assert adjusted_rand_index(one, two) == pytest.approx(expected)


def test_adjusted_rand_index_of_independent_assignments_is_about_zero():
    rng = np.random.default_rng(0)
    scores = [
        adjusted_rand_index(rng.integers(0, 4, 300), rng.choice(3, 300, p=[0.8, 0.1, 0.1]))
        for _ in range(200)
    ]
    assert abs(np.mean(scores)) < 4 * np.std(scores) / np.sqrt(200)
    with pytest.raises(InvalidInput, match=r"shapes \(2,\) and \(3,\)"):
        adjusted_rand_index([0, 1], [0, 1, 1])
    with pytest.raises(InvalidInput, match="shapes"):
        adjusted_rand_index([], [])


def test_assignments_by_the_true_model_agree_with_the_true_topics():
    corpus = single_topic_corpus(600, seed=4)
    model = TopicModel.from_topics(corpus.topics, corpus.weights)
    truth = corpus.proportions.argmax(axis=1)
    assert adjusted_rand_index(model.assign(corpus.batch), truth) > 0.9
    assert adjusted_rand_index(np.roll(model.assign(corpus.batch), 1), truth) < 0.1
