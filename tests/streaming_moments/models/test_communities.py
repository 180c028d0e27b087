import numpy as np
import pytest

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock
from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.base import FitOptions
from streaming_moments.models.communities import model as communities
from streaming_moments.models.communities.filling import (
    EqualIndices,
    filled,
    pairs_by_rank,
    triples_by_model,
)
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.rows import InMemory
from streaming_moments.models.topics import TopicModel
from streaming_moments.sklearn import MomentCommunities
from streaming_moments.statistics.counts.weighted import WeightedStatistics
from streaming_moments.synthetic.corpora import topic_error
from streaming_moments.synthetic.graphs import community_graph, membership_error
from streaming_moments.testing.exact_statistics import in_all_places, statistics_of

ALPHA0, K = 0.5, 3


def blockmodel(nodes, seed):
    """Exact moments of lists of neighbours, and their columns; equal neighbours there are none."""
    rng = np.random.default_rng(seed)
    block = np.full((K, K), 0.03) + np.diag(np.full(K, 0.17))
    F = rng.dirichlet(np.full(K, ALPHA0 / K), size=nodes) @ block
    M, w = F / F.sum(axis=0), rng.dirichlet(np.full(K, 5.0))
    own, first = w / (ALPHA0 + 1), M @ w
    M2 = (M * own) @ M.T + ALPHA0 / (ALPHA0 + 1) * np.outer(first, first)
    T = np.einsum("ij,kj,lj,j->ikl", M, M, M, own)
    crossed = in_all_places(M2[:, :, None] * first)
    cubes = first[:, None, None] * first[:, None] * first
    M3 = 2 / (ALPHA0 + 2) * T + ALPHA0 / (ALPHA0 + 2) * crossed
    M3 -= 2 * ALPHA0**2 / ((ALPHA0 + 1) * (ALPHA0 + 2)) * cubes
    i, pairs, triples = np.arange(nodes), M2.copy(), M3.copy()
    pairs[i, i] = 0
    triples[i, i, :] = triples[:, i, i] = 0
    triples[i, :, i] = 0
    return M, w, first, (M2, M3), statistics_of(first, pairs, triples, nodes, nodes, seed)


def error(statistics, M):
    model = TopicModel.of_form(InMemory((statistics,)), form_of(ALPHA0), FitOptions(topics=K))
    return topic_error(model.topics, M), model


@pytest.mark.parametrize(("nodes", "reached"), [(30, 0.041), (60, 0.006)])
def test_what_equal_neighbours_lack_is_filled_in_on_exact_moments(nodes, reached):
    """Bounds: what the prototype reached in as many rounds."""
    M, w, first, (M2, M3), lacking = blockmodel(nodes, 1)
    before, _ = error(lacking, M)
    assert before > 0.04
    pairs = pairs_by_rank(lacking.pair_counts, first, K, form_of(ALPHA0), seed=0)
    assert np.abs(pairs - np.diag(M2)).max() < 1e-6 * M2.max()
    i = np.arange(nodes)
    third = M3[i, i, :]
    C3 = lacking.length_histogram.C3
    assert np.abs(triples_by_model(M, w, ALPHA0, C3) - third).max() < 1e-12
    # with what they lack exactly, the moments give the model exactly
    assert error(filled(lacking, EqualIndices(np.diag(M2), third)), M)[0] < 1e-6
    triples = np.zeros((nodes, nodes))
    for _ in range(6):
        _, model = error(filled(lacking, EqualIndices(pairs, triples)), M)
        triples = triples_by_model(model.topics, model.weights, ALPHA0, C3)
    assert error(filled(lacking, EqualIndices(pairs, triples)), M)[0] < reached < before


def test_what_the_rank_tells_is_filled_in_until_it_settles():
    """Of 900 nodes 60 rounds left a ten-thousandth; from other directions it settles there too."""
    graph = community_graph(900, 5, 0.1, 0.02, 1.0, seed=0)
    statistics = MomentStatistics.of(graph.batch, Basis.from_pilot(graph.batch, max_topics=5))
    pairs = statistics.pair_counts.astype(float)
    first = statistics.moment_counts / statistics.length_histogram.C1
    one, other = (pairs_by_rank(pairs, first, 5, form_of(1.0), seed) for seed in (0, 1))
    assert not np.array_equal(one, other), "the seed is the model's"
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_the_seed_of_a_fit_is_that_of_what_is_filled_in(monkeypatch):
    graph, seeds = community_graph(100, 2, 0.4, 0.05, 0.0, seed=0), []
    statistics = MomentStatistics.of(graph.batch, Basis.from_pilot(graph.batch, max_topics=2))

    def seen(*told):
        seeds.append(told[-1])
        return pairs_by_rank(*told)

    monkeypatch.setattr(communities, "pairs_by_rank", seen)
    Communities.fit(InMemory((statistics,)), Communities.Options(topics=2, seed=7))
    assert seeds == [7]


@pytest.fixture(scope="module")
def planted():
    graph = community_graph(2000, 5, 0.1, 0.02, ALPHA0, seed=0)
    basis = Basis.from_pilot(graph.batch, max_topics=5)
    return graph, MomentStatistics.of(graph.batch, basis)


def test_planted_memberships_are_found(planted):
    graph, statistics = planted
    options = Communities.Options(topics=5, alpha0=ALPHA0)
    model = Communities.fit(InMemory((statistics,)), options)
    memberships = model.transform(graph.batch)
    assert memberships.sum(axis=1) == pytest.approx(np.ones(2000))
    assert membership_error(memberships, graph.memberships) <= 0.31
    assert model.implied_alpha0 == pytest.approx(ALPHA0, rel=0.1)
    assert model.topic_bars is not None
    nobody = CountBatch.from_csr(np.zeros((1, 2000), dtype=np.int64))
    assert np.allclose(model.transform(nobody), model.weights)
    likeliest = TopicModel.transform(model, graph.batch)
    assert membership_error(likeliest, graph.memberships) > 0.31


def test_few_nodes_are_filled_in_whatever_the_row_blocks():
    graph = community_graph(150, 3, 0.4, 0.05, ALPHA0, seed=0)
    basis = Basis.from_pilot(graph.batch, max_topics=3)
    options = Communities.Options(topics=3, alpha0=ALPHA0, refine=0)
    blocks = [MomentStatistics.of(graph.batch, basis, RowBlock(i, 2)) for i in range(2)]
    whole = MomentStatistics.of(graph.batch, basis)
    one, two = (Communities.fit(InMemory(parts), options) for parts in (blocks, (whole,)))
    assert np.array_equal(one.topics, two.topics)
    aged = [WeightedStatistics.of([(1.0, part)]) for part in blocks]
    recent = Communities.fit(InMemory(aged), options)
    assert np.allclose(recent.topics, one.topics)
    plain = TopicModel.fit(InMemory((whole,)), options)
    assert not np.allclose(one.topics, plain.topics, rtol=1e-3)
    assert membership_error(one.transform(graph.batch), graph.memberships) < 0.3
    again = Communities.from_parts(*one.parts())
    assert np.array_equal(again.transform(graph.batch), one.transform(graph.batch))


def test_what_a_model_has_of_equal_neighbours_alone_is_not_filled_in():
    with pytest.raises(NotIdentifiable, match="count more edges"):
        triples_by_model(np.array([[1.0], [0.0]]), np.ones(1), 0.5, 60.0)


@pytest.mark.parametrize("joined", [2, 6])
def test_a_graph_without_three_neighbours_tells_no_communities(joined):
    matrix = np.zeros((6, 6), dtype=int)
    for one in range(joined):
        other = (one + 1) % 6
        matrix[one, other] = matrix[other, one] = 1
    with pytest.raises(NotIdentifiable, match="no node has three neighbours"):
        MomentCommunities(1, alpha0=0.5).fit(matrix)


def test_the_estimator_takes_an_adjacency_matrix():
    graph = community_graph(300, 2, 0.4, 0.05, 0.0, seed=1)
    matrix = graph.batch.to_csr()
    found = MomentCommunities(2, alpha0=0.0, refine=0).fit(matrix)
    assert membership_error(found.memberships_, graph.memberships) < 0.1
    assert (found.memberships_.max(axis=1) == 1).all()
    likeliest = found.transform(matrix[:5]).argmax(axis=1)
    assert np.array_equal(likeliest, found.memberships_[:5].argmax(axis=1))
    mixed = MomentCommunities(2, alpha0=0.5, refine=0).fit(matrix)
    assert np.array_equal(mixed.transform(matrix[:5]), mixed.memberships_[:5])
    loops = matrix.tolil()
    loops[7, 7] = 1
    with pytest.raises(InvalidInput, match="node 7 is its own neighbour"):
        MomentCommunities(2).fit(loops.tocsr())
    for wrong in (matrix * 2, -matrix):
        with pytest.raises(InvalidInput, match="0 and 1"):
            MomentCommunities(2).fit(wrong)


def random_graph(nodes, share, seed=0):
    upper = np.triu(np.random.default_rng(seed).random((nodes, nodes)) < share, 1)
    return (upper | upper.T).astype(int)


def test_more_communities_than_documented_and_rows_of_no_node_are_refused():
    graph = random_graph(200, 0.1)
    with pytest.raises(InvalidInput, match="n_components is 33; give at most 32"):
        MomentCommunities(33).fit(graph)
    with pytest.raises(InvalidInput, match="X has 200 rows and 100 columns; an adjacency matrix"):
        MomentCommunities(2).fit(graph[:, :100])


@pytest.mark.parametrize("k", [2, 10])
def test_communities_of_a_graph_without_any_are_warned_of(k):
    with pytest.warns(UserWarning, match=f"{k} communities predict held-out neighbours worse"):
        MomentCommunities(k).fit(random_graph(200, 0.1, seed=1))


def test_planted_communities_are_not_warned_of(recwarn):
    graph = community_graph(200, communities=4, inside=0.4, outside=0.05, alpha0=0.0)
    MomentCommunities(4, alpha0=0.0).fit(graph.batch.to_csr())
    MomentCommunities(8, alpha0=0.0).fit(graph.batch.to_csr())
    assert not [one for one in recwarn if "communities" in str(one.message)]
