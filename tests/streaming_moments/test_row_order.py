"""Error bars and "auto" of estimators, which no order of the records may change."""

import numpy as np
import pytest
from sklearn.base import clone

from streaming_moments.models.states import states_of
from streaming_moments.sklearn.bernoullis import MomentBernoulliMixture
from streaming_moments.sklearn.mixtures import MomentGaussianMixture
from streaming_moments.sklearn.sequences import MomentHMM
from streaming_moments.sklearn.tables import MomentLatentTree
from streaming_moments.sklearn.topics import MomentTopics
from streaming_moments.sklearn.views import MomentViews

CLASSES = np.arange(2000) % 2


def sets(rng):
    return (rng.random((2000, 12)) < rng.uniform(0.1, 0.9, (2, 12))[CLASSES]).astype(int)


def views(rng):
    shares = rng.dirichlet(np.full(5, 0.3), (3, 2))
    return [
        np.array([np.eye(5, dtype=int)[rng.choice(5, p=view[one])] for one in CLASSES])
        for view in shares
    ]


@pytest.mark.parametrize(
    ("estimator", "drawn", "most"),
    [(MomentBernoulliMixture(2), sets, 0.06), (MomentViews(2, alpha0=0), views, 0.25)],
    ids=["sets", "views"],
)
def test_rows_that_alternate_between_classes_have_bars_as_any(estimator, drawn, most):
    fitted = estimator.fit(drawn(np.random.default_rng(0)))
    assert max(states_of(fitted.model_).bars) < most


def test_rows_that_alternate_between_classes_have_as_many_components():
    X = sets(np.random.default_rng(0))
    assert MomentBernoulliMixture("auto").fit(X).model_.n_topics == 2


def test_rows_added_later_are_of_the_halves_of_one_fit():
    X = sets(np.random.default_rng(0))
    trees = MomentLatentTree(2, shape="latent_classes"), X[:, :5]
    for estimator, rows in ((MomentBernoulliMixture(2), X), trees):
        whole = clone(estimator).fit(rows).statistics_
        for part in (rows[:701], rows[701:]):
            estimator.partial_fit(part)
        assert estimator.statistics_ == whole


def test_a_few_different_texts_are_of_both_halves():
    rows = np.array([[3, 1, 0, 0], [0, 0, 2, 2]] * 100)
    assert MomentTopics(2, alpha0=0).fit(rows).model_.topic_bars.max() < 0.01
    # different texts are of halves by their words
    rng = np.random.default_rng(0)
    words = rng.poisson(2, (200, 30))
    found = MomentTopics(2).fit(words).statistics_
    again = MomentTopics(2).fit(words[::-1]).statistics_
    assert found == again


def test_a_few_different_sequences_and_vectors_are_of_both_halves():
    chain = MomentHMM(2, 4).fit([[0, 1, 0], [2, 3, 2]] * 100)
    assert 80 < chain.statistics_.totals.even_documents < 120
    rows = np.repeat([[0.0, 1.0], [5.0, 2.0]], 100, axis=0)
    vectors = MomentGaussianMixture(1).fit(rows)
    assert 80 < vectors.statistics_.totals.even_documents < 120
