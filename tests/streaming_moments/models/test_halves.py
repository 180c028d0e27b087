"""Halves: bars that are as long as the errors, and likelihoods that no start has seen."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock, fit
from streaming_moments.errors import InvalidInput
from streaming_moments.models import halves, second_start
from streaming_moments.models.halves import (
    BAR_ROUNDS,
    TRIED_ROUNDS,
    HalfRows,
    HeldOut,
    cross_fit,
    dual_topics,
    even_pairs,
    fits_of,
    likeliest_alpha,
    mean_logarithms,
    noise,
    odd_pairs,
    pair_logarithms,
    predicting_rounds,
    scored,
    scored_with,
)
from streaming_moments.models.numbers.number_search import numbers_of_topics
from streaming_moments.models.passes.in_memory import polished
from streaming_moments.models.refinement import (
    PairTopics,
    begun,
    dirichlet_pair_weights,
    pair_rows,
)
from streaming_moments.models.rows import InMemory
from streaming_moments.models.second_start import drawn_anew, made_there, repeated_topics
from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.matching import match_topics
from streaming_moments.quality.prediction import completion_perplexity
from streaming_moments.statistics.counts.pair_rows import PairRows
from streaming_moments.statistics.counts.weighted import WeightedStatistics
from streaming_moments.synthetic import lda_corpus

N_WORDS = 1000


def corpus(documents, weights, alpha0, length, seed, spread=0.0, documents_seed=None):
    """Documents of Zipf topics of unlike weights, and the topics."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, N_WORDS + 1)
    topics = rng.dirichlet(150 * zipf / zipf.sum(), size=weights.size).T
    topics = topics[np.argsort(-(topics @ weights), kind="stable")]
    rng = rng if documents_seed is None else np.random.default_rng(documents_seed)
    if alpha0:
        shares = rng.dirichlet(alpha0 * weights, size=documents)
    else:
        shares = np.eye(weights.size)[rng.choice(weights.size, documents, p=weights)]
    lengths = length * np.exp(spread * rng.standard_normal(documents) - spread**2 / 2)
    counts = rng.poisson(lengths[:, None] * (shares @ topics.T))
    return CountBatch.from_csr(counts), topics


def gathered(batch, blocks=1, columns=14, halves=True):
    basis = Basis.from_pilot(batch.select(0, min(batch.documents, 3000)), max_topics=columns)
    given = (batch, basis)
    parts = [
        MomentStatistics.of(*given, RowBlock(place, blocks), halves=halves)
        for place in range(blocks)
    ]
    return InMemory(parts)


@pytest.fixture(scope="module")
def small():
    return corpus(1500, np.array([0.4, 0.3, 0.2, 0.1]), 1.0, 60, seed=3)[0]


@pytest.mark.parametrize(
    ("documents", "topics", "alpha0", "length", "spread"),
    [(4000, 10, 1.0, 100, 0.0), (8000, 12, 1.0, 60, 1.0), (6000, 12, 0.0, 60, 0.0)],
)
def test_bars_are_as_long_as_the_errors(documents, topics, alpha0, length, spread):
    weights = np.geomspace(1, 0.15, topics)
    given = (documents, weights / weights.sum(), alpha0, length)
    batch, truth = corpus(*given, seed=topics, spread=spread)
    model = fit(*gathered(batch).blocks, topics, alpha0)
    rows, columns, distances = match_topics(truth, model.topics)
    errors = np.empty(topics)
    errors[columns] = 2 * distances
    # measured .96, .97 and .90; .97, .97 and 1.05; .65 to .67 and .90 to .94
    assert np.corrcoef(model.topic_bars, errors)[0, 1] > 0.9
    assert model.topic_bars.mean() == pytest.approx(errors.mean(), rel=0.2)
    # of words: standard errors, within one of which are two thirds
    off = np.abs(model.topics[:, columns] - truth[:, rows])
    bars, told = model.word_bars[:, columns], truth[:, rows] > 2e-3
    assert 0.6 < (off[told] < bars[told]).mean() < 0.8
    assert (off[told] < 2 * bars[told]).mean() > 0.88


def test_bars_are_the_same_however_the_rows_are_divided_or_kept(small):
    one = fit(*gathered(small).blocks, 4, 1.0)
    for blocks, kept in ((1, False), (3, True), (7, False)):
        rows = replace(gathered(small, blocks), keeps_halves=kept)
        found = one.trusted(HalfRows.of(rows))
        np.testing.assert_array_equal(found.topic_bars, one.topic_bars)
        np.testing.assert_array_equal(found.word_bars, one.word_bars)
        assert found.held_out == one.held_out


def test_held_out_likelihood_is_that_of_the_pairs(small):
    rows = gathered(small, 3)
    state = begun(fit(*gathered(small).blocks, 4, 1.0, refine=3).pair_topics(rows.basis.core))
    whole, even = gathered(small).blocks[0], gathered(small).blocks[0].even_pair_counts
    expected = state.topics @ state.pair_weights @ state.topics[: state.core].T
    expected = expected / expected.sum()
    for pairs, counts in ((even_pairs, even), (odd_pairs, whole.pair_counts - even)):
        parts = rows.prepared("", pairs).each("", pair_logarithms, state)
        told = np.where(counts > 0, counts * np.log(np.where(counts > 0, expected, 1.0)), 0.0)
        [found] = mean_logarithms(parts, state)
        assert found == pytest.approx(told.sum() / counts.sum(), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_the_whole_matrix(small, dtype):
    statistics = gathered(small).blocks[0]
    factor = np.random.default_rng(0).standard_normal((statistics.basis.core, 3))
    found = PairRows.of(statistics, dtype).products(factor)
    expected = statistics.pair_counts @ factor
    nearly = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, atol=nearly * np.abs(expected).max())


def test_exact_pairs_have_their_topics_by_the_dual():
    rng = np.random.default_rng(1)
    M, shares = rng.dirichlet(np.full(30, 0.3), size=3).T, rng.dirichlet(np.ones(3), size=5)
    Omega = shares.T @ shares / 5
    whole = PairTopics(M, Omega, M @ Omega.sum(axis=1), 20)
    np.testing.assert_allclose(M @ Omega @ M[:20].T @ dual_topics(whole), M, atol=1e-9)


def test_the_number_of_topics_that_predicts_is_the_planted_one():
    weights = np.geomspace(1, 0.3, 8)
    batch, _ = corpus(5000, weights / weights.sum(), 1.0, 80, seed=6)
    rows = gathered(batch)
    numbers = (4, 6, 8, 10, 12)
    found = [fit(*rows.blocks, k, 1.0).held_out for k in numbers]
    within, best = noise(found), max(one.mean for one in found)
    likely = [k for k, one in zip(numbers, found, strict=True) if one.mean >= best - within]
    assert min(likely) == 8
    gain, differing = found[2].gain(found[1])
    assert gain > 10 * differing


def test_rounds_that_predict(small):
    rows = gathered(small)
    start = fit(*rows.blocks, 4, 1.0, refine=0).pair_topics(rows.basis.core)
    assert predicting_rounds(HalfRows.of(rows), start) in (5, 10)
    # topics that are nearly alike take longer to come apart
    mean = start.expected[:, None]
    blurred = replace(start, topics=0.02 * start.topics + 0.98 * mean)
    assert predicting_rounds(HalfRows.of(rows), blurred) >= 5


def test_without_halves_there_are_no_bars(small):
    rows = gathered(small, halves=False)
    model = fit(*rows.blocks, 4, 1.0)
    assert model.topic_bars is model.word_bars is model.held_out is None
    assert "error bar" not in model.described().columns
    with pytest.raises(InvalidInput, match="have no halves .* give numbers in place of auto"):
        HalfRows.of(rows)
    # and what is fitted is the same
    np.testing.assert_array_equal(model.topics, fit(*gathered(small).blocks, 4, 1.0).topics)


def test_bars_go_with_their_topics_and_into_the_parts(small):
    model = fit(*gathered(small).blocks, 4, 1.0)
    again = TopicModel.from_parts(*model.parts())
    np.testing.assert_array_equal(again.word_bars, model.word_bars)
    assert again.held_out == model.held_out
    turned = model.reordered(np.array([2, 0, 3, 1]))
    np.testing.assert_array_equal(turned.topic_bars, model.topic_bars[[2, 0, 3, 1]])
    np.testing.assert_array_equal(turned.word_bars, model.word_bars[:, [2, 0, 3, 1]])
    arrays, attributes = model.parts()
    del arrays["word_bars"]
    with pytest.raises(InvalidInput, match="lacks word_bars; refit it"):
        TopicModel.from_parts(arrays, attributes)
    # passes over documents make topics of smaller errors
    after = polished(model, small, 1)
    assert np.array_equal(after.topic_bars, model.topic_bars)
    assert "of the fit before" in after.described().sentence


def test_bars_of_aged_documents(small):
    whole = gathered(small).blocks[0]
    aged = WeightedStatistics.of([(0.5, whole)])
    found, expected = fit(aged, 4, 1.0), fit(whole, 4, 1.0)
    np.testing.assert_allclose(found.topic_bars, expected.topic_bars, rtol=1e-3)


def test_a_half_without_documents_tells_nothing(small):
    one = small.select(0, 1)
    rows = gathered(small)
    alone = InMemory([MomentStatistics.of(one, rows.basis)])
    model = fit(*rows.blocks, 4, 1.0, refine=0)
    assert cross_fit(HalfRows.of(alone), model.pair_topics(rows.basis.core)) is None
    without = replace(model, topic_bars=None, word_bars=None, held_out=None)
    found = without.trusted(HalfRows.of(alone))
    assert found.held_out is found.topic_bars is found.word_bars is None
    with pytest.raises(InvalidInput, match="halves of the documents.* has no pair of words; give"):
        predicting_rounds(HalfRows.of(alone), model.pair_topics(rows.basis.core))


def test_noise_is_how_far_the_halves_differ_among_candidates():
    assert noise([HeldOut(-3.0, -2.0)]) == 0
    assert noise([HeldOut(-3.0, -2.0), HeldOut(-2.5, -1.5)]) == 0
    assert noise([HeldOut(-3.0, -2.0), HeldOut(-3.0, -1.0)]) == pytest.approx(0.25)


@pytest.fixture(scope="module")
def few():
    """Five topics of like weights, of which twenty are asked."""
    return corpus(2500, np.full(5, 0.2), 1.0, 60, seed=1)[0]


def test_where_topics_repeat_the_start_that_predicts_is_kept(few):
    kept = []
    for topics in (10, 14, 20):
        rows = gathered(few, columns=22)
        [statistics] = rows.blocks
        start = fit(statistics, topics, 1.0, refine=0)
        first = start.likelier(pair_rows(rows), 10).trusted(HalfRows.of(rows))
        found = fit(statistics, topics, 1.0)
        told, again = found.second_start, repeated_topics(start)
        assert start.second_start is None
        assert told.repeated == len(again) > 0
        anew = drawn_anew(start, again, seed=0)
        second = anew.likelier(pair_rows(rows), 10).trusted(HalfRows.of(rows))
        others = np.setdiff1d(np.arange(topics), again)
        np.testing.assert_allclose(anew.topics[:, others], start.topics[:, others])
        assert (told.gain, told.noise) == second.held_out.gain(first.held_out)
        taken = second if told.kept else first
        np.testing.assert_array_equal(found.topics, taken.topics)
        np.testing.assert_array_equal(found.word_bars, taken.word_bars)
        assert found.held_out.mean >= first.held_out.mean
        kept.append(told.kept)
        said = found.described()
        assert said.facts["second_start"]["kept"] == told.kept
        assert told.sentence in said.sentence
        assert type(found).from_parts(*found.parts()).second_start == told
    # measured 0.0001 to 0.0003 a pair
    assert any(kept)


def test_a_second_start_is_the_same_however_the_rows_are_divided(few):
    start = fit(*gathered(few, columns=22).blocks, 14, 1.0, refine=0)
    one, other, seeded = (
        made_there(start, pair_rows(rows), 4, HalfRows.of(rows), seed)
        for blocks, seed in ((1, 3), (3, 3), (1, 4))
        for rows in [gathered(few, blocks, columns=22)]
    )
    assert other.second_start == one.second_start
    np.testing.assert_array_equal(other.topics, one.topics)
    assert seeded.second_start != one.second_start


def test_topics_that_do_not_repeat_begin_once(small, few, monkeypatch):
    calls = []

    def drawn(*given):
        calls.append(given)
        return drawn_anew(*given)

    monkeypatch.setattr(second_start, "drawn_anew", drawn)
    assert fit(*gathered(small).blocks, 4, 1.0).second_start is None
    # nor where nothing is refined, or no halves tell which is better
    assert fit(*gathered(few, columns=22).blocks, 20, 1.0, refine=0).second_start is None
    without = fit(*gathered(few, columns=22, halves=False).blocks, 20, 1.0)
    assert without.second_start is None
    assert not calls
    assert fit(*gathered(few, columns=22).blocks, 20, 1.0).second_start
    assert len(calls) == 1


def test_rounds_are_found_in_memory_too(small):
    rows = gathered(small)
    [statistics] = rows.blocks
    start = fit(statistics, 4, 1.0, refine=0).pair_topics(rows.basis.core)
    rounds = predicting_rounds(HalfRows.of(rows), start)
    assert fit(statistics, 4, 1.0, refine="auto").refined == rounds
    for given in ((4, 1.0, "joint", "auto"), ("auto", 1.0, "joint", 0)):
        with pytest.raises(InvalidInput, match="have no halves.*give numbers in place of auto"):
            fit(*gathered(small, halves=False).blocks, *given)


def test_numbers_of_topics_are_found_in_memory_too(small):
    rows = gathered(small, columns=7)
    [statistics] = rows.blocks
    tried = {k: fit(statistics, k, 1.0, refine=2).held_out for k in (1, 2, 3, 5, 7)}
    assert tuple(tried) == numbers_of_topics(rows.basis, 10_000)
    least = max(one.mean for one in tried.values()) - noise(list(tried.values()))
    fewest = min(k for k, one in tried.items() if one.mean >= least)
    found = fit(statistics, "predict", 1.0, refine=2)
    assert found.n_topics == fewest
    np.testing.assert_array_equal(found.topics, fit(statistics, fewest, 1.0, refine=2).topics)


@pytest.mark.parametrize("planted", [1, 4, 8, 12])
def test_as_many_topics_are_told_apart_as_were_planted(planted):
    corpus = lda_corpus(4000, 1000, planted, 0.3, 80, seed=planted)
    statistics = MomentStatistics.of(corpus.batch, Basis.from_pilot(corpus.batch, max_topics=16))
    assert fit(statistics, "auto", 0.3, refine=2).n_topics == planted
    assert fit(statistics, "predict", 0.3, refine=2).n_topics >= planted


def test_bars_of_topics_that_were_not_refined_say_so(small):
    start = fit(*gathered(small).blocks, 4, 1.0, refine=0)
    said = "bars assume refined topics and can be twice too long here"
    assert said in start.described().sentence
    assert said not in replace(start, refined=1).described().sentence
    assert said not in replace(start, topic_bars=None, word_bars=None).described().sentence


def test_alpha_is_found_by_pairs_held_out():
    told = np.array([0.4, 0.3, 0.2, 0.1]), 1.0, 15
    rows = gathered(corpus(600, *told, seed=3)[0])
    [statistics] = rows.blocks
    given, found = fit(statistics, 4, 0.1), fit(statistics, 4, 0.1, alpha="auto")
    np.testing.assert_array_equal(found.topics, given.topics)
    both = HalfRows.of(rows)
    fits = fits_of(both, given.pair_topics(rows.basis.core), BAR_ROUNDS)

    def with_dirichlet(state, alpha0):
        weights = state.pair_weights.sum(axis=1)
        return replace(state, pair_weights=dirichlet_pair_weights(weights, alpha0))

    known = {
        alpha0: scored(both, [with_dirichlet(one, alpha0) for one in fits]).mean
        for alpha0 in np.geomspace(0.5, 2, 29)
    }
    several = [one.mean for one in scored_with(both, fits, list(known))]
    np.testing.assert_allclose(several, list(known.values()), rtol=1e-7)
    assert found.alpha0 == given.alpha0
    assert found.alpha_sum == pytest.approx(max(known, key=known.get), rel=0.05)
    # from wherever it starts
    assert {likeliest_alpha(both, fits, near) for near in (0.01, 0.3, 30.0)} == {found.alpha_sum}
    # of the documents it is 1, whatever the topics were begun with
    assert 0.5 <= found.alpha_sum <= 2
    others = corpus(600, *told, seed=3, documents_seed=8)[0]
    assert completion_perplexity(found, others) < 0.98 * completion_perplexity(given, others)


def test_an_alpha_that_nothing_tells_is_refused(small):
    with pytest.raises(InvalidInput, match="no alpha to estimate; leave out alpha auto"):
        fit(*gathered(small).blocks, 4, 0.0, alpha="auto")
    with pytest.raises(InvalidInput, match="have no halves"):
        fit(*gathered(small, halves=False).blocks, 4, 1.0, alpha="auto")
    with pytest.raises(InvalidInput, match='alpha is "best"; choose given, auto'):
        fit(*gathered(small).blocks, 4, 1.0, alpha="best")


def test_a_half_without_pairs_finds_no_number(small):
    basis = Basis.from_pilot(small, max_topics=2)
    one = replace(small.select(0, 200), halves=np.zeros(200, dtype=np.bool_))
    counted = MomentStatistics.of(one, basis)
    with pytest.raises(InvalidInput, match="halves of the records.*give the number of topics"):
        fit(counted, "auto", 1.0, refine=1)
    with pytest.raises(InvalidInput, match="halves of the documents.*fit with alpha .given"):
        fit(counted, 2, 1.0, refine=1, alpha="auto")


def test_a_second_start_that_predicts_no_better_is_not_kept(few, monkeypatch):
    """Those drawn anew are the mean, from which no round leads away.

    Of the halves in turn: of others the mean may well predict better than a topic found twice.
    """
    in_turn = replace(few, halves=np.arange(few.documents) % 2 == 1)
    rows = gathered(in_turn, columns=22)
    start = fit(*rows.blocks, 14, 1.0, refine=0)

    def worse(model, again, seed):
        topics = model.topics.copy()
        topics[:, again] = model.word_probabilities[:, None]
        return replace(model, topics=topics)

    monkeypatch.setattr(second_start, "drawn_anew", worse)
    first = start.likelier(pair_rows(rows), 10).trusted(HalfRows.of(rows))
    found = made_there(start, pair_rows(rows), 10, HalfRows.of(rows), seed=0)
    assert not found.second_start.kept
    np.testing.assert_array_equal(found.topics, first.topics)
    assert found.held_out == first.held_out


def test_words_outside_the_core_take_no_share_of_the_pairs(small):
    """The likelihood is of pairs with a core word, whose probabilities sum to 1."""
    basis = Basis.from_pilot(small, max_topics=6, core=200)
    statistics = MomentStatistics.of(small, basis)
    state = begun(fit(statistics, 4, 1.0, refine=3).pair_topics(basis.core))
    counts = statistics.even_pair_counts
    assert counts.shape == (N_WORDS, 200)
    expected = state.topics @ state.pair_weights @ state.topics[:200].T
    likelihood = np.log(np.where(counts > 0, expected / expected.sum(), 1.0))
    told = counts * likelihood
    parts = InMemory((statistics,)).prepared("", even_pairs).each("", pair_logarithms, state)
    assert mean_logarithms(parts, state) == pytest.approx([told.sum() / counts.sum()], rel=1e-6)


def test_rounds_that_gain_no_more_than_the_noise_are_not_taken(small, monkeypatch):
    rows = gathered(small)
    start = fit(*rows.blocks, 4, 1.0, refine=0).pair_topics(rows.basis.core)
    # a gain of .25 and a noise of .25; then of .5 and 0, which nobody asks for any more
    for told, taken in (
        ([(-9.0, -9.0), (-8.5, -9.0), (-8.0, -8.5)], TRIED_ROUNDS[0]),
        ([(-9.0, -9.0), (-8.5, -8.9), (-8.0, -8.9)], TRIED_ROUNDS[1]),
    ):
        scores = iter(HeldOut(*one) for one in told)
        monkeypatch.setattr(halves, "scored", lambda *_, scores=scores: next(scores))
        assert predicting_rounds(HalfRows.of(rows), start) == taken
