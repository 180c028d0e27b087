"""Passes over records of views: against the posterior by hand, in any parts, near the optimum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import polished
from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.models.three_view.passes import ExpectedViews, ViewReader
from streaming_moments.sklearn import MomentViews
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.expected_sums import UNIT
from streaming_moments.statistics.views.foundation import VIEWS
from streaming_moments.statistics.views.records import ViewBatch
from streaming_moments.synthetic.hidden import view_records

SIZES = (4, 3, 5)


def drawn(seed, k=3):
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.ones(n), k).T for n in SIZES]
    model = MultiViewMixture(*tables, rng.dirichlet(np.ones(k)))
    return model, [rng.poisson(0.7, (12, n)) for n in SIZES]


def batch_of(counts):
    return ViewBatch(*map(CountBatch.from_csr, counts))


def read(model, batch):
    return ViewReader(model).add(batch, ExpectedViews.zero(model))


@given(st.integers(0, 2**32))
def test_a_pass_gives_each_word_to_the_states_of_its_record(seed):
    model, counts = drawn(seed)
    logs = np.log(model.weights) + sum(
        view @ np.log(0.999 * table + 0.001 / len(table))
        for view, table in zip(counts, model.tables.values(), strict=True)
    )
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[sum(view.sum(axis=1) for view in counts) == 0] = 0
    found = read(model, batch_of(counts))
    for name, view in zip(VIEWS, counts, strict=True):
        wanted = view.T @ shares
        np.testing.assert_allclose(getattr(found, name) / UNIT, wanted, atol=1e-4)
    np.testing.assert_allclose(found.records / UNIT, shares.sum(axis=0), atol=1e-4)
    assert found.tokens == sum(view.sum() for view in counts)


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_sums_are_the_same_bits_in_any_parts_and_order(seed, parts):
    model, counts = drawn(seed)
    order = np.array_split(np.random.default_rng(seed).permutation(12), parts)
    whole, total = read(model, batch_of(counts)), ExpectedViews.zero(model)
    for part in order:
        total = total.add(read(model, batch_of([view[part] for view in counts])))
    for name, sums in whole.arrays.items():
        assert (total.arrays[name] == sums).all()
    assert (total.documents, total.tokens) == (whole.documents, whole.tokens)


def test_passes_reach_what_they_reach_from_the_truth():
    planted = view_records(4000, sizes=(40, 30, 20), k=4, mean=3.0, seed=5)
    X = [view.to_csr() for view in planted.batch.views]
    plain, found = MomentViews(4).fit(X), MomentViews(4, polish="auto").fit(X)
    truth = MultiViewMixture(*planted.tables, planted.weights)
    best = polished(truth, planted.batch, 20)
    views = dict(zip(VIEWS, planted.batch.views, strict=True))
    scores = [one.log_likelihoods(views).mean() for one in (plain.model_, found.model_, best)]
    assert scores[0] < scores[1]
    assert scores[1] > scores[2] - 0.002
    model = found.model_
    again = polished(plain.model_, planted.batch, model.polishing.passes, threads=2)
    assert (again.rows == model.rows).all()
    assert np.array_equal(found.components_[0], model.rows.T)
    kept = MultiViewMixture.from_parts(*model.parts())
    assert kept.polishing == model.polishing
    assert "polished: 3,999 records read" in kept.described().sentence


def test_what_cannot_be_polished_says_why():
    model, counts = drawn(0)
    mixed = MultiViewMixture(*model.tables.values(), model.weights, 0.5)
    with pytest.raises(InvalidInput, match="alpha0 0.5, which allows several states at"):
        polished(mixed, batch_of(counts))
    with pytest.raises(InvalidInput, match="no alpha to learn"):
        polished(model, batch_of(counts), alpha=True)
    with pytest.raises(BoundExceeded, match="words are more than"):
        ExpectedViews.zero(model).counting(1, 1 << 43)
