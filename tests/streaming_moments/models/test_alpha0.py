"""Alpha0 that is found by pairs held out, against planted truths and against a fit that is told."""

import math
from dataclasses import replace

import numpy as np
import pytest

from streaming_moments import Basis, CountBatch, MomentStatistics, fit_by
from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.alpha0 import (
    TRIED,
    Alpha0Search,
    Alpha0Trial,
    SharedMoments,
    leading_rows,
    widest,
    with_alpha0_search,
)
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.reading.inference import completing_alpha
from streaming_moments.models.rows import InMemory
from streaming_moments.models.sweeps import seen_by
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.simplex import as_columns
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram, WeightedLengths
from streaming_moments.statistics.counts.tensor import tensor_sums
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.synthetic import lda_corpus, topic_error
from streaming_moments.synthetic.corpora import single_topic_corpus

TRUE = 0.1, 0.3, 1.0, 3.0


def counted(alpha0, seed=1, halves=True, documents=4000):
    corpus = lda_corpus(documents, 1200, 6, alpha0, 80, seed=seed, spread=0.5)
    basis = Basis.from_pilot(corpus.batch, max_topics=8)
    return corpus, MomentStatistics.of(corpus.batch, basis, halves=halves)


@pytest.fixture(scope="module")
def planted():
    return {alpha0: counted(alpha0) for alpha0 in TRUE}


@pytest.mark.parametrize("alpha0", TRUE)
def test_the_planted_value_is_found_and_costs_no_accuracy(planted, alpha0):
    corpus, statistics = planted[alpha0]
    found, told = fit_by(statistics, 6, "auto"), fit_by(statistics, 6, alpha0)
    # a step of the values tried is 2 to 2.5 times; the error is what counts
    assert abs(math.log(found.alpha0_search.alpha0 / alpha0)) < 0.35
    error = topic_error(found.topics, corpus.topics)
    assert error < 1.05 * topic_error(told.topics, corpus.topics)
    if alpha0 >= 1:
        assert error < 0.6 * topic_error(fit_by(statistics, 6, 0.1).topics, corpus.topics)


def test_documents_of_one_topic_each_have_a_small_one():
    corpus, _ = counted(1.0)
    rng = np.random.default_rng(4)
    of = rng.integers(6, size=3000)
    rows = np.array([rng.multinomial(60, corpus.topics[:, topic]) for topic in of])
    batch = CountBatch.from_csr(rows)
    statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=8))
    model = fit_by(statistics, 6, "auto")
    assert 0.05 == TRIED[0] <= model.alpha0_search.alpha0 <= 0.1
    error = topic_error(model.topics, corpus.topics)
    assert error < 1.1 * topic_error(fit_by(statistics, 6, 0.0).topics, corpus.topics)


def test_topics_that_are_alike_or_few_documents_call_for_no_larger_value():
    # documents of one topic each; the topics are flat, so those of the halves are noisy
    flat = single_topic_corpus(6000, 2000, 10, seed=1)
    # a hundred documents of a few topics
    few = lda_corpus(100, 600, 6, 0.1, 150, seed=1)
    for corpus, k, most in (flat, 10, 0.3), (few, 6, 0.3):
        basis = Basis.from_pilot(corpus.batch, max_topics=k)
        statistics = MomentStatistics.of(corpus.batch, basis, codocuments=False)
        search = TopicModel.likeliest_alpha0(InMemory((statistics,)), TopicOptions(topics=k))
        assert search.alpha0 <= most


def test_documents_are_read_with_a_larger_alpha_than_topics_are_fitted_with():
    _, statistics = counted(0.1, documents=300)
    model = fit_by(statistics, 6)
    assert model.alpha_sum > model.alpha0 == model.alpha0_search.alpha0
    restored = TopicModel.from_parts(*model.parts())
    assert (restored.alpha0, restored.alpha_sum) == (model.alpha0, model.alpha_sum)
    both = f"alpha0 {model.alpha0:.3g}, sum of alpha {model.alpha_sum:.3g}"
    assert both in repr(model)
    assert model.summary()["alpha0"] == model.alpha0
    assert "documents are read with an alpha whose sum is" in model.described().sentence


@pytest.mark.parametrize("number", [4, 9])
def test_a_wrong_number_of_topics_does_not_mislead(planted, number):
    _, statistics = planted[1.0]
    rows = InMemory((statistics,))
    search = TopicModel.likeliest_alpha0(rows, TopicOptions(topics=min(number, 8)))
    assert 0.5 <= search.alpha0 <= 1.6


def test_the_model_says_what_was_tried_and_comes_back_with_it(planted):
    _, statistics = planted[0.3]
    model = fit_by(statistics, 6, "auto")
    search = model.alpha0_search
    assert list(search.tried) == sorted(search.tried)
    assert len(set(search.tried) & set(TRIED)) == 4
    # the other is where the curve had its maximum
    [top] = set(search.tried) - set(TRIED)
    assert 0.2 < top < 0.5
    assert len(search.tried) == len(search.held_out) == len(search.noise)
    assert 0.2 <= search.tried[search.best] <= 0.5
    assert search.sentence in model.described().sentence
    assert model.described().facts["alpha0_search"]["tried"] == search.tried
    again = TopicModel.from_parts(*model.parts())
    assert again.alpha0_search == search
    assert fit_by(statistics, 6, 0.3).alpha0_search is None


def test_the_maximum_of_the_curve_is_tried_itself():
    # beside 1 the values are 0.6 and 1.5
    corpus = lda_corpus(6000, 2000, 10, 1.0, 100, seed=1, spread=0.5)
    basis = Basis.from_pilot(corpus.batch.select(0, 2000), max_topics=10)
    statistics = MomentStatistics.of(corpus.batch, basis, codocuments=False)
    search = TopicModel.likeliest_alpha0(InMemory((statistics,)), TopicOptions(topics=10))
    assert set(search.tried) - set(TRIED)
    assert search.alpha0 == pytest.approx(1, abs=0.1)


def test_topics_of_every_alpha0_follow_from_one_reading(planted):
    corpus, statistics = planted[1.0]
    whitening = widest(seen_by(InMemory((statistics,))), statistics.basis, 6)
    assert whitening.n_topics == 7
    leading = [leading_rows(statistics, whitening, 300)]
    moments = SharedMoments.of(tensor_sums(statistics, whitening), whitening, leading)
    assert np.allclose(moments.M1, fit_by(statistics, 6, 1.0, refine=0).word_probabilities[:300])

    def error(topics):
        return topic_error(as_columns(topics[:300]), as_columns(corpus.topics[:300]))

    errors = {one: error(moments.recovered(form_of(one), 6).topics) for one in (0.1, 1.0, 3.0)}
    assert errors[1.0] == min(errors.values())
    assert errors[1.0] < 1.1 * error(fit_by(statistics, 6, 1.0, refine=0).topics)


def test_the_same_is_found_each_time_and_from_any_blocks(planted):
    corpus, statistics = planted[0.3]
    blocks = [
        MomentStatistics.of(corpus.batch, statistics.basis, block)
        for block in (RowBlock(index, 3) for index in range(3))
    ]
    one, three, again = (
        TopicModel.fit(InMemory(tuple(some)), TopicOptions(topics=6, alpha0="auto"))
        for some in ([statistics], blocks, blocks)
    )
    assert again.alpha0_search == three.alpha0_search
    assert np.array_equal(again.topics, three.topics)
    # sums over blocks are rounded otherwise
    assert (three.alpha0, three.alpha_sum) == (one.alpha0, one.alpha_sum)
    assert np.allclose(three.alpha0_search.held_out, one.alpha0_search.held_out, atol=1e-6)
    assert np.allclose(three.topics, one.topics, atol=1e-6)


def test_without_halves_it_is_a_tenth_and_the_model_says_why():
    _, statistics = counted(1.0, halves=False, documents=500)
    model = fit_by(statistics, 3, "auto")
    assert model.alpha0 == 0.1
    assert "have no halves" in model.described().sentence
    assert np.array_equal(model.topics, fit_by(statistics, 3, 0.1).topics)


def test_a_given_value_changes_no_bit(planted):
    _, statistics = planted[0.1]
    found = fit_by(statistics, 6, "auto")
    told = fit_by(statistics, 6, found.alpha0_search.alpha0)
    assert np.array_equal(found.topics, told.topics)
    assert np.array_equal(found.weights, told.weights)
    assert (found.topic_bars >= told.topic_bars).all()


def test_topics_and_rounds_are_found_with_it(planted):
    _, statistics = planted[0.3]
    model = fit_by(statistics, "auto", "auto", refine="auto")
    assert 5 <= model.n_topics <= 10
    assert 0.2 <= model.alpha0 <= 0.5


def test_bars_hold_how_far_topics_move_within_the_noise():
    topics = np.array([[0.5, 0.1], [0.3, 0.2], [0.1, 0.3], [0.1, 0.4]])
    model = replace(
        TopicModel.from_topics(topics, np.array([0.6, 0.4])),
        topic_bars=np.array([0.03, 0.04]),
        word_bars=np.full((4, 2), 0.01),
    )
    search = Alpha0Search((0.1, 0.2), (-8.0, -8.001), (0.0, 0.01))
    # of three leading words the topics are columns of sum 1; the second has its columns turned
    best = topics[:3] / topics[:3].sum(axis=0)
    moved = best.copy()
    moved[:2, 0] += 0.02, -0.02
    nearest, other = (Alpha0Trial(HeldOut(-8.0, -8.0), 0.2, one) for one in (best, moved[:, ::-1]))
    found = with_alpha0_search(model, search, nearest, other)
    assert np.allclose(found.topic_bars, [np.hypot(0.03, 0.04), 0.04])
    assert np.allclose(found.word_bars[:, 1], 0.01)
    mass = topics[:3, 0].sum()
    expected = np.hypot(0.01, [0.02 * mass, 0.02 * mass, 0.0, 0.04 * topics[3, 0]])
    assert np.allclose(found.word_bars[:, 0], expected)
    # nothing is near: bars stay
    alone = with_alpha0_search(model, search, nearest)
    assert np.array_equal(alone.topic_bars, model.topic_bars)
    assert alone.alpha0_search == search


def test_at_either_end_the_end_is_taken():
    falling = Alpha0Search((0.0, 0.05, 0.1, 0.3), (-8.0, -8.1, -8.2, -8.3), (0.0,) * 4)
    assert falling.alpha0 == 0.0
    rising = Alpha0Search((1.0, 3.0, 7.0, 10.0), (-8.3, -8.2, -8.1, -8.0), (0.0,) * 4)
    assert rising.alpha0 == 10.0
    assert "the largest tried" in rising.sentence


def test_what_is_within_the_noise_is_named():
    search = Alpha0Search((0.1, 0.3, 0.5, 1.0), (-8.2, -8.0, -8.001, -8.3), (0.1, 0.0, 0.01, 0.1))
    assert search.within_noise == (2,)
    assert search.sentence.endswith("0.3 to 0.5 are within the noise")


@pytest.mark.parametrize("wrong", [-0.5, 1e9])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidInput, match="alpha0 is"):
        TopicOptions(topics=3, alpha0=wrong)


def test_more_topics_than_columns_are_refused_before_a_trial(planted):
    _, statistics = planted[0.1]
    with pytest.raises(NotIdentifiable, match="columns"):
        fit_by(statistics, 500, "auto")


def completion(corpus, documents, alpha, lengths):
    """Mean log-likelihood of the second half of drawn documents of a planted model."""
    rng = np.random.default_rng(7)
    proportions = rng.dirichlet(0.2 * corpus.weights, size=documents)
    words = proportions @ corpus.topics.T
    first, second = (
        CountBatch.from_csr(np.stack([rng.multinomial(half, row) for row in words]))
        for half in (lengths - lengths // 2, lengths // 2)
    )
    model = TopicModel.from_topics(corpus.topics, corpus.weights, alpha)
    read = model.transform(first) @ model.smoothed(1e-3).T
    return (second.to_csr().multiply(np.log(read))).sum() / second.tokens


def test_short_documents_are_read_with_a_larger_alpha_and_long_ones_with_the_same():
    corpus = lda_corpus(10, 300, 8, 0.2, seed=3)
    topics = TopicModel.from_topics(corpus.topics, corpus.weights).smoothed(1e-3)
    for size, least in ((4, 2.0), (200, 1.0)):
        lengths = LengthHistogram.of([size] * 100)
        found = completing_alpha(topics, corpus.weights, 0.2, lengths)
        assert found == completing_alpha(topics, corpus.weights, 0.2, lengths)
        assert (found == 0.2) == (least == 1)
        assert found >= 0.2 * least
    short = completing_alpha(topics, corpus.weights, 0.2, LengthHistogram.of([4] * 100))
    assert completion(corpus, 1000, short, 4) > completion(corpus, 1000, 0.2, 4) + 0.01


def test_the_alpha_of_reading_takes_lengths_with_weights_and_lengths_without_pairs():
    corpus = lda_corpus(10, 300, 8, 0.2, seed=3)
    both = LengthHistogram.of([4] * 50 + [60] * 50)
    parts = WeightedLengths.of(
        [(1.0, LengthHistogram.of([4] * 50)), (0.5, LengthHistogram.of([60] * 100))]
    )
    given = corpus.topics, corpus.weights, 0.2
    assert completing_alpha(*given, parts) == completing_alpha(*given, both)
    assert completing_alpha(*given, LengthHistogram.of([0, 1, 1])) == 0.2
    assert completing_alpha(*given, LengthHistogram.zero()) == 0.2
    assert completing_alpha(corpus.topics[:, :1], np.ones(1), 0.2, both) == 0.2
    # topics without weight are never drawn
    some = np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0])
    assert 0.0125 <= completing_alpha(corpus.topics, some, 0.0125, both) < 1


def test_a_fit_to_short_documents_predicts_better_with_the_alpha_that_it_finds():
    corpus = lda_corpus(6000, 300, 5, 0.2, 6, seed=2)
    basis = Basis.from_pilot(corpus.batch, max_topics=5)
    model = fit_by(MomentStatistics.of(corpus.batch, basis), 5, "auto")
    assert model.alpha_sum > 1.5 * model.alpha0
    assert 0.3 <= model.alpha_sum <= 1.5
