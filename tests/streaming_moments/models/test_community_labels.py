"""One community for each node: scores against the likelihood itself, planted graphs, passes."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.labels import Blocks, relabelled, settled_shares
from streaming_moments.models.communities.moves import likelier_labels
from streaming_moments.models.communities.passes import ExpectedNeighbours, LabelReader, improved
from streaming_moments.models.passes.families import passes_of
from streaming_moments.models.rows import InMemory
from streaming_moments.sklearn import MomentCommunities
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.ends import EdgeBatch
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.synthetic.graphs import community_graph, membership_error


def drawn(seed, n=9, k=3):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.4, 1)
    return (upper | upper.T).astype(np.int64), rng.integers(0, k, n)


def one_hot(labels, k=3):
    return np.eye(k, dtype=np.int64)[labels]


@given(st.integers(0, 2**32), st.integers(0, 8))
def test_scores_differ_as_the_likelihood_of_the_graph_does(seed, node):
    adjacency, labels = drawn(seed)
    blocks = Blocks.of_labels(adjacency @ one_hot(labels), labels)
    pairs = np.maximum(np.outer(blocks.sizes, blocks.sizes) - np.diag(blocks.sizes), 1)
    chances = (blocks.edges + 0.5) / (pairs + 1)
    chances = np.clip(chances, 1e-9, 1 - 1e-9)

    def whole(own):
        given = chances[np.ix_(own, own)]
        logs = np.where(adjacency, np.log(given), np.log1p(-given))
        return np.triu(logs, 1).sum()

    found, wanted = blocks.scores(corrected=False)[node], []
    for community in range(3):
        moved = labels.copy()
        moved[node] = community
        wanted.append(whole(moved))
    here = labels[node]
    # a node counts among the members of its own community, which its score leaves out
    own = np.array([found[at] - (at != here) * np.log1p(-chances[at, here]) for at in range(3)])
    own += np.log1p(-np.diag(chances)) * (np.arange(3) != here)
    np.testing.assert_allclose(own - own[here], np.array(wanted) - wanted[here], atol=1e-9)


def graph_of(theta, seed, n=600, k=4, inside=0.09, outside=0.015):
    """Adjacency and communities of nodes whose degrees vary by a factor, lognormal."""
    rng = np.random.default_rng(seed)
    labels, factors = rng.integers(0, k, n), np.exp(rng.normal(-(theta**2) / 2, theta, n))
    chances = np.where(labels[:, None] == labels, inside, outside) * np.outer(factors, factors)
    upper = np.triu(rng.random((n, n)) < chances, 1)
    return (upper | upper.T).astype(np.int64), labels


@pytest.mark.parametrize(("theta", "corrected"), [(0.0, False), (0.8, True)])
def test_labels_of_planted_communities_come_nearer(theta, corrected):
    adjacency, truth = graph_of(theta, seed=1)
    found = MomentCommunities(4, alpha0=0.0).fit(adjacency)
    assert (found.memberships_[adjacency.any(axis=1)].max(axis=1) == 1).all()
    plain = found.model_.transform(found._records(adjacency))
    errors = [membership_error(one, one_hot(truth, 4)) for one in (plain, found.memberships_)]
    assert errors[1] < 0.7 * errors[0]
    labels = found.memberships_.argmax(axis=1)
    assert Blocks.of_labels(adjacency @ one_hot(labels, 4), labels).corrected == corrected
    # from the truth rounds end not much nearer
    best = settled_shares(adjacency, truth, 4).argmax(axis=1)
    assert errors[1] < membership_error(one_hot(best, 4), one_hot(truth, 4)) + 0.12


def test_communities_are_split_in_exchange_for_two_that_are_one():
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1, 2], [40, 60, 100])
    chances = np.where(truth[:, None] == truth, 0.3, 0.05)
    upper = np.triu(rng.random((200, 200)) < chances, 1)
    adjacency = sp.csr_array((upper | upper.T).astype(np.int64))
    # two communities in one, and the largest in halves
    begun = np.where(truth < 2, 0, 1 + np.arange(200) % 2)
    stuck = settled_shares(adjacency, begun, 3).argmax(axis=1)
    assert membership_error(one_hot(stuck), one_hot(truth)) > 0.2
    found = likelier_labels(adjacency, begun, 3)
    assert membership_error(one_hot(found), one_hot(truth)) < 0.03


@given(st.integers(0, 2**32))
def test_merged_blocks_are_those_of_merged_labels(seed):
    adjacency, labels = drawn(seed)
    place = np.array([0, 1, 0])
    merged = Blocks.of_labels(adjacency @ one_hot(labels), labels).merged(place)
    again = Blocks.of_labels(adjacency @ one_hot(place[labels], 2), place[labels])
    for name in ("ends", "sizes", "edges"):
        assert (getattr(merged, name) == getattr(again, name)).all()
    hot = one_hot(place[labels], 2).astype(float)
    assert again.bound(hot, False) == pytest.approx(again.likelihood(False))


def fitted(graph, directed=False):
    n = graph.nodes
    nodes = Vocabulary(tuple(map(str, range(n))), core=n)
    foundation = EdgesFoundation(nodes, directed=directed, halves=False)
    batch = EdgeBatch.of(graph.edges, nodes=n, directed=directed)
    statistics = foundation.of_edges(batch)
    return Blockmodel.fit(InMemory((statistics,)), Blockmodel.Options(topics=2)), batch, foundation


@pytest.fixture(scope="module")
def graph():
    return community_graph(120, 2, 0.3, 0.1, 0.0, seed=2)


def read(model, ends):
    return LabelReader(model).add(EdgeBatch(ends), ExpectedNeighbours.zero(model))


@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans())
def test_sums_of_edges_are_the_same_in_any_parts_and_order(seed, parts, directed):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 10, (30, 2)).astype(np.int32)
    shares = rng.dirichlet(np.ones(3), 10)
    zero = np.zeros((3, 3))
    model = Blockmodel(shares, zero, np.ones(10, int), shares.mean(axis=0), directed=directed)
    whole, total = read(model, ends), ExpectedNeighbours.zero(model)
    for part in np.array_split(rng.permutation(ends), parts):
        total = total.add(read(model, part))
    labels = shares.argmax(axis=1)
    adjacency = np.zeros((10, 10), dtype=np.int64)
    np.add.at(adjacency, tuple(ends.T), 1)
    both = adjacency if directed else adjacency + adjacency.T
    assert (whole.outgoing == both @ one_hot(labels)).all()
    if directed:
        assert (whole.incoming == adjacency.T @ one_hot(labels)).all()
    for name, sums in whole.arrays.items():
        assert (total.arrays[name] == sums).all()
    assert total.documents == 30


def test_a_pass_over_edges_is_a_round_on_the_adjacency(graph):
    model, batch, foundation = fitted(graph)
    reader = LabelReader.of(model, foundation)
    after = improved(model, reader.add(batch, ExpectedNeighbours.zero(model)))
    labels = model.memberships.argmax(axis=1)
    adjacency = graph.batch.to_csr().toarray()
    wanted = relabelled(adjacency @ one_hot(labels, 2), None, labels)
    assert (after.memberships == one_hot(wanted, 2)).all()
    errors = [membership_error(one.memberships, graph.memberships) for one in (model, after)]
    assert errors[1] < errors[0]
    assert after.mixing == pytest.approx(np.array([[0.3, 0.1], [0.1, 0.3]]), abs=0.03)
    assert after.weights.sum() == pytest.approx(1)


def test_directed_edges_label_by_both_ends(graph):
    model, batch, foundation = fitted(graph, directed=True)
    assert model.directed
    reader = LabelReader.of(model, foundation)
    after = improved(model, reader.add(batch, ExpectedNeighbours.zero(model)))
    errors = [membership_error(one.memberships, graph.memberships) for one in (model, after)]
    assert errors[1] < errors[0]
    kept = Blockmodel.from_parts(*after.parts())
    assert kept.directed is True
    assert Blockmodel.from_parts(*replace(after, directed=False).parts()).directed is False
    arrays, told = after.parts()
    with pytest.raises(InvalidInput, match="directed"):
        Blockmodel.from_parts(arrays, {**told, "directed": "False"})
    with pytest.raises(InvalidInput, match="an earlier version of this package fitted"):
        LabelReader.of(replace(model, directed=False), foundation)


def test_nodes_without_edges_have_the_weights_of_the_communities(graph):
    model, batch, _ = fitted(graph)
    lone = replace(model, degrees=np.where(np.arange(120) < 3, 0, model.degrees))
    after = improved(lone, LabelReader(lone).add(batch, ExpectedNeighbours.zero(lone)))
    np.testing.assert_allclose(after.memberships[:3], np.tile(after.weights, (3, 1)))


def test_what_has_no_labels_is_refused():
    adjacency = np.triu(np.ones((6, 6), dtype=np.int64), 1)
    with pytest.raises(InvalidInput, match="but not the reverse; give a symmetric matrix"):
        MomentCommunities(2).fit(adjacency)
    shares = np.full((4, 2), 0.5)
    mixed = Blockmodel(shares, np.zeros((2, 2)), np.ones(4, int), shares[0], alpha0=0.5)
    with pytest.raises(InvalidInput, match="alpha0 0.5, which allows several communities"):
        passes_of(Blockmodel).require(mixed, alpha=False)
    with pytest.raises(InvalidInput, match="no alpha to learn"):
        passes_of(Blockmodel).require(replace(mixed, alpha0=0.0), alpha=True)
