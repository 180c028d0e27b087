"""Documents of few words are read by the rows of these alone, to the bit."""

import numpy as np
import pytest

from streaming_moments.models import topics as topic_models
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.batch import CountBatch

WORDS, TOPICS = 200, 3


@pytest.mark.parametrize("alpha0", [0.0, 0.7])
@pytest.mark.parametrize("method", ["fixed-point", "gibbs"])
def test_proportions_are_those_by_all_rows(monkeypatch, alpha0, method):
    rng = np.random.default_rng(5)
    topics = rng.dirichlet(np.full(WORDS, 0.1), TOPICS).T
    model = TopicModel.from_topics(topics, np.array([0.5, 0.3, 0.2]), alpha0)
    counts = np.zeros((4, WORDS), dtype=int)
    for row in range(3):
        counts[row, rng.choice(WORDS, 5, replace=False)] = rng.integers(1, 4, 5)
    batches = [CountBatch.from_csr(counts), CountBatch.from_csr(counts[3:])]
    narrow = [model._as_read(batch, 1e-3)[0].n_words for batch in batches]
    found = [model.transform(batch, method, 1) for batch in batches]
    monkeypatch.setattr(topic_models, "_FEW", 1 << 20)
    # without an entry they are few of any model
    assert narrow[0] <= 15
    assert narrow[1] == 1
    whole = [model.transform(batch, method, 1) for batch in batches]
    assert np.array_equal(found[0], whole[0])
    assert np.allclose(found[1], [model.weights])
