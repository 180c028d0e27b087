"""MomentHMM and MomentViews: what scikit-learn and hmmlearn expect of them."""

import numpy as np
import pytest
from sklearn.base import clone

from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.sklearn import MomentHMM, MomentViews
from streaming_moments.synthetic.hidden import markov_sequences, view_records


@pytest.fixture(scope="module")
def drawn():
    return markov_sequences(200, length=60, n_symbols=8, k=2, seed=1)


def test_sequences_are_taken_as_lists_and_with_lengths_alike(drawn):
    rows = drawn.batch.symbols.reshape(200, 60)
    model = MomentHMM(2, 8).fit(list(rows))
    column, lengths = rows.reshape(-1, 1), [60] * 200
    again = clone(model).fit(column, lengths=lengths)
    assert np.array_equal(model.emissionprob_, again.emissionprob_)
    assert model.transmat_.shape == (2, 2)
    assert np.allclose(model.transmat_.sum(axis=1), 1)
    assert np.allclose(model.emissionprob_.sum(axis=1), 1)
    assert model.startprob_.sum() == pytest.approx(1)
    log, states = model.decode(column, lengths)
    assert states.shape == (12_000,)
    assert log < model.score(list(rows)) < 0
    proba = model.predict_proba(list(rows))
    agreed = (model.predict(list(rows)) == proba.argmax(axis=1)).mean()
    assert agreed > 0.95
    right = (states == drawn.states).mean()
    assert max(right, 1 - right) > 0.85
    assert 1 < model.perplexity(list(rows)) < 8
    assert MomentHMM(2).fit(list(rows)).emissionprob_.shape[1] <= 8


@pytest.mark.parametrize(
    ("X", "told"),
    [
        ([[0, 9]], "n_features 4"),
        ([[0, -2]], "the least -2"),
        ([[0.5, 1.0]], "symbols are of type float64"),
        (np.zeros((3, 2), int), "one column of symbols"),
    ],
)
def test_what_are_no_symbols_is_refused(X, told):
    with pytest.raises(InvalidInput, match=told):
        MomentHMM(2, 4).fit(X)
    with pytest.raises(NotIdentifiable):
        MomentHMM(2, 4).fit([[0, 1]])
    # which hmmlearn has in the second place
    with pytest.raises(InvalidInput, match=r"as lengths=\.\.\."):
        MomentHMM(2, 4).fit([0, 1, 1, 0, 2, 1], [3, 3])
    with pytest.raises(InvalidInput, match="give a whole number"):
        MomentHMM(2.5, 4).fit([[0, 1, 1]])


@pytest.mark.parametrize("row", [[-1, 2, 3], [0, 1, -1, 2], [-1, -1, -1], [1, 2]])
def test_sequences_without_three_observed_symbols_in_a_row_are_refused(row):
    with pytest.raises(NotIdentifiable, match=r"three observed symbols .* -1 means unobserved"):
        MomentHMM(2).fit([row] * 50)


def test_views_are_read_from_those_that_are_there():
    drawn = view_records(2_000, sizes=(12, 9, 7), k=2, seed=3)
    X = [view.to_csr() for view in drawn.batch.views]
    model = MomentViews(2).fit(X)
    assert [one.shape for one in model.components_] == [(2, 12), (2, 9), (2, 7)]
    whole, part = model.predict(X), model.predict([None, X[1], None])
    assert (whole == part).mean() > 0.8
    assert np.array_equal(clone(model).fit(X).weights_, model.weights_)
    with pytest.raises(InvalidInput, match="2 views"):
        model.fit(X[:2])
