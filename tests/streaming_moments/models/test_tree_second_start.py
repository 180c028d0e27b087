"""Second starts of trees: latent classes of a pilot of rows, where whole rows are likelier so."""

import numpy as np
import pytest

from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.latent_trees.second_start import better_start
from streaming_moments.sklearn import MomentLatentTree


def classes(rows, seed, columns=8, number=4):
    """Rows of so many classes, whose columns have three values."""
    rng = np.random.default_rng(seed)
    given = rng.dirichlet(np.full(3, 0.3), (number, columns))
    ends = np.cumsum(given, axis=2)[rng.integers(0, number, rows)]
    return np.minimum((rng.random((rows, columns, 1)) > ends).sum(axis=2), 2)


@pytest.fixture(scope="module")
def codes():
    return classes(800, seed=1)


@pytest.fixture(scope="module")
def chosen(codes):
    """A fit that compared shapes and chose another than classes."""
    fit = MomentLatentTree(4).fit(codes)
    model = fit.model_
    assert "latent_classes" in model.shape_scores
    forced = MomentLatentTree(4, shape="chow_liu").fit(codes).model_
    told = {**forced.scores, "latent_classes": model.scores["latent_classes"]}
    return fit, LatentTree(**{**vars(forced), "scores": told, "shape_scores": model.shape_scores})


def test_classes_take_the_place_of_a_tree_where_rows_are_likelier(codes, chosen):
    fit, tree = chosen
    batch = fit._table.batch(codes)
    found = better_start(tree, batch)
    assert (found.shape, found.start, found.bars, found.states) == (
        "latent_classes",
        "pilot",
        None,
        4,
    )
    others = classes(4000, seed=1)[800:]
    before, after = (one.tree.log_probabilities(others).mean() for one in (tree, found))
    assert after > before + 0.1
    kept = LatentTree.from_parts(*found.parts())
    assert kept.start == "pilot"
    assert "started from latent classes of a pilot" in kept.described().sentence
    assert (found.structure.hidden, found.order[0]) == ((8,), 8)
    again = better_start(tree, batch)
    assert (again.flat == found.flat).all()
    # numbers of classes grow as long as rows held out are likelier
    assert 4 <= better_start(tree, batch, numbers=(2, 4, 8, 16)).states <= 8


def test_a_shape_that_was_asked_for_stays(codes):
    found = MomentLatentTree(4, shape="chow_liu", polish=1).fit(codes)
    assert (found.model_.shape, found.model_.start) == ("chow_liu", "moments")
    found = MomentLatentTree(2, shape="latent_classes", polish=1).fit(codes)
    assert found.model_.states == 2


def test_missing_values_are_left_out_of_classes(codes, chosen):
    fit, tree = chosen
    holes = np.where(np.random.default_rng(0).random(codes.shape) < 0.2, -1, codes)
    found = better_start(tree, fit._table.batch(holes))
    assert found.start == "pilot"
    for table in found.tree.tables:
        np.testing.assert_allclose(table.sum(axis=1), 1)
