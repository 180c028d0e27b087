"""Document completion: halves of documents, and how well one predicts the other."""

import numpy as np
import pytest

from streaming_moments import CountBatch, TopicModel
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.quality import prediction
from streaming_moments.quality.prediction import completion_perplexity, halves
from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus


@pytest.fixture(scope="module")
def corpus():
    return lda_corpus(400, n_words=150, n_topics=4, alpha0=0.5, mean_length=60, seed=1)


def test_halves_are_the_batch_again(corpus):
    batch = CountBatch.from_csr(
        np.vstack([corpus.batch.to_csr().toarray()[:20], np.zeros((1, 150)), np.eye(1, 150)])
    )
    seen, held = halves(batch, seed=3)
    assert ((seen.to_csr() + held.to_csr()).toarray() == batch.to_csr().toarray()).all()
    assert np.array_equal(seen.lengths, (batch.lengths + 1) // 2)
    assert seen.vocabulary == held.vocabulary == batch.vocabulary
    assert np.array_equal(held.words, halves(batch, seed=3)[1].words)
    assert not np.array_equal(held.words, halves(batch, seed=4)[1].words)


def test_every_token_is_held_out_as_often():
    _, held = halves(CountBatch.from_csr([[4, 1, 1, 2]] * 8000), seed=0)
    means = held.to_csr().toarray().mean(axis=0)
    # hypergeometric: 4 of 8 tokens
    counts = np.array([4, 1, 1, 2])
    spread = np.sqrt(counts * (8 - counts) / 28 / 8000)
    assert (np.abs(means - counts / 2) < 4 * spread).all()


@pytest.mark.parametrize("alpha0", [0.0, 0.5])
@pytest.mark.parametrize("entries", [7, 1 << 16])
def test_perplexity_is_the_direct_sum_over_held_out_tokens(corpus, alpha0, entries, monkeypatch):
    monkeypatch.setattr(prediction, "_ENTRIES", entries)
    batch = corpus.batch.select(0, 15)
    model = TopicModel.from_topics(corpus.topics, corpus.weights, alpha0)
    seen, held = halves(batch, seed=5)
    proportions = model.transform(seen, smoothing=0.01)
    total = 0.0
    for document, counts in enumerate(held.to_csr().toarray()):
        chances = 0.99 * corpus.topics @ proportions[document] + 0.01 * model.word_probabilities
        total += (counts * np.log(np.maximum(chances, 1e-300))).sum()
    found = completion_perplexity(model, batch, seed=5, smoothing=0.01)
    assert found == pytest.approx(np.exp(-total / held.tokens))


def test_the_true_model_predicts_better_than_others(corpus):
    truth = TopicModel.from_topics(corpus.topics, corpus.weights, 0.5)
    unigrams = TopicModel.from_topics(truth.word_probabilities[:, None], np.ones(1))
    uniform = TopicModel.from_topics(np.full((150, 1), 1 / 150), np.ones(1))
    rng = np.random.default_rng(0)
    noise = 0.7 * corpus.topics + 0.3 * rng.dirichlet(np.ones(150), size=4).T
    noisy = TopicModel.from_topics(noise, corpus.weights, 0.5)
    models = (truth, noisy, unigrams, uniform)
    scores = [completion_perplexity(model, corpus.batch) for model in models]
    assert scores[0] < scores[1] < scores[3]
    assert scores[0] < 0.9 * scores[2]
    assert scores[3] == pytest.approx(150)


def test_perplexity_of_single_topic_documents_nears_the_entropy_of_their_topics():
    corpus = single_topic_corpus(2000, n_words=30, n_topics=3, lengths=(100, 200), seed=3)
    model = TopicModel.from_topics(corpus.topics, corpus.weights)
    entropies = -(corpus.topics * np.log(corpus.topics)).sum(axis=0)
    tokens = corpus.batch.lengths @ corpus.proportions
    expected = np.exp(tokens @ entropies / tokens.sum())
    assert completion_perplexity(model, corpus.batch) == pytest.approx(expected, rel=0.02)


def test_batches_that_cannot_be_scored_are_refused(corpus):
    model = TopicModel.from_topics(corpus.topics, corpus.weights, 0.5)
    with pytest.raises(InvalidInput, match="none of 3 documents has two words"):
        completion_perplexity(model, CountBatch.from_csr(np.eye(3, 150)))
    with pytest.raises(ForeignStatistics, match="count them with the model's vocabulary"):
        completion_perplexity(model, CountBatch.from_csr(np.ones((2, 3))))
    with pytest.raises(InvalidInput, match="smoothing is 2"):
        completion_perplexity(model, corpus.batch, smoothing=2)
