"""How many topics, states and components there are, by what halves of the records say."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.fit import fit, fit_by, search_topics
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.numbers.number_search import (
    NumberSearch,
    Trial,
    furthest_apart,
    searched,
    searched_by_fits,
    telling,
)
from streaming_moments.models.rows import InMemory
from streaming_moments.sklearn import (
    MomentBernoulliMixture,
    MomentCommunities,
    MomentGaussianMixture,
    MomentHMM,
    MomentViews,
)
from streaming_moments.sklearn.topics import MomentTopics
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.ends import EdgeBatch
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.synthetic.corpora import lda_corpus
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences, view_records
from streaming_moments.synthetic.mixtures import mixture_rows
from streaming_moments.synthetic.sets import feature_sets


def alike(means, noise=0.0):
    """A curve whose halves differ by the noise at every other number."""
    return {
        k: HeldOut(mean + noise * (place % 2), mean - noise * (place % 2))
        for place, (k, mean) in enumerate(means.items())
    }


def test_one_more_topic_tells_little_where_it_gains_less_than_a_quarter_of_the_mean():
    assert telling({}) is None
    assert telling(alike({3: -8.0})) == 3
    # each gains 1 up to 4, then 0.26 or 0.24
    assert telling(alike({1: -9, 2: -8, 4: -6, 5: -5.74})) == 5
    assert telling(alike({1: -9, 2: -8, 4: -6, 5: -5.76})) == 4
    # a later number counts too, by what it gains a topic
    assert telling(alike({1: -9, 2: -8, 3: -7.9, 4: -7})) == 4
    # gains within the noise are none
    assert telling(alike({1: -9, 2: -8.9}, noise=0.3)) == 1
    assert telling(alike({1: -9, 2: -8.9}, noise=0.01)) == 2


def trials_of(asked, limit):
    def trial_of(number):
        asked.append(number)
        return Trial(HeldOut(*(2 * [min(number, limit) - 200.0])))

    return trial_of


def test_numbers_between_those_of_the_curve_are_tried_until_the_gap_is_small():
    asked = []
    found = searched((1, 5, 7, 10), trials_of(asked, 8), "auto")
    assert (found.separable, set(found.curve)) == (8, {1, 5, 7, 8, 9, 10})
    assert asked[:4] == [1, 5, 7, 10]
    assert sorted(asked[4:]) == [8, 9]
    # a number that cannot be fitted is not asked for again
    asked.clear()
    known = alike({1: -9, 4: -6, 9: -6})

    def some(number):
        asked.append(number)
        return Trial(known[number]) if number in known else None

    found = searched(known, some, "auto")
    assert (found.separable, set(found.curve)) == (4, {1, 4, 9})
    assert len(asked) == len(set(asked)) == 5
    # of many the nearest twentieth is as good
    asked.clear()
    assert 97 <= searched((1, 80, 100, 150), trials_of(asked, 97), "auto").separable <= 101
    # what predicts best is one of those that were given
    asked.clear()
    assert searched((1, 5, 7, 10), trials_of(asked, 8), "predict").predicting == 10
    assert asked == [1, 5, 7, 10]


def test_no_larger_numbers_are_tried_after_three_that_are_no_better():
    asked = []
    searched(range(1, 20), trials_of(asked, 4), "predict")
    assert asked == [1, 2, 3, 4, 5, 6, 7]
    asked.clear()
    searched(range(1, 20), trials_of(asked, 4), "predict", worse=0)
    assert asked == [*range(1, 20)]
    # one of which all states are found again is better
    asked.clear()

    def again(number):
        asked.append(number)
        return Trial(HeldOut(-9.0, -9.0), 0.1 if number in (1, 4) else 2.0)

    searched(range(1, 20), again, "predict")
    assert asked == [1, 2, 3, 4, 5, 6, 7]


def test_states_that_are_found_again_count_up_to_the_likeliest():
    curve = alike({1: -9.0, 2: -8.0, 3: -7.0, 4: -7.5})
    assert NumberSearch(curve, {1: 0.0, 2: 0.9, 3: 0.2, 4: 0.1}).separable == 3
    assert NumberSearch(curve, {1: 0.0, 2: 0.2, 3: 0.6, 4: 0.1}).separable == 2
    assert NumberSearch(curve, {3: 0.6, 4: 0.1}).separable == 1
    told = NumberSearch(curve, {1: 0.0, 2: 0.2, 3: 0.6}, "states").sentence()
    assert told.startswith("chose 2 states: both halves find all of them")
    assert "; 3 predict best; gain of each: 2 +1, 3 +1, 4 -0.5" in told
    told = NumberSearch(curve, {1: 0.0, 2: 0.2, 3: 0.6}, "states").sentence("predict")
    assert told.startswith("chose 3 states: they predict best; 2 are separable; gain of each")
    assert NumberSearch({}).sentence() == ""
    with pytest.raises(InvalidInput, match="none of the numbers of topics could be fitted"):
        NumberSearch({}).found("auto")
    assert furthest_apart(np.array([0.3]), np.ones((1, 2))) == 0.0
    assert furthest_apart(np.array([0.3, 0.1]), np.ones((2, 2))) == np.inf


def hidden_chain(k, seed):
    drawn = markov_sequences(500, length=40, n_symbols=8, k=k, seed=seed).batch
    ends = zip(drawn.offsets, drawn.offsets[1:], strict=False)
    return MomentHMM("auto", 8, refine=30), [drawn.symbols[first:last] for first, last in ends]


def views(k, seed):
    drawn = view_records(3000, sizes=(9, 8, 7), k=k, seed=seed).batch
    return MomentViews("auto"), [view.to_csr() for view in drawn.views]


def sets(k, seed):
    return MomentBernoulliMixture("auto"), feature_sets(4000, 30, k, seed=seed).batch.to_csr()


def noisy_sets(k, seed):
    # features that say nothing of the component are none
    estimator, X = sets(k, seed)
    noise = np.random.default_rng(seed).random((4000, 10)) < 0.3
    return estimator, np.hstack([X.toarray(), noise.astype(np.int8)])


def clusters(k, seed):
    return MomentGaussianMixture("auto"), mixture_rows(3000, 16, k, 4.0, seed=seed).rows


def noisy_clusters(k, seed):
    # columns of noise, of other variances than the rest
    estimator, X = clusters(k, seed)
    noise = 2 * np.random.default_rng(seed).normal(size=(3000, 6))
    return estimator.set_params(covariance_type="tied-diag"), np.hstack([X, noise])


def graph(k, seed):
    drawn = community_graph(200, communities=k, inside=0.4, outside=0.05, alpha0=0.0, seed=seed)
    return MomentCommunities("auto", alpha0=0.0), drawn.batch.to_csr()


@pytest.mark.parametrize(
    ("drawn", "planted"),
    [
        (hidden_chain, (2, 3)),
        (views, (2, 3, 5)),
        (sets, (1, 2, 4, 6)),
        (noisy_sets, (2, 4)),
        (clusters, (1, 3, 6, 10)),
        (noisy_clusters, (1, 3, 6)),
        (graph, (2, 4)),
    ],
)
def test_the_planted_number_is_found(drawn, planted):
    for k in planted:
        for seed in range(2):
            estimator, X = drawn(k, seed)
            found = estimator.fit(X)
            assert found.model_.n_topics == k, (k, seed, found.number_search_.sentence())
            assert found.number_search_.separable == k
            assert found.number_search_.sentence().startswith(f"chose {k} ")


@pytest.mark.parametrize("k", [2, 4])
def test_the_planted_number_of_communities_is_found_by_edges(k):
    drawn = community_graph(200, communities=k, inside=0.4, outside=0.05, alpha0=0.0, seed=k)
    nodes = Vocabulary(tuple(map(str, range(200))), core=200)
    batch = EdgeBatch.of(drawn.edges, nodes=200)

    def rows(halves):
        return InMemory((EdgesFoundation(nodes, halves=halves).of_edges(batch),))

    options = Blockmodel.Options(topics=1)
    found = searched_by_fits(Blockmodel, rows(True), options, "auto", range(1, 8))
    assert (found.separable, found.predicting) == (k, k)
    # the likelihood is that of the edges of one half under all pairs of nodes
    trial = Blockmodel.trial(rows(True), replace(options, topics=k))
    assert -np.log(200 * 199) < trial.held_out.mean < 0
    with pytest.raises(InvalidInput, match="have no halves of the edges"):
        Blockmodel.trial(rows(False), options)


def test_labels_of_real_rows_are_about_as_many_as_are_found():
    from sklearn.datasets import load_digits, load_iris, load_wine
    from sklearn.preprocessing import StandardScaler

    for load, bounds in ((load_iris, (2, 3)), (load_wine, (3, 4)), (load_digits, (8, 12))):
        X = load(return_X_y=True)[0]
        X = StandardScaler().fit_transform(X[np.random.default_rng(0).permutation(len(X))])
        found = MomentGaussianMixture("auto").fit(X)
        assert bounds[0] <= found.model_.n_topics <= bounds[1], found.number_search_.sentence()


def test_what_cannot_be_fitted_is_refused_with_the_reason():
    whole = MomentBernoulliMixture(1).fit(feature_sets(300, 8, 2).batch.to_csr()).statistics_
    empty = InMemory((replace(whole, even_pair_counts=np.zeros_like(whole.even_pair_counts)),))
    options = BernoulliMixture.Options(topics=1)
    with pytest.raises(InvalidInput, match="halves of the records has no pair to hold out"):
        searched_by_fits(BernoulliMixture, empty, options, "auto")
    few = InMemory(
        (
            MomentBernoulliMixture(1, sketch_columns=1)
            .fit(feature_sets(300, 8, 2).batch.to_csr())
            .statistics_,
        )
    )
    with pytest.raises(NotIdentifiable, match="9 components are asked for"):
        searched_by_fits(BernoulliMixture, few, options, "auto", (9, 12))


@pytest.mark.parametrize("how", ["four", "autto", "3", ""])
def test_words_that_are_no_search_are_refused(how):
    batch = lda_corpus(n_documents=60, n_words=20, n_topics=2, mean_length=30).batch
    statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=2))
    for call in (fit, fit_by):
        with pytest.raises(InvalidInput, match=f"n_topics is '{how}'; give a whole number, \"auto"):
            call(statistics, how)
        with pytest.raises(InvalidInput, match="alpha0 is '3'; .* takes float or 'auto'"):
            call(statistics, 2, alpha0="3")
    for search in (lambda: search_topics(statistics, how), lambda: NumberSearch({}).found(how)):
        with pytest.raises(InvalidInput, match=f'how is \'{how}\'; give "auto" or "predict"'):
            search()
    for estimator in (MomentTopics, MomentCommunities, MomentBernoulliMixture):
        with pytest.raises(InvalidInput, match=f"n_components is '{how}'; "):
            estimator(how).fit(np.eye(3, dtype=int)[[1, 2, 0]])


@pytest.mark.parametrize(("documents", "most"), [(15, 1), (20, 2), (50, 5)])
def test_few_documents_have_few_topics(documents, most):
    batch = lda_corpus(n_documents=documents, n_words=60, n_topics=4, mean_length=40).batch
    topics = MomentTopics("auto").fit(batch.to_csr())
    assert max(topics.number_search_.curve) <= most
    assert topics.model_.n_topics <= most
