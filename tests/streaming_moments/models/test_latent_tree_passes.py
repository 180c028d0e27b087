"""Passes over rows of a table: against all states of a tree, in any parts, near the optimum."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import polished
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.latent_trees.passes import ExpectedTables, TreeReader, improved
from streaming_moments.sklearn import MomentLatentTree
from streaming_moments.statistics.expected_sums import UNIT
from streaming_moments.synthetic.tables import latent_tree_table


@pytest.fixture(scope="module")
def planted():
    return latent_tree_table(6000, n_columns=6, n_states=2, n_categories=3, seed=3)


@pytest.fixture(scope="module")
def estimator(planted):
    return MomentLatentTree(2).fit(planted.codes[:1000])


@pytest.fixture(scope="module")
def model(estimator):
    return estimator.model_


def by_states(tree, row):
    """Expected pairs of each edge, over all states of all nodes."""
    sums = [np.zeros(table.shape) for table in tree.tables]
    whole = 0.0
    for states in product(*(range(table.shape[1]) for table in tree.tables)):
        seen = zip(tree.columns, states, strict=True)
        if any(column >= 0 and row[column] not in (-1, state) for column, state in seen):
            continue
        above = [0 if parent < 0 else states[parent] for parent in tree.parents]
        chance = np.prod(
            [table[up, own] for table, up, own in zip(tree.tables, above, states, strict=True)]
        )
        whole += chance
        for table, up, own in zip(sums, above, states, strict=True):
            table[up, own] += chance
    return [table / whole for table in sums]


def read(model, codes):
    return TreeReader(model).add(model.table.batch(codes), ExpectedTables.zero(model))


@given(st.lists(st.integers(-1, 2), min_size=6, max_size=6).filter(lambda row: max(row) >= 0))
def test_a_pass_expects_what_all_states_of_a_tree_give(model, row):
    found = read(model, np.array([row]))
    for sums, wanted in zip(found.tables(model.tree), by_states(model.tree, row), strict=True):
        np.testing.assert_allclose(sums / UNIT, wanted, atol=1e-5)
    assert (found.documents, found.tokens) == (1, 6 - row.count(-1))


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_sums_are_the_same_bits_in_any_parts_and_order(model, seed, parts):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 3, (40, 6))
    whole, total = read(model, codes), ExpectedTables.zero(model)
    for part in np.array_split(codes[rng.permutation(40)], parts):
        total = total.add(read(model, part))
    assert (total.cells == whole.cells).all()
    assert (total.documents, total.tokens) == (whole.documents, whole.tokens)


def test_passes_bring_a_tree_nearer(planted, model):
    passes = MomentLatentTree(2, polish="auto").fit(planted.codes[:1000])
    held_out = planted.codes[1000:]
    before, after = (one.tree.log_probabilities(held_out).mean() for one in (model, passes.model_))
    assert after > before + 0.001
    most = polished(model, model.table.batch(planted.codes[:1000]), 20)
    assert after > most.tree.log_probabilities(held_out).mean() - 0.002
    kept = LatentTree.from_parts(*passes.model_.parts())
    assert kept.polishing == passes.model_.polishing
    assert kept.polishing.documents == 1000
    said = kept.described()
    assert "polished: 1,000 records read" in said.sentence
    assert said.facts["polishing"]["passes"] == kept.polishing.passes
    for table in kept.tree.tables:
        np.testing.assert_allclose(table.sum(axis=1), 1)


def test_rows_without_a_value_and_states_without_rows_change_nothing(model):
    nothing = read(model, np.full((3, 6), -1))
    assert nothing.documents == 0
    assert not nothing.cells.any()
    for one, other in zip(improved(model, nothing).tree.tables, model.tree.tables, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)


def test_what_cannot_be_polished_says_why(model):
    batch = model.table.batch(np.zeros((1, 6), dtype=np.int64))
    with pytest.raises(ForeignStatistics, match="other columns than the model"):
        polished(replace(model, vocabulary="other"), batch)
    with pytest.raises(InvalidInput, match="no alpha to learn"):
        polished(model, batch, alpha=True)
    with pytest.raises(InvalidInput, match="passes need all rows again"):
        MomentLatentTree(2, polish=1).partial_fit([[0, 1, 0], [1, 0, 1]])
