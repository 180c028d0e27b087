import networkx as nx
import numpy as np
import pytest
from hidden.embeddings import BundledRows, EmbeddedTexts, FoundClusters
from hidden.graphs import PlantedGraph, RealGraph
from hidden.records import OurViews, PlantedViews, ViewsEm
from hidden.sequences import PlantedSequences, TextSymbols
from hidden.tables import FoundTree, OurTree, PlantedTable
from hidden.tree_em import likelier_tree, random_tables
from hidden.vector_ways import OurMixture

from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel


def test_the_truth_errs_nothing():
    sequences = PlantedSequences(3000, n_symbols=6, states=2)
    drawn = sequences.load()
    turned = HiddenMarkovModel(
        drawn.truth.emission[:, ::-1],
        drawn.truth.transition[::-1, ::-1],
        drawn.truth.start[::-1],
        drawn.truth.start[::-1],
    )
    assert sequences.score(turned, drawn) == pytest.approx(
        {"error": 0, "moves_error": 0, "excess": 0}, abs=1e-12
    )
    graph = PlantedGraph(60, 0.5, 0.1, 0.0)
    planted = graph.load()
    wide = np.pad(planted.memberships, ((0, 0), (1, 2)))
    assert graph.score(wide, planted) == pytest.approx({"error": 0, "agreement": 1})
    table = PlantedTable(10)
    rows = table.load()
    assert table.score(FoundTree(rows.truth.tree), rows) == {"excess": 0}


def test_modularity_is_that_of_networkx():
    graph = RealGraph("karate", 2)
    data = graph.load()
    groups = np.arange(34) % 3
    parts = [set(np.flatnonzero(groups == one).tolist()) for one in range(3)]
    expected = nx.community.modularity(nx.karate_club_graph(), parts, weight=None)
    assert graph.score(np.eye(3)[groups], data)["modularity"] == pytest.approx(expected)


def test_rounds_on_a_tree_climb_its_own_likelihood():
    rows = PlantedTable(300).load()
    begun = random_tables(rows.truth.tree, np.random.default_rng(0))
    likelihoods = [begun.log_probabilities(rows.training).mean()]
    tree = begun
    for _ in range(4):
        tree, before = likelier_tree(tree, rows.training, 1, 0.0)
        assert before == pytest.approx(likelihoods[-1])
        likelihoods.append(tree.log_probabilities(rows.training).mean())
    assert (np.diff(likelihoods) > 0).all()
    # of its own rows it is likelier than what drew them
    tree, _ = likelier_tree(rows.truth.tree, rows.training, 20, 0.0)
    truth = rows.truth.tree.log_probabilities(rows.training).mean()
    assert tree.log_probabilities(rows.training).mean() > truth


def test_independent_columns_are_as_likely_as_their_shares():
    rows = PlantedTable(200).load()
    way = OurTree("independent columns")
    found = way.fit(rows).tree.log_probabilities(rows.held_out[:7])
    shares = [(np.bincount(column, minlength=4) + 1) / 204 for column in rows.training.T]
    expected = [sum(np.log(shares[c][v]) for c, v in enumerate(row)) for row in rows.held_out[:7]]
    assert found == pytest.approx(expected)


def test_views_are_matched_by_their_rows():
    source = PlantedViews(3000, 5.0)
    data = source.load()
    for ways, most in (([ViewsEm(seed=seed) for seed in range(4)], 0.1), ([OurViews()], 0.15)):
        prepared = ways[0].prepare(data)
        results = [way.result(way.fit(prepared), prepared) for way in ways]
        likeliest, _ = max(results, key=lambda one: one[1])
        assert max(source.score(likeliest, data).values()) < most


def test_every_fifth_text_is_held_out(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f'{{"text": "È già {one}, 7!"}}\n' for one in "abcdef"))
    data = TextSymbols(2, str(path)).load()
    # "e gia b": seven letters and spaces
    assert (data.training.documents, data.held_out.documents) == (4, 2)
    assert data.training.symbols.size == 28
    words = TextSymbols(2, str(path), words=2).load()
    assert words.training.symbols.reshape(4, 3)[:, :2].tolist() == [[0, 1]] * 4
    assert words.n_symbols == 3


def test_labels_of_rows_agree_with_themselves_and_clusters_nearly():
    source, way = BundledRows("iris"), OurMixture(passes=2)
    data = source.load()
    assert (len(data.training), len(data.held_out), data.components) == (100, 50, 3)
    told = source.score(FoundClusters(data.labels, -1.0, 1), data)
    assert told == pytest.approx({"ari": 1, "nmi": 1, "held": -1, "passes": 1})
    found, likelihood = way.result(way.fit(way.prepare(data)), data)
    assert 0.3 < source.score(found, data)["ari"] < 1
    assert found.passes == 3
    # as many nats on rows that were not seen, nearly
    assert abs(found.held - likelihood) < 1


@pytest.mark.parametrize("way", ["svd", "projection"])
def test_texts_become_rows_of_unit_length(tmp_path, way):
    words = {"fruit": ["red", "apple", "pie", "tree"], "cars": ["fast", "car", "lane", "road"]}
    rng, path = np.random.default_rng(0), tmp_path / "texts.tsv"
    lines = [
        f"{' '.join(rng.choice(words[label], 4))}\ttrain\t{label}"
        for label in words
        for _ in range(30)
    ]
    path.write_text("\n".join(lines) + "\n")
    data = EmbeddedTexts(str(path), way, 3).load()
    assert data.training.shape == (40, 3)
    assert data.held_out.shape == (20, 3)
    assert data.components == 2
    np.testing.assert_allclose(np.linalg.norm(data.training, axis=1), 1)
