"""Ruffini, Casanellas, Gavaldà 2018, Figure 2, at one number of documents."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from streaming_moments import CountBatch
from streaming_moments.decompositions.methods import METHODS, decompose
from streaming_moments.statistics.counts.estimators import pooled_moments
from streaming_moments.synthetic.corpora import single_topic_corpus

DOCUMENTS, N_WORDS, N_TOPICS, REPETITIONS = 400, 100, 5, 10


def nearly_equal_topics(seed):
    """Topics uniform in a narrow band, twenty words a document: the hardest that was drawn."""
    rng = np.random.default_rng(seed)
    weights = rng.random(N_TOPICS)
    topics = 20 + N_WORDS * N_TOPICS * rng.random((N_WORDS, N_TOPICS))
    topics /= topics.sum(axis=0)
    chosen = rng.choice(N_TOPICS, size=DOCUMENTS, p=weights / weights.sum())
    return CountBatch.from_csr(rng.multinomial(20, topics[:, chosen].T)), topics


def far_topics(seed):
    corpus = single_topic_corpus(DOCUMENTS, N_WORDS, N_TOPICS, seed=seed)
    return corpus.batch, corpus.topics


def frobenius_error(found, truth):
    squares = ((found[:, :, None] - truth[:, None, :]) ** 2).sum(axis=0)
    rows, columns = linear_sum_assignment(squares)
    return np.sqrt(squares[rows, columns].sum())


@pytest.mark.parametrize("draw", [nearly_equal_topics, far_topics])
def test_joint_errs_least_of_all_methods_on_the_same_moments(draw):
    errors = {method: [] for method in METHODS}
    for seed in range(REPETITIONS):
        batch, topics = draw(seed)
        moments = pooled_moments(batch)
        for method in METHODS:
            found = decompose(moments, N_TOPICS, method, seed)
            errors[method].append(frobenius_error(found.topics, topics))
    means = {method: np.mean(values) for method, values in errors.items()}
    assert min(means, key=means.get) == "joint", means
