"""Second starts of sets: from a pilot of rows, where the fit finds less likely components."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments.models import starts
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.bernoullis.second_start import better_start
from streaming_moments.models.passes.in_memory import polished
from streaming_moments.sklearn import MomentBernoulliMixture
from streaming_moments.statistics.counts.batch import CountBatch, concatenate
from streaming_moments.synthetic.sets import feature_sets, probability_error


@pytest.fixture(scope="module")
def drawn():
    return feature_sets(1200, 16, 3, 0.4, seed=2)


@pytest.fixture(scope="module")
def astray(drawn):
    """Two components in one, and one component twice, which passes never tell apart."""
    P = drawn.probabilities
    held = np.stack([P[:, :2].mean(axis=1), P[:, 2], P[:, 2]], axis=1)
    bars = np.full(3, 0.1)
    return BernoulliMixture(
        held, np.full(3, 1 / 3), bars=bars, probability_bars=held / 10, documents=1200
    )


@pytest.mark.parametrize("rows", [4000, 500], ids=["all rows", "a pilot of them"])
def test_passes_start_where_rows_are_likelier(drawn, astray, rows, monkeypatch):
    monkeypatch.setattr(starts, "ROWS", rows)
    found = better_start(astray, drawn.batch)
    assert (found.start, found.bars, found.probability_bars) == ("pilot", None, None)
    assert probability_error(found.probabilities, drawn.probabilities) < 0.05
    # a component has the number of the one that it is nearest to
    assert np.abs(found.shares - astray.shares).sum(axis=0).argmin() in (1, 2)
    kept = BernoulliMixture.from_parts(*found.parts())
    assert kept.start == "pilot"
    assert "started from a pilot of the rows" in kept.described().sentence
    again = better_start(astray, drawn.batch)
    assert (again.probabilities == found.probabilities).all()


@pytest.mark.parametrize("rows", [4000, 500], ids=["all rows", "a pilot of them"])
def test_a_fit_that_is_as_likely_is_kept(drawn, rows, monkeypatch):
    monkeypatch.setattr(starts, "ROWS", rows)
    model = MomentBernoulliMixture(3).fit(drawn.batch.to_csr()).model_
    assert better_start(model, drawn.batch) is model
    near = better_start(model, drawn.batch, settle=True)
    assert (near is model) == (rows == 500)
    assert near.start == "moments"
    assert near.bars is model.bars
    if rows == 4000:
        more = polished(near, drawn.batch, 1)
        assert np.abs(more.probabilities - near.probabilities).max() < 1e-3


def test_as_many_components_as_asked_for_come_of_a_pilot():
    X = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 20)
    with pytest.warns(UserWarning, match="1 of 2 components found"):
        assert MomentBernoulliMixture(2).fit(X).weights_.size == 1
    found = MomentBernoulliMixture(2, polish=2).fit(X)
    assert found.weights_.size == 2
    assert found.model_.start == "pilot"
    assert np.isfinite(found.score(X))


def test_records_are_taken_in_any_order(drawn):
    batch = replace(drawn.batch, halves=np.arange(1200) % 2 == 0)
    places = np.random.default_rng(0).permutation(1200)[:50]
    found = batch.take(places)
    assert (found.to_csr().toarray() == batch.to_csr().toarray()[places]).all()
    assert (found.halves == batch.halves[places]).all()
    one = concatenate([batch.select(int(at), int(at) + 1) for at in places])
    assert (one.words == found.words).all()
    assert CountBatch.from_csr([[1, 0]]).take(np.empty(0, np.int64)).documents == 0
