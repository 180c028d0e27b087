"""What every estimator does, on what it takes: checks of scikit-learn, searches, pickles, `+`."""

import copy
import pickle
import re
import traceback
import warnings
from functools import cache

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from streaming_moments import sklearn
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.synthetic import lda_corpus
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences, view_records
from streaming_moments.synthetic.mixtures import factor_rows, mixture_rows
from streaming_moments.synthetic.sets import feature_sets
from streaming_moments.synthetic.tables import latent_tree_table

RECORDS = 600
SIZES = (9, 8, 7)
# What it takes, and how it is made; of views one matrix, as searches split rows.
SPLIT = {
    "MomentBernoulliMixture": lambda: (
        sklearn.MomentBernoulliMixture(2),
        feature_sets(2 * RECORDS, 12, 2, seed=1).batch.to_csr(),
    ),
    "MomentCommunities": lambda: (
        sklearn.MomentCommunities(2, alpha0=0.0),
        community_graph(100, 2, inside=0.5, outside=0.05, alpha0=0.0).batch.to_csr(),
    ),
    "MomentFactors": lambda: (
        sklearn.MomentFactors(2),
        factor_rows(RECORDS, 5, 2, noise=0.1, seed=1).rows,
    ),
    "MomentGaussianMixture": lambda: (
        sklearn.MomentGaussianMixture(2),
        mixture_rows(RECORDS, 4, 2, separation=6.0, seed=1).rows,
    ),
    "MomentHMM": lambda: (
        sklearn.MomentHMM(2, 6, refine=20),
        [
            *markov_sequences(120, length=30, n_symbols=6, k=2, seed=1).batch.symbols.reshape(
                120, 30
            )
        ],
    ),
    "MomentLatentTree": lambda: (
        sklearn.MomentLatentTree(2),
        latent_tree_table(2 * RECORDS, n_columns=4, n_states=2, n_categories=2, seed=1).codes,
    ),
    "MomentTopics": lambda: (
        sklearn.MomentTopics(2),
        lda_corpus(RECORDS, 40, 2, alpha0=0.3, mean_length=30, seed=2).batch.to_csr(),
    ),
    "MomentViews": lambda: (
        sklearn.MomentViews(2, sizes=SIZES),
        sp.hstack(
            [one.to_csr() for one in view_records(2 * RECORDS, SIZES, k=2, seed=1).batch.views],
            format="csr",
        ),
    ),
}

SKETCHED = ("MomentCommunities", "MomentFactors", "MomentGaussianMixture", "MomentTopics")


@pytest.fixture(scope="module")
def given():
    return {name: make() for name, make in SPLIT.items()}


def read(fitted, X):
    """What the model says of some records."""
    for name in ("predict_proba", "transform"):
        if hasattr(fitted, name):
            return getattr(fitted, name)(X)
    raise AssertionError(fitted)


def alike(one, other):
    pairs = zip(one, other, strict=True) if isinstance(one, list) else [(one, other)]
    return all(np.array_equal(*pair) for pair in pairs)


def parts(X):
    half = (X.shape[0] if hasattr(X, "shape") else len(X)) // 2
    return X[:half], X[half:]


def test_there_is_one_of_each():
    assert sorted(SPLIT) == sklearn.__all__


# Estimators of which scikit-learn's checks draw no data, and what they say of those that it has.
OWN_DATA = {
    "MomentCommunities": "holds only 0 and 1",
    "MomentHMM": "symbols are of|too many indices|[Cc]omplex data|0 feature|NaN and inf|sparse",
    "MomentLatentTree": "a minimum of 3 is required|a single state|holds fractions",
    "MomentViews": "give a list of three matrices",
}


@pytest.mark.parametrize("name", OWN_DATA)
def test_checks_of_scikit_learn_find_amiss_their_data_alone(name, monkeypatch):
    kind = getattr(sklearn, name)
    with pytest.warns(SkipTestWarning, match="requires input"):
        check_estimator(kind())

    def taken(self):
        tags = said(self)
        tags.input_tags.two_d_array = True
        return tags

    said = kind.__sklearn_tags__
    monkeypatch.setattr(kind, "__sklearn_tags__", taken)
    found = check_estimator(kind(), on_fail=None, on_skip=None)
    for one in found:
        if one["status"] == "failed":
            told = "".join(traceback.format_exception(one["exception"]))
            assert re.search(OWN_DATA[name], told), told
    assert any(one["status"] == "passed" for one in found)


@pytest.mark.parametrize("name", SPLIT)
def test_clones_pickles_and_fits_anew_are_the_same(name, given):
    made, X = given[name]
    before = made.get_params()
    fitted = clone(made)
    assert set(vars(fitted)) == set(before)
    with pytest.raises(NotFittedError):
        read(fitted, X)
    assert not hasattr(fitted, "model_")
    with pytest.raises(NotFittedError, match=rf"this {name} is not fitted.* no model_; call fit"):
        _ = fitted.model_
    assert fitted.fit(X) is fitted
    shown = fitted.model_._repr_html_()
    assert shown.startswith(f"<table><caption>{type(fitted.model_).__name__}(")
    assert shown.count("<tr>") > 2
    # chains, trees and the like have rows, too
    assert len(fitted.model_.to_frame()) == fitted.model_.to_table().num_rows > 1
    for other in (1, None, "1"):
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = fitted.statistics_ + other
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = fitted.statistics_.totals - other
    assert "nan" not in shown
    assert "array(" not in shown
    assert fitted.get_params() == before
    held = set(vars(fitted))
    said = read(fitted, X)
    assert set(vars(fitted)) == held
    for again in (clone(fitted).fit(X), fitted.fit(X), pickle.loads(pickle.dumps(fitted))):
        assert alike(read(again, X), said)


def test_new_categories_are_warned_of_and_count_as_missing():
    rows = [["a", "x", "u"], ["b", "y", "v"], ["a", "x", "u"], ["b", "y", "w"]] * 20
    tree = sklearn.MomentLatentTree(shape="chow_liu").fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        missing = tree.transform([["a", None, "u"]])
    said = "2 values not in the first rows .* 'q' in column 1, 'r' in column 2: counted as missing"
    for read in (tree.transform, tree.score_samples, tree.predict_proba):
        with pytest.warns(UserWarning, match=said) as caught:
            read([["a", "q", "u"], ["a", "x", "r"]])
        assert [one.filename for one in caught] == [__file__]
    with pytest.warns(UserWarning, match="1 value not"):
        assert (tree.transform([["a", "q", "u"]]) == missing).all()


@pytest.mark.parametrize("name", SPLIT)
def test_parts_are_added_as_if_one_had_seen_all(name, given):
    made, X = given[name]
    first, second = parts(X)
    begun = clone(made).partial_fit(first)
    rest = begun.like()
    with pytest.raises(NotFittedError):
        read(rest, second)
    together = begun + rest.partial_fit(second)
    one = clone(begun).partial_fit(first).partial_fit(second)
    assert one.statistics_ == together.statistics_
    assert one.statistics_ != begun.statistics_
    assert alike(read(one, X), read(together, X))
    assert alike(read(begun + begun.like(), X), read(begun, X))
    with pytest.raises(TypeError, match="unsupported operand"):
        begun + 3


# statistics of few symbols or words need no sketch, and so none of their own
@pytest.mark.parametrize("name", [*SKETCHED])
def test_what_was_begun_apart_is_not_added(name, given):
    made, X = given[name]
    first, second = parts(X)
    with pytest.raises(ForeignStatistics, match="make one of them by calling `like"):
        clone(made).fit(first) + clone(made).fit(second)


def test_trees_of_other_categories_are_not_added(given):
    made, X = given["MomentLatentTree"]
    first, second = (clone(made).fit(one) for one in parts(X))
    # the same columns and categories are the same statistics, whoever began them
    added, whole = ((first + second).statistics_, clone(made).fit(X).statistics_)
    for name, array in added.arrays().items():
        assert name.startswith("even_") or np.array_equal(array, whole.arrays()[name])
    with pytest.raises(ForeignStatistics, match="make one of them by calling `like"):
        first + clone(made).fit(np.where(X == 0, "no", "yes"))
    # written alike, and read by their types
    with pytest.raises(ForeignStatistics, match="values of different types"):
        first + clone(made).fit(X.astype(str).astype(object))


def test_trees_of_large_whole_numbers_give_them_back(given):
    made, X = given["MomentLatentTree"]
    large = X.astype(np.uint64) + np.uint64(2**63)
    assert np.array_equal(clone(made).fit_transform(large), large)


@pytest.mark.parametrize("name", SPLIT)
def test_pipelines_and_searches_take_them(name, given):
    made, X = given[name]
    pipeline = make_pipeline("passthrough", clone(made))
    step = name.lower()
    if hasattr(made, "score"):
        search = GridSearchCV(
            pipeline, {f"{step}__n_components": [1, 2]}, cv=2, error_score="raise"
        )
        if name == "MomentLatentTree":
            search.param_grid = {f"{step}__contract": [0.1, 0.2]}
        fitted = search.fit(X).best_estimator_
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    else:
        fitted = pipeline.fit(X)
    assert alike(read(fitted, X), read(clone(made).fit(X), X))


@pytest.mark.parametrize(
    "name", [name for name in SPLIT if hasattr(getattr(sklearn, name), "transform")]
)
def test_what_transforms_gives_frames(name, given):
    made, X = given[name]
    frame = clone(made).set_output(transform="pandas").fit_transform(X)
    plain = clone(made).fit_transform(X)
    assert np.array_equal(frame.to_numpy(), plain)
    assert len(set(frame.columns)) == plain.shape[1]


SAID = "without its statistics.*keep_statistics=True, or by partial_fit"


def pickled(estimator):
    return pickle.loads(pickle.dumps(estimator))


@pytest.mark.parametrize("name", SPLIT)
def test_a_pickle_of_a_fit_holds_the_model_alone(name, given):
    estimator, X = clone(given[name][0]), given[name][1]
    fitted = estimator.fit(X)
    again = pickled(fitted)
    assert "statistics_" not in vars(again)
    assert alike(read(fitted, X), read(again, X))
    # in memory, as before
    assert fitted.like().statistics_ == fitted.statistics_ - fitted.statistics_
    assert alike(read(fitted, X), read(pickled(again), X))
    for asked in (
        lambda: again.partial_fit(X),
        lambda: again.like(),
        lambda: again + fitted,
        lambda: fitted + again,
    ):
        with pytest.raises(InvalidInput, match=SAID):
            asked()
    with pytest.raises(AttributeError, match=SAID):
        _ = again.statistics_
    # and what begins anew needs none
    assert again.fit(X).statistics_ == fitted.statistics_


@pytest.mark.parametrize("name", SPLIT)
def test_statistics_are_kept_where_more_may_be_added(name, given):
    estimator, X = clone(given[name][0]), given[name][1]
    asked = clone(estimator).set_params(keep_statistics=True).fit(X)
    begun = clone(estimator).partial_fit(X)
    for kept in (asked, begun, asked.like(), asked + asked.like()):
        assert pickled(kept).statistics_ == kept.statistics_
        assert copy.deepcopy(kept).statistics_ == kept.statistics_
    whole = begun.like().partial_fit(X) + begun
    assert (pickled(begun).like().partial_fit(X) + pickled(begun)).statistics_ == whole.statistics_
    # a fit forgets what was added
    assert "statistics_" not in vars(pickled(begun.fit(X)))


@pytest.mark.parametrize(
    "name", ["MomentFactors", "MomentGaussianMixture", "MomentHMM", "MomentTopics"]
)
def test_order_cuts_and_what_is_taken_away_change_no_bit(name, given):
    """Of halves as well: a record is of one by what it holds."""
    estimator, X = clone(given[name][0]), given[name][1]
    begun = clone(estimator).partial_fit(X)
    order = np.random.default_rng(3).permutation(len(X) if isinstance(X, list) else X.shape[0])
    moved = [X[place] for place in order] if isinstance(X, list) else X[order]
    one, two = (begun.like().partial_fit(part).statistics_ for part in parts(moved))
    assert two + one == begun.statistics_
    assert begun.statistics_ - one == two


def test_a_pickle_is_as_small_as_its_model():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.05, size=(400, 3000))
    fitted = sklearn.MomentTopics(4).fit(counts)
    model = len(pickle.dumps(fitted.model_))
    assert len(pickle.dumps(fitted)) < 3 * model
    kept = fitted.set_params(keep_statistics=True)
    assert len(pickle.dumps(kept)) > 50 * model


def test_an_earlier_pickle_is_read_and_goes_on(given):
    estimator, X = given["MomentTopics"]
    fitted = estimator.set_params(keep_statistics=True).fit(X)
    state = {**fitted.__getstate__()}
    # 0.2.0 had neither
    for name in [*state]:
        if name in ("keep_statistics", "_added"):
            del state[name]
    earlier = sklearn.MomentTopics.__new__(sklearn.MomentTopics)
    earlier.__setstate__(state)
    assert earlier.get_params()["keep_statistics"] is False
    assert earlier.partial_fit(X).statistics_ == fitted.statistics_ + fitted.statistics_


@pytest.mark.parametrize("name", SPLIT)
def test_no_components_are_refused_by_the_name_of_the_parameter(name, given):
    made, X = given[name]
    for number in (0, -3):
        for call in ("fit", "partial_fit"):
            with pytest.raises(InvalidInput, match=rf"^n_components is {number}; give at least 1"):
                getattr(clone(made).set_params(n_components=number), call)(X)


ROWS = {
    "days": lambda n: pd.date_range("2026-01-01", periods=n, freq="D", name="day"),
    "two levels": lambda n: pd.MultiIndex.from_product([["a", "b"], range(n // 2)]),
    "numbers": lambda n: pd.Index(np.arange(n)[::-1] * 7, name="n"),
}


@pytest.fixture(scope="module")
def plainly(given):
    """Records without an index, and what an estimator that was fitted to them says of them."""

    @cache
    def of(name):
        made, X = given[name]
        whole = X.toarray() if sp.issparse(X) else X
        return whole, read(clone(made).fit(whole), whole)

    return of


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", SPLIT)
def test_frames_are_taken_and_those_given_back_have_their_index(name, rows, given, plainly):
    made, _ = given[name]
    whole, expected = plainly(name)
    if name == "MomentHMM":
        X = pd.Series(whole, index=ROWS[rows](len(whole)))
    else:
        columns = [f"c{place}" for place in range(whole.shape[1])]
        X = pd.DataFrame(whole, index=ROWS[rows](len(whole)), columns=columns)
    fitted = clone(made).fit(X)
    # columns of a frame lie apart, so sums of floats may differ in their last bits
    for one, other in zip(read(fitted, X), expected, strict=True):
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(one, other)
    if hasattr(fitted, "set_output"):
        frame = fitted.set_output(transform="pandas").transform(X)
        pd.testing.assert_index_equal(frame.index, X.index)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_a_graph_of_networkx_is_its_adjacency_matrix(kind, given):
    made, X = given["MomentCommunities"]
    graph = nx.relabel_nodes(nx.from_scipy_sparse_array(X), "node {}".format)
    graph = kind(graph)
    if graph.is_multigraph():
        graph.add_edges_from([*graph.edges(keys=False)])  # twice, and counted once
    found = clone(made).fit(graph)
    assert np.array_equal(found.memberships_, clone(made).fit(X).memberships_)
    assert found.transform(graph).shape == (len(graph), 2)
    graph.add_edge("node 3", "node 3")
    with pytest.raises(InvalidInput, match="node 3 is its own neighbour"):
        clone(made).fit(graph)
