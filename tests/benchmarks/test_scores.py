import numpy as np
import pytest
from corpora import known_eta
from measure import Measurement
from methods import Fitted
from programme import Programme
from real_corpora import RealCorpus
from runs import runs_of
from scores import agreement, completion_perplexity, learned_alpha, score, topic_errors

from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus, topic_error


@pytest.fixture(scope="module")
def drawn():
    return lda_corpus(1500, 300, 4, alpha0=0.8, mean_length=60, concentration=50, seed=1)


@pytest.fixture(scope="module")
def corpus(drawn):
    batch = drawn.batch
    return RealCorpus(batch.select(0, 1000), batch.select(1000, 1500), None)


def test_agreement_is_that_of_partitions():
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert agreement(np.eye(3)[[2, 2, 0, 0, 1, 1]], labels) == pytest.approx(1)
    assert agreement(np.eye(2)[[0, 1, 0, 1, 0, 1]], labels) == pytest.approx(0)
    # one of three is split in two: 2 I / (H + H') with I = log 3
    split = agreement(np.eye(4)[[0, 3, 1, 1, 2, 2]], labels)
    other = np.log(3) * 2 / 3 + np.log(6) / 3
    assert split == pytest.approx(2 * np.log(3) / (np.log(3) + other))


def test_errors_by_topic_have_the_mean_of_the_matched_distance(drawn):
    rng = np.random.default_rng(0)
    found = drawn.topics[:, rng.permutation(4)] * rng.uniform(0.5, 1, drawn.topics.shape)
    errors = topic_errors(found, drawn.topics)
    assert errors.size == 4
    assert errors.mean() == pytest.approx(topic_error(found, drawn.topics))


def test_alpha_is_learned_from_documents(drawn, corpus):
    found = learned_alpha(drawn.topics, corpus.training)
    # the sum is one of a grid of factors of two
    assert 0.4 <= found.sum() <= 1.6
    assert found / found.sum() == pytest.approx(np.full(4, 0.25), rel=0.25)


def test_uniform_topics_predict_nothing_and_the_truth_predicts_best(drawn, corpus):
    alpha = drawn.alpha0 * drawn.weights
    truth = completion_perplexity(Fitted(drawn.topics, alpha), alpha, corpus)
    mean = np.repeat((drawn.topics @ drawn.weights)[:, None], 4, axis=1)
    assert truth < 0.9 * completion_perplexity(Fitted(mean, alpha), alpha, corpus)
    noisy = drawn.topics + 0.5 * mean
    other = Fitted(noisy / noisy.sum(axis=0), alpha)
    assert truth < completion_perplexity(other, alpha, corpus)


def test_a_method_without_alpha_is_scored_with_one_that_is_learned(drawn, corpus):
    found = score(Fitted(drawn.topics, None), corpus)
    assert np.isnan(found.perplexity)
    known = completion_perplexity(Fitted(drawn.topics, None), drawn.alpha0 * drawn.weights, corpus)
    assert found.perplexity_alike == pytest.approx(known, rel=0.01)


def test_documents_of_one_topic_are_predicted_best_without_an_alpha():
    drawn = single_topic_corpus(600, 100, 3, lengths=(10, 20), seed=2)
    corpus = RealCorpus(drawn.batch.select(0, 400), drawn.batch.select(400, 600), None)
    one = Fitted(drawn.topics, np.zeros(3), weights=drawn.weights)
    found = completion_perplexity(one, one.alpha, corpus)
    assert found < 0.95 * completion_perplexity(one, 3 * drawn.weights, corpus)


def test_parameters_of_planted_topics_are_in_the_order_of_their_words():
    # it compares the topics that it draws with the planted ones
    eta = known_eta(3, seed=2)
    assert eta.sum() == pytest.approx(200)


def test_of_several_runs_the_likeliest_is_kept():
    runs = [
        Measurement(f"c: m, {n} iterations, seed {s}", "done", 1.0 + s, figures=figures)
        for n, s, figures in [
            (10, 1, {"error": 0.3, "likelihood": -5.0}),
            (10, 2, {"error": 0.1, "likelihood": -4.0}),
            (10, 3, {"error": 0.2, "likelihood": float("nan")}),
            (20, 1, {"error": 0.4}),
        ]
    ]
    other = Measurement("c2: m, 10 iterations, seed 1", "done", 1.0, figures={"error": 9.0})
    ten, twenty = runs_of([*runs, other], "c")
    assert (ten.setting, twenty.setting) == ("m, 10 iterations", "m, 20 iterations")
    assert (ten.likeliest, twenty.likeliest) == (runs[1], runs[3])
    assert (ten.values("error"), ten.seconds) == ([0.1, 0.2, 0.3], 3.0)
    assert ten.shown("error", 1) == "0.2 (0.3, 0.1)"
    assert twenty.shown("error", 1) == "0.4"


def test_words_by_relevance_are_those_that_no_other_topic_has(drawn, corpus):
    # each topic shares its likeliest words with all others, and has words of its own behind them
    common = np.zeros(drawn.topics.shape[0])
    common[:10] = 0.08
    own = 0.2 * drawn.topics
    topics = common[:, None] + own
    found = score(Fitted(topics / topics.sum(axis=0), None), corpus)
    assert found.diversity_relevant > found.diversity
    assert -1 <= found.npmi_held_relevant <= found.npmi_relevant <= 1


def test_a_real_corpus_has_nmf_of_tf_idf_and_passes_that_end_by_themselves():
    names = [job.name for job in Programme("unused", (2000,), (20,), seeds=1, starts=0).jobs()]
    for method in ("this project, polish auto", "NMF, TF-IDF", "NMF, KL"):
        assert names.count(f"real reuters, k = 20: {method}") == 1
