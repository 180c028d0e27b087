"""Blockmodels from sums of edges: exact moments, planted memberships, halves, what is refused."""

import numpy as np
import pytest

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.node_views import _told, part_frames
from streaming_moments.models.rows import InMemory
from streaming_moments.models.states import states_of
from streaming_moments.quality.matching import compare_topics, numbered_like
from streaming_moments.quality.moves import with_moves
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.ends import EdgeBatch
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.sketches import sketch_of
from streaming_moments.synthetic.graphs import community_graph, membership_error


def foundation_of(graph, columns=None, halves=True):
    names = Vocabulary(tuple(map(str, range(graph.nodes))), graph.nodes)
    sketch = None
    if columns is not None:
        sketch = sketch_of(graph.batch.to_csr(), names, columns)
    return EdgesFoundation(names, sketch, halves=halves)


def fitted(graph, columns=None, halves=True, blocks=1, **options):
    foundation = foundation_of(graph, columns, halves)
    batch = EdgeBatch.of(graph.edges, graph.nodes)
    parts = [foundation.of_edges(batch, RowBlock(place, blocks)) for place in range(blocks)]
    return Blockmodel.fit(InMemory(parts), Blockmodel.Options(**options))


def test_exact_moments_of_sketched_views_give_the_expected_ends():
    k, alpha0, t = 3, 0.7, 6
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=(t, k)) for _ in range(3)]
    alpha = alpha0 * np.array([0.5, 0.3, 0.2])
    # moments of a Dirichlet, of orders 1 to 3
    first = alpha / alpha0
    second = (np.outer(alpha, alpha) + np.diag(alpha)) / (alpha0 * (alpha0 + 1))
    third = np.einsum("i,j,l->ijl", alpha, alpha, alpha)
    for i in range(k):
        third[i, i, :] += alpha[i] * alpha
        third[i, :, i] += alpha[i] * alpha
        third[:, i, i] += alpha[i] * alpha
        third[i, i, i] += 2 * alpha[i]
    third /= alpha0 * (alpha0 + 1) * (alpha0 + 2)
    raised = np.zeros((1 + k,) * 3)
    raised[0, 0, 0] = 1
    for axes in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
        raised[tuple(slice(1, None) if one else 0 for one in axes)] = first
        raised[tuple(0 if one else slice(1, None) for one in axes)] = second
    raised[1:, 1:, 1:] = third
    left, right, rows = (
        np.block([[np.eye(1), np.zeros((1, k))], [np.zeros((t, 1)), one]]) for one in columns
    )
    cubes = 500 * np.einsum("abc,ia,jb,lc->ijl", raised, rows, left, right)
    found = _told(cubes, (np.eye(t),) * 3, k, alpha0)
    expected = np.vstack(columns)
    apart = np.abs(found.columns[:, :, None] - expected[:, None, :]).sum(axis=0)
    assert apart.min(axis=0).max() < 1e-9


@pytest.fixture(scope="module")
def planted():
    return community_graph(900, 3, 0.2, 0.03, 0.5, seed=0)


def test_sketched_edges_give_memberships_and_mixing_with_bars(planted):
    model = fitted(planted, columns=8, topics=3, alpha0=0.5)
    assert model.memberships.sum(axis=1) == pytest.approx(np.ones(900))
    error = membership_error(model.memberships, planted.memberships)
    assert error < 0.3
    truth = np.full((3, 3), 0.03) + np.diag(np.full(3, 0.17))
    # of memberships on the simplex its diagonal would be a tenth too large
    assert np.abs(model.mixing - truth).max() < 0.01
    assert model.documents == len(planted.edges)
    assert np.array_equal(model.degrees, np.bincount(planted.edges.ravel(), minlength=900))
    # what is expected is about what it errs by, and says which nodes err more
    assert 0.5 * error < model.node_bars.mean() < 2 * error
    assert model.mixing_bars.shape == (3, 3)
    assert "<th>community</th><th>weight</th>" in model._repr_html_()
    said = model.described()
    assert said.facts["membership_error"] == pytest.approx(model.node_bars.mean())
    again = Blockmodel.from_parts(*model.parts())
    assert np.array_equal(again.node_bars, model.node_bars)
    assert again.described().sentence == said.sentence
    blocks = fitted(planted, columns=8, blocks=3, topics=3, alpha0=0.5)
    assert np.allclose(blocks.memberships, model.memberships, atol=1e-9)
    assert np.allclose(blocks.mixing, model.mixing)


@pytest.mark.parametrize(("columns", "reached"), [(None, 0.31), (12, 0.328)])
def test_planted_memberships_are_found_of_lists_and_of_sketches(columns, reached):
    """Bounds: the goal, and what the prototype reached by sketches."""
    graph = community_graph(2000, 5, 0.1, 0.02, 0.5, seed=0)
    model = fitted(graph, columns, halves=False, topics=5, alpha0=0.5)
    assert membership_error(model.memberships, graph.memberships) <= reached
    assert np.abs(np.diag(model.mixing) - 0.1).max() < 0.008


def test_directed_edges_tell_where_their_sources_belong():
    graph = community_graph(700, 2, 0.2, 0.02, 0.0, seed=3)
    turned = np.random.default_rng(0).random(len(graph.edges)) < 0.5
    edges = np.where(turned[:, None], graph.edges[:, ::-1], graph.edges)
    edges = edges[edges[:, 0] != 5]
    names = Vocabulary(tuple(map(str, range(700))), 700)
    for columns in (None, 6):
        sketch = None if columns is None else sketch_of(graph.batch.to_csr(), names, columns)
        foundation = EdgesFoundation(names, sketch, directed=True, halves=False)
        statistics = foundation.of_edges(EdgeBatch.of(edges, 700, directed=True))
        model = Blockmodel.fit(InMemory((statistics,)), Blockmodel.Options(topics=2))
        assert membership_error(model.memberships, graph.memberships) < 0.1
        assert np.abs(model.mixing - [[0.1, 0.01], [0.01, 0.1]]).max() < 0.03
        # a node that nothing goes out from has the mean
        assert model.degrees[5] == 0
        assert "1 node has no edge" in model.described().sentence
        rest = np.delete(model.memberships, 5, axis=0).mean(axis=0)
        assert model.memberships[5] == pytest.approx(rest, abs=1e-3)


def test_of_few_nodes_all_neighbours_are_read_and_what_they_lack_is_filled_in(planted):
    graph = community_graph(140, 2, 0.5, 0.05, 0.5, seed=1)
    model = fitted(graph, topics=2, alpha0=0.5)
    error = membership_error(model.memberships, graph.memberships)
    assert error < 0.25
    assert np.abs(model.mixing - [[0.5, 0.05], [0.05, 0.5]]).max() < 0.06
    assert 0.4 * error < model.node_bars.mean() < 2.5 * error
    assert model.repeated == 0


def test_an_edge_that_comes_in_two_shards_counts_once_where_all_neighbours_are_kept():
    graph = community_graph(60, 2, 0.6, 0.1, 0.0, seed=2)
    foundation = foundation_of(graph, halves=False)
    once = foundation.of_edges(EdgeBatch.of(graph.edges, 60))
    again = once + foundation.of_edges(EdgeBatch.of(graph.edges[:7], 60))
    options = Blockmodel.Options(topics=2, alpha0=0.0)
    one, two = (Blockmodel.fit(InMemory((own,)), options) for own in (once, again))
    assert np.array_equal(one.memberships, two.memberships)
    assert (one.repeated, two.repeated) == (0, 14)
    assert "14 edge ends occur in several shards" in two.described().sentence
    # and is there until the last shard that holds it goes
    first = foundation.of_edges(EdgeBatch.of(graph.edges[:7], 60))
    assert Blockmodel.fit(InMemory((again - first,)), options).repeated == 0


def test_edges_that_hold_no_communities_are_refused():
    graph = community_graph(120, 2, 0.5, 0.05, 0.0, seed=0)
    empty = foundation_of(graph, columns=4, halves=False)
    with pytest.raises(NotIdentifiable):
        Blockmodel.fit(InMemory((empty.of([]),)), Blockmodel.Options(topics=2))
    none = foundation_of(graph, halves=False)
    with pytest.raises(NotIdentifiable, match="three neighbours"):
        Blockmodel.fit(InMemory((none.of([]),)), Blockmodel.Options(topics=2))
    with pytest.raises(NotIdentifiable, match="ask for at most 5"):
        fitted(graph, columns=4, halves=False, topics=9)
    chance = community_graph(6, 1, 0.5, 0.5, 0.0, seed=1)
    with pytest.raises(NotIdentifiable, match="1 of 3 communities have members without neigh"):
        fitted(chance, halves=False, topics=3)
    few = sketch_of(graph.batch.to_csr(), empty.nodes, 60)
    with pytest.raises(
        NotIdentifiable, match="a part of the graph has 40 nodes, too few for 61 columns"
    ):
        part_frames(few)


def test_mixing_outside_0_to_1_is_drawn_in_and_said():
    graph = community_graph(150, 2, 0.5, 0.02, 0.0, seed=0)
    model = fitted(graph, topics=3)
    assert model.outside > model.mixing_bars.max()
    assert ((model.mixing >= 0) & (model.mixing <= 1)).all()
    said = model.described()
    assert said.facts["outside"] == model.outside
    lay = (
        f"mixing matrix had entries up to {model.outside:.2g} outside 0 to 1 and was clipped: "
        "there may be"
    )
    assert lay in said.sentence
    assert Blockmodel.from_parts(*model.parts()).outside == model.outside
    inside = fitted(graph, topics=2, halves=False)
    assert inside.outside == 0
    assert "drawn in" not in inside.described().sentence


def test_communities_take_the_numbers_of_those_that_they_are_matched_with():
    graph = community_graph(90, 2, 0.6, 0.05, 0.0, seed=1)
    model = fitted(graph, topics=2)
    turned = model.reordered(np.array([1, 0]))
    assert np.array_equal(turned.weights, model.weights[::-1])
    assert np.array_equal(turned.mixing_bars, model.mixing_bars[::-1, ::-1])
    expected = model.memberships @ model.mixing @ model.memberships.T
    assert np.allclose(turned.memberships @ turned.mixing @ turned.memberships.T, expected)
    columns = [states_of(one).columns for one in (model, turned)]
    again, matching = numbered_like(turned, compare_topics(*columns))
    assert with_moves(matching, model, again) == matching
    assert again.described().facts == model.described().facts
    for name, array in model.parts()[0].items():
        assert np.array_equal(again.parts()[0][name], array), name
