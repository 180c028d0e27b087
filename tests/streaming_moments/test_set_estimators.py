"""MomentBernoulliMixture: what scikit-learn expects of it, and rows in parts."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

from streaming_moments.errors import InvalidInput
from streaming_moments.models.passes.in_memory import polished
from streaming_moments.models.passes.stopping import MOST_PASSES
from streaming_moments.sklearn import MomentBernoulliMixture
from streaming_moments.synthetic.sets import feature_sets, probability_error

# They ask what has `predict_proba`, and takes sparse rows, for the tags of a classifier.
NO_CLASSIFIER = {
    f"check_estimator_sparse_{container}": "no classifier" for container in ("array", "matrix")
}


# as scikit-learn checks its own: the few rows that its checks draw are warned of, rightly
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [MomentBernoulliMixture()], expected_failed_checks=lambda estimator: NO_CLASSIFIER
)
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def drawn():
    return feature_sets(6000, 50, 4, seed=3)


def test_rows_that_come_in_parts_are_as_if_at_once(drawn) -> None:
    X = drawn.batch.to_csr()
    whole = MomentBernoulliMixture(4, keep_statistics=True).fit(X)
    parts = MomentBernoulliMixture(4).partial_fit(X[:2000]).partial_fit(X[2000:])
    other = whole.like().partial_fit(X[:1000]) + whole.like().partial_fit(X[1000:])
    for found in (parts, other):
        assert np.array_equal(found.statistics_.pair_counts, whole.statistics_.pair_counts)
        assert np.array_equal(found.probabilities_, whole.probabilities_)
        assert np.array_equal(found.weights_, whole.weights_)
    again = pickle.loads(pickle.dumps(whole))
    assert np.array_equal(again.predict(X), whole.predict(X))


def test_dense_sparse_and_truths_are_the_same(drawn) -> None:
    X = drawn.batch.to_csr()
    sparse = MomentBernoulliMixture(4).fit(sp.csc_matrix(X))
    for dense in (X.toarray(), X.toarray().astype(bool), 0.5 * X.toarray()):
        assert np.array_equal(MomentBernoulliMixture(4).fit(dense).weights_, sparse.weights_)
    found = MomentBernoulliMixture(4, binarize=0.5).fit(0.5 * X.toarray() + 0.3)
    assert np.array_equal(found.weights_, sparse.weights_)


def test_the_number_is_found_and_passes_make_it_likelier(drawn) -> None:
    X = drawn.batch.to_csr()
    plain = MomentBernoulliMixture("auto").fit(X)
    assert plain.probabilities_.shape == plain.probability_bars_.shape == (4, 50)
    better = MomentBernoulliMixture("auto", polish=2).fit(X)
    assert better.score(X) > plain.score(X)
    assert np.array_equal(better.weights_, polished(plain.model_, drawn.batch, 2).weights)
    assert probability_error(better.probabilities_.T, drawn.probabilities) < 0.02
    settled = MomentBernoulliMixture(4, polish="auto").fit(X)
    assert 1 <= settled.model_.polishing.passes < MOST_PASSES
    assert settled.score(X) > plain.score(X)
    with pytest.raises(InvalidInput, match="polish is auto"):
        settled.partial_fit(X)
    with pytest.raises(InvalidInput, match="passes is -1"):
        MomentBernoulliMixture(4, polish=-1).fit(X)
    np.testing.assert_allclose(better.predict_proba(X).sum(axis=1), 1)
    assert better.score(X) == pytest.approx(better.score_samples(X).mean())
    with pytest.raises(InvalidInput, match="polish is 2"):
        better.partial_fit(X)


def test_what_makes_no_rows_is_refused(drawn) -> None:
    X = drawn.batch.to_csr()
    with pytest.raises(InvalidInput, match="values other than 0 and 1"):
        MomentBernoulliMixture(binarize=None).fit(2 * X)
    with pytest.raises(InvalidInput, match="X is sparse"):
        MomentBernoulliMixture(binarize=-1.0).fit(X)
    with pytest.raises(InvalidInput, match="takes int or 'auto' or 'predict'"):
        MomentBernoulliMixture("all").fit(X)
    for lists in ([["a", "b"], ["c"]], [{3, 8}, {5}], np.array([["a"], ["b", "c"]], dtype=object)):
        with pytest.raises(InvalidInput, match=r"give MultiLabelBinarizer\(\)\.fit_transform"):
            MomentBernoulliMixture(2).fit(lists)
    with pytest.raises(ValueError, match="not compatible with arrays of bytes"):
        MomentBernoulliMixture(2).fit(np.array([["a", "b"], ["c", "d"]]))
    pairs = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 20, axis=0)
    with pytest.warns(UserWarning, match="1 of 9 components found: no row has three features"):
        found = MomentBernoulliMixture(9).fit(pairs)
    np.testing.assert_allclose(found.probabilities_, 0.5, atol=0.01)
