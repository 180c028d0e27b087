"""Estimators: the usual mistakes are refused by name, and little data is warned of once."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import streaming_moments
from streaming_moments import (
    FitOptions,
    MomentCommunities,
    MomentGaussianMixture,
    MomentHMM,
    MomentTopics,
    fit,
)
from streaming_moments.errors import InvalidInput, StreamingMomentsError
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic import lda_corpus

COUNTS = lda_corpus(300, n_words=30, n_topics=3, mean_length=20, seed=1).batch.to_csr()
ROWS = np.random.default_rng(0).normal(size=(60, 4))


def circle(nodes):
    around = np.eye(nodes, k=1, dtype=int) + np.eye(nodes, k=nodes - 1, dtype=int)
    return around + around.T


def refused_basis():
    topics = MomentTopics(5, max_components=3)
    return topics.fit(COUNTS).set_params(n_components=20).partial_fit(COUNTS)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: MomentTopics(3).fit(None), "X has no records"),
        (lambda: MomentTopics(3).fit(row for row in [[1, 2]]), r"generator; give list\(X\)"),
        (lambda: MomentHMM(2).fit(row for row in [[1, 2, 3]]), "generator"),
        (lambda: MomentHMM(2).fit([]), "no sequences"),
        (lambda: MomentHMM(2).fit([["a", "b"]]), "strings, such as 'a'; .* pandas.factorize"),
        (lambda: MomentTopics(2).fit(COUNTS * 10**8), "words, above 67,108,864; cut it"),
        (
            lambda: MomentTopics(2).fit(COUNTS * 0),
            "of the 300 documents of X has two words",
        ),
        (refused_basis, "the limit by max_components=20$"),
        (
            lambda: MomentGaussianMixture(2).fit(np.ones((9, 3))),
            "all 9 rows of the pilot are equal; give other rows",
        ),
        (
            lambda: MomentGaussianMixture(covariance_type="full").fit(ROWS),
            'type "full" is unknown; choose spherical',
        ),
        (lambda: MomentCommunities(9).fit(circle(6)), "is 9, but the graph has 6 nodes"),
        (lambda: MomentCommunities(2).fit(np.argwhere(circle(6))), "from_edgelist"),
        (lambda: MomentCommunities(2).fit(2.5 * circle(6)), r"give \(X > 0\)"),
        (lambda: MomentCommunities(2).fit([[0, 1], [1, 2]]), "from_edgelist"),
        (lambda: MomentCommunities(2).fit([("a", "b"), ("b", "c")]), "names of nodes.*edgelist"),
        (lambda: MomentCommunities(2).fit(0 * circle(6)), "the graph has no edges; give a matrix"),
        (lambda: MomentCommunities(2).fit(np.eye(4)[::-1]), "no node has two neighbours"),
        (lambda: MomentCommunities(2).fit(np.ones((4, 5))), "do not separate 2 communities; ask"),
        (lambda: MomentTopics(900).fit(COUNTS), "^n_components is 900, .* give at most 30$"),
        (
            lambda: MomentTopics(2, max_components=900).fit(COUNTS),
            "^max_components is 900, .* give at most 30$",
        ),
        (lambda: MomentTopics(None).fit(COUNTS), "^n_components is None; give a whole number"),
        (
            lambda: Basis.from_pilot(CountBatch.from_csr(COUNTS), 400),
            "at most 30 by max_topics of Basis.from_pilot, or count more words by vocabulary",
        ),
    ],
)
def test_a_usual_mistake_is_refused_with_its_remedy(call, said):
    with pytest.raises(StreamingMomentsError, match=said):
        call()


def test_other_names_of_arguments_are_refused_with_their_own():
    with pytest.raises(TypeError, match="MomentTopics has no argument n_topics; give n_components"):
        MomentTopics(n_topics=3)
    with pytest.raises(TypeError, match="MomentHMM has no argument seed; give random_state"):
        MomentHMM(seed=1)
    with pytest.raises(TypeError, match="fit has no argument topics; give n_topics"):
        fit(None, topics=3)
    with pytest.raises(TypeError, match="fit has no argument method; call fit_by, which takes it"):
        fit(None, 3, method="power")
    with pytest.raises(TypeError, match="^MomentTopics.fit has no argument sample_weight"):
        MomentTopics(2).fit(COUNTS, sample_weight=1)
    with pytest.raises(TypeError, match="from_pilot has no argument n_topics; give max_topics"):
        Basis.from_pilot(None, n_topics=4)
    with pytest.raises(TypeError, match="^FitOptions has no argument zz; give one of topics, "):
        FitOptions(zz=1)
    with pytest.raises(TypeError, match="no argument n_init; give one of n_components, "):
        MomentGaussianMixture(n_init=5)


def test_little_data_gives_one_warning():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        MomentTopics(3).fit(COUNTS[:60])
        MomentGaussianMixture(3).fit(ROWS[:20] + 9 * np.eye(20, 4))
        MomentTopics(3).fit(COUNTS)
    assert [str(one.message).partition(",")[0] for one in said] == [
        "60 documents are too few for 3 topics",
        "20 rows are too few for 3 components",
    ]
    assert {one.filename for one in said} == {__file__}


def test_a_seed_that_is_drawn_is_kept():
    drawn = MomentTopics(2, random_state=None, method="power").fit(COUNTS)
    again = MomentTopics(2, random_state=drawn.seed_, method="power").fit(COUNTS)
    assert np.array_equal(drawn.components_, again.components_)
    assert drawn.seed_ != MomentTopics(2, random_state=None).fit(COUNTS).seed_
    assert pickle.loads(pickle.dumps(drawn)).seed_ == drawn.seed_
    assert clone(drawn).random_state is None
    state = np.random.RandomState(3)
    seeds = [MomentTopics(2, random_state=state).fit(COUNTS).seed_ for _ in range(2)]
    assert seeds[0] != seeds[1]
    first = MomentTopics(2, random_state=None).partial_fit(COUNTS[:150])
    assert first.like().seed_ == first.seed_
    (one, _), (other, _) = (
        MomentGaussianMixture(1).fit(ROWS).sample(2, random_state=None) for _ in range(2)
    )
    assert not np.array_equal(one, other)
    for wrong in (-1, 1.5, True, "3"):
        with pytest.raises(StreamingMomentsError, match="random_state is .* a RandomState"):
            MomentTopics(2, random_state=wrong).fit(COUNTS)


def test_the_package_lists_what_it_exports():
    assert not {"os", "attach", "guard", "startup", "errors", "TYPE_CHECKING"} & {
        *dir(streaming_moments)
    }
    assert {"MomentTopics", "create_store", "__version__"} <= {*dir(streaming_moments)}


def test_errors_say_a_value_in_a_few_words():
    names = [f"word{place}" for place in range(5000)]
    batch = CountBatch.from_csr(COUNTS)
    statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=2))
    model = fit(statistics, 1)
    for call in (
        lambda: model.top_words(3, names),
        lambda: fit(statistics, names),
        lambda: MomentTopics(names).fit(np.eye(3)),
        lambda: MomentTopics(random_state=names).fit(np.eye(3)),
        lambda: MomentTopics(alpha0=names).fit(np.eye(3)),
    ):
        with pytest.raises(InvalidInput, match="<5,000 items>|of type list") as caught:
            call()
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("ends", [(0, 10**6), (-1, 2), (2, 1), (0.5, 2)])
def test_records_beyond_a_batch_are_refused(ends):
    counts = CountBatch.from_csr(np.eye(4))
    for batch in (counts, SymbolBatch.of([[0, 1]] * 4), VectorBatch(np.eye(4))):
        with pytest.raises(InvalidInput, match="are selected, but the batch has 4; give whole"):
            batch.select(*ends)
        assert batch.select(0, 4).documents == 4


@pytest.mark.parametrize(
    ("estimator", "called"),
    [
        (MomentTopics(2), lambda one: one.plot()),
        (MomentTopics(2), lambda one: one.plot_map()),
        (MomentHMM(2), lambda one: one.bic([[0, 1]])),
        (MomentHMM(2), lambda one: one.aic([[0, 1]])),
        (MomentGaussianMixture(2), lambda one: one.aic([[0.0, 1.0]])),
    ],
)
def test_estimators_say_that_they_are_not_fitted(estimator, called):
    with pytest.raises(NotFittedError):
        called(estimator)


def test_one_topic_of_two_repeated_texts_has_the_weight_1():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        assert MomentTopics(1).fit([[3, 3, 0, 0], [0, 0, 3, 3]] * 2).weights_ == 1
