"""Inference with a model: assignment, proportions, parts."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments import CountBatch, MomentTopics, TopicModel
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus


@pytest.fixture(scope="module")
def corpus():
    return lda_corpus(300, n_words=200, n_topics=4, alpha0=0.8, mean_length=200, seed=5)


@pytest.fixture(scope="module")
def model(corpus):
    return TopicModel.from_topics(corpus.topics, corpus.weights, corpus.alpha0)


def test_fixed_point_and_gibbs_find_the_proportions(corpus, model):
    fixed = model.transform(corpus.batch)
    gibbs = model.transform(corpus.batch, "gibbs", seed=3)
    for found in (fixed, gibbs):
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert np.abs(found - corpus.proportions).sum(axis=1).mean() < 0.15
    assert np.abs(fixed - gibbs).sum(axis=1).mean() < 0.1
    assert np.array_equal(gibbs, model.transform(corpus.batch, "gibbs", seed=3))
    assert not np.array_equal(gibbs, model.transform(corpus.batch, "gibbs", seed=4))


def test_gibbs_samples_the_posterior_of_a_tiny_document():
    """Two tokens, two topics: the posterior mean by summing over all four assignments."""
    topics = np.array([[0.7, 0.2], [0.3, 0.8]])
    model = TopicModel.from_topics(topics, np.array([0.6, 0.4]), alpha0=1.0)
    alpha = model.alpha
    total, mean = 0.0, np.zeros(2)
    for one in range(2):
        for two in range(2):
            prior = alpha[one] * (alpha[two] + (one == two))
            chance = prior * topics[0, one] * topics[1, two]
            counts = np.bincount([one, two], minlength=2)
            mean += chance * (alpha + counts) / 3.0
            total += chance
    # smoothing as small as can be: the test is about the sampler
    batch = CountBatch.from_csr([[1, 1]] * 4000)
    found = model.transform(batch, "gibbs", seed=0, iterations=30, smoothing=1e-9)
    np.testing.assert_allclose(found.mean(axis=0), mean / total, atol=0.01)


@pytest.mark.parametrize(("iterations", "kept"), [(2, 1), (3, 2), (6, 3), (9, 5)])
def test_the_first_half_of_the_sweeps_of_gibbs_is_not_in_the_mean(iterations, kept):
    model = TopicModel.from_topics(np.full((2, 2), 0.5), np.array([0.5, 0.5]), alpha0=1.0)
    batch = CountBatch.from_csr([[2, 3]] * 200)
    found = model.transform(batch, "gibbs", seed=0, iterations=iterations)
    # a state gives a topic (0.5 + its tokens) / (1 + 5): the mean of so many states is a whole
    # number of tokens by so many, and that of more of them is not
    tokens = (found[:, 0] * 6 - 0.5) * kept
    np.testing.assert_allclose(tokens, tokens.round(), atol=1e-9)
    fewer = tokens * (kept - 1) / kept
    assert kept == 1 or np.abs(fewer - fewer.round()).max() > 0.1


def test_single_topic_posterior_and_assignment_agree():
    corpus = single_topic_corpus(500, seed=1)
    model = TopicModel.from_topics(corpus.topics, corpus.weights)
    posterior = model.transform(corpus.batch)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    assert np.array_equal(posterior.argmax(axis=1), model.assign(corpus.batch))
    assert (model.assign(corpus.batch) == corpus.proportions.argmax(axis=1)).mean() > 0.97


def test_empty_documents_get_the_weights(model):
    empty = CountBatch.from_csr(np.zeros((2, 200), dtype=int))
    np.testing.assert_allclose(model.transform(empty), [model.weights] * 2)
    np.testing.assert_allclose(model.transform(empty, "gibbs", seed=1), [model.weights] * 2)
    assert model.assign(empty).tolist() == [int(model.weights.argmax())] * 2


def test_bad_calls(corpus, model):
    with pytest.raises(ForeignStatistics, match="200 words.*3 words"):
        model.transform(CountBatch.from_csr([[1, 1, 1]]))
    with pytest.raises(InvalidInput, match='"fixed-point" or "gibbs"'):
        model.transform(corpus.batch, "variational")
    with pytest.raises(InvalidInput, match="needs a seed"):
        model.transform(corpus.batch, "gibbs")
    with pytest.raises(InvalidInput, match="smoothing is 0"):
        model.assign(corpus.batch, smoothing=0)


def test_parts_make_the_model_again(model):
    again = TopicModel.from_parts(model.arrays(), model.attributes())
    assert all(
        np.array_equal(a, b, equal_nan=True)
        for a, b in zip(again.arrays().values(), model.arrays().values(), strict=True)
    )
    assert again.attributes() == model.attributes()
    with pytest.raises(InvalidInput, match="lacks topics"):
        TopicModel.from_parts({}, {})


def test_topics_with_large_bars_are_named(monkeypatch):
    topics, bars = np.eye(3), np.array([0.2, 1.4, 1.1])
    model = TopicModel.from_topics(topics, np.full(3, 1 / 3))
    rough = replace(model, refined=1, topic_bars=bars, word_bars=topics)
    assert rough.rough_sentence.startswith("2 of 3 topics have an error bar above 1, so half")
    for one in (model, replace(rough, refined=0), replace(rough, topic_bars=bars / 2)):
        assert not one.rough_sentence
    monkeypatch.setattr(TopicModel, "rough_sentence", rough.rough_sentence)
    counts = lda_corpus(300, n_words=40, n_topics=2, alpha0=0.3, mean_length=30).batch.to_csr()
    with pytest.warns(UserWarning, match="2 of 3 topics have an error bar above 1"):
        MomentTopics(2).fit(counts)
