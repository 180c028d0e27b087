"""Edges of named nodes: a store of them, its communities, memberships, and edges that go away."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from streaming_moments.errors import BoundExceeded
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.rows import InMemory
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.storage.log.layout import SegmentLayout, row_blocks_for
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.graphs import community_graph, membership_error

pytestmark = pytest.mark.usefixtures("few_blocks")
GRAPH = community_graph(140, 2, 0.6, 0.05, 0.0, seed=0)


def lines(ends, mark):
    rows = "".join(f"node {one}{mark}node {other}\n" for one, other in ends)
    return f"from{mark}to\n{rows}"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Three shards in any order; in the second five edges twice and a loop, in both one edge."""
    folder = tmp_path_factory.mktemp("edges")
    ends = np.random.default_rng(0).permutation(GRAPH.edges)
    first, second, third = np.array_split(ends, 3)
    second = np.concatenate([second, second[:5, ::-1], [[3, 3]], first[:1]])
    for name, part, mark in (("a.csv", first, ","), ("b.tsv", second, "\t"), ("c.csv", third, ",")):
        (folder / name).write_text(lines(part, mark))
    return folder


@pytest.fixture
def made(run, shards, tmp_path):
    def call(*more):
        store = str(tmp_path / "store")
        asked = ("--kind", "edges", "--columns", "from,to", "--date-pattern", "none", *more)
        code, _, err = run("create", store, shards, *asked)
        assert code == 0, err
        code, out, err = run("update", store, shards)
        assert code == 0, err
        return store, " ".join(out.split())

    return call


@pytest.mark.parametrize("sketched", [False, True])
def test_edges_become_memberships_of_named_nodes(run, made, shards, tmp_path, sketched):
    store, said = made(*(("--sketch-columns", "6") if sketched else ()))
    assert "the store leaves out 5 edges that occurred twice in a shard, and 1 loop" in said
    status = json.loads(run("status", store, "--json")[1])
    number = len(GRAPH.edges)
    assert (status["kind"], status["triples"], status["outside"]) == ("edges", number + 1, 0)
    assert (status["loops"], status["repeated"]) == (1, 5)
    assert status["words"] == {"nodes": 140}
    assert "edges counted" in run("status", store)[1]
    opened = MomentStore.open(store)
    assert opened.verify() == []
    assert opened.foundation.whole != sketched
    assert ("lists by `streaming-moments neighbours`" in run("log", store)[1]) == sketched

    fit = ("--model", "communities", "--topics", "2", "--alpha0", "0", "--json")
    code, out, err = run("refit", store, *fit)
    assert code == 0, err
    fitted = json.loads(out)
    assert fitted["fitted_as"] == "blockmodel"
    assert 0 < fitted["membership_error"] < 0.3
    assert np.array(fitted["mixing"]) == pytest.approx(
        np.array([[0.6, 0.05], [0.05, 0.6]]), abs=0.1
    )
    assert fitted["repeated"] == (0 if sketched else 2)
    code, out, err = run("polish", store, "--passes", "auto", "--name", "labels", "--json")
    assert code == 0, err
    assert json.loads(out)["polishing"]["documents"] == number + 1
    labels = MomentStore.open(store).load_any_model("labels").memberships
    assert (labels.max(axis=1) == 1).all()
    nodes = [int(one.removeprefix("node ")) for one in opened.foundation.nodes.terms]
    assert membership_error(labels, GRAPH.memberships[nodes]) == 0
    options = Blockmodel.Options(topics=2, alpha0=0.0)
    alone = Blockmodel.fit(InMemory((opened.load(),)), options)
    kept = opened.latest().load_any_model(fitted["model"])
    assert np.allclose(kept.memberships, alone.memberships, atol=1e-8)
    assert np.allclose(kept.node_bars, alone.node_bars, atol=1e-8)
    code, _, err = run("label", store, 1, "south")
    assert code == 0, err
    assert run("refit", store, *fit, "--name", "next")[0] == 0
    assert opened.latest().models["next"].labels == {1: "south"}
    for name in opened.latest().models:
        assert run("tag", store, "live", name)[0] == 0
    last = opened.latest().version
    code, out, err = run("diff", store, last - 1, last, "--json")
    assert code == 0, err
    pairs = json.loads(out)["moved"]["live"]["pairs"]
    assert [pair[:2] for pair in pairs] == [[0, 0], [1, 1]]
    shown = run("topics", store)[1]
    assert "node " in shown
    assert "south" in shown
    code, _, err = run("page", store, "--output", tmp_path / "page.html")
    assert code == 0, err
    assert "expected L1 error" in (tmp_path / "page.html").read_text()

    code, out, err = run("memberships", store, "--output", tmp_path / "out", "--json")
    assert code == 0, err
    [file] = json.loads(out)["files"]
    rows = pq.read_table(file)
    places = np.array([int(name.split()[1]) for name in rows["node"].to_pylist()])
    assert sorted(places) == list(range(140))
    memberships = np.array(rows["memberships"].to_pylist())
    assert membership_error(memberships, GRAPH.memberships[places]) < 0.15
    degrees = np.bincount(GRAPH.edges.ravel(), minlength=140)[places]
    assert np.abs(rows["edges"].to_numpy() - degrees).sum() == (2 if sketched else 0)
    assert rows["error"].null_count == 0
    other = ("--model", "communities", "--topics", "3", "--alpha0", "0", "--name", "other")
    assert run("refit", store, *other)[0] == 0
    code, _, err = run("memberships", store, "--output", tmp_path / "out")
    assert (code, "this run uses model other" in " ".join(err.split())) == (2, True)
    assert pq.read_table(file).equals(rows)
    assert run("memberships", store, "--output", tmp_path / "out", "--replace")[0] == 0
    assert len(pq.read_table(file)["memberships"][0]) == 3

    # edges that go away: as if they had never come
    assert run("forget", store, shards / "b.tsv")[0] == 0
    less = MomentStore.open(store)
    own = less.totals()
    assert (own.loops, own.repeated) == (0, 0)
    assert run("update", store, shards / "b.tsv", "--include-forgotten")[0] == 0
    assert run("compact", store)[0] == 0
    again = MomentStore.open(store)
    assert again.load() == opened.load()
    assert again.verify() == []


def test_a_refit_plans_with_all_neighbours_and_says_the_bytes():
    nodes = Vocabulary(tuple(map(str, range(2000))), 2000)
    foundation = EdgesFoundation(nodes)
    layout = SegmentLayout(foundation, row_blocks_for(foundation))
    options = Blockmodel.Options(topics=5)
    sketch = Basis(np.eye(2000, 6, dtype=np.int8), 2000, nodes.fingerprint)
    memberships = 8 * 8 * 2000 * 5
    assert Blockmodel.fit_bytes(EdgesFoundation(nodes, sketch), options) == memberships
    assert Blockmodel.fit_bytes(foundation, options) == memberships + 12 * 8 * 2000**2

    class Alone(Blockmodel):
        @classmethod
        def fit_bytes(cls, foundation, options):
            return memberships

    alone, whole = (plan_refit(layout, one, options, 1, 1, 4 << 30) for one in (Alone, Blockmodel))
    assert whole.peak_bytes > alone.peak_bytes
    with pytest.raises(BoundExceeded, match="MiB for finishing"):
        plan_refit(layout, Blockmodel, options, 1, 1, alone.peak_bytes)


def test_what_is_not_of_edges_is_refused(run, made, shards, tmp_path):
    store, _ = made("--no-halves", "--directed")
    ends = shards / "a.csv"
    for asked, said in (
        (("refit", store, "--model", "communities", "--topics", "2", "--refine", "1"), "--refine"),
        (("refit", store, "--topics", "2"), "`refit --model blockmodel`"),
        (("create", tmp_path / "s", ends, "--kind", "edges", "--core", "9"), "--core"),
        (
            ("create", tmp_path / "s", ends, "--kind", "edges", "--columns", "to"),
            "need two different columns",
        ),
        (
            ("create", tmp_path / "s", ends, "--directed", "--passage-words", "9"),
            "does not use `create --directed`",
        ),
        (("create", tmp_path / "s", ends, "--kind", "edges"), "no column 'source'"),
    ):
        code, _, err = run(*asked)
        assert (code, said in " ".join(err.split())) == (2, True), err
    assert not (tmp_path / "s").exists()
    # a file that has grown may hold an edge that it held already
    grown = tmp_path / "grown.csv"
    grown.write_text(lines(GRAPH.edges[:9], ","))
    assert run("update", store, grown)[0] == 0
    grown.write_text(lines(GRAPH.edges[:10], ","))
    code, _, err = run("update", store, grown)
    assert code == 2
    assert "--replace" in err
    strangers = tmp_path / "strangers.csv"
    strangers.write_text("from,to\nx,y\nnode 1,y\n")
    code, _, err = run("update", store, strangers)
    assert code == 2
    assert "none of its edges joins two different nodes" in err
    strangers.write_text("from,to\nx,y\nnode 1,node 2\n")
    code, out, _ = run("update", store, strangers)
    assert code == 0
    assert "left out 1 edge, because an end is not a node of the store" in out
    fit = ("--model", "blockmodel", "--topics", "2", "--json")
    fitted = json.loads(run("refit", store, *fit)[1])
    assert "membership_error" not in fitted
    assert run("transform", store, ends, "--output", tmp_path / "t")[0] == 2
