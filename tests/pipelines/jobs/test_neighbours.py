"""Graphs: edges grouped by node, a store of the lists, memberships of all nodes."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments.models.communities.model import Communities
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs import neighbours as job
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import LockHeld, held
from streaming_moments.storage.log.processes import mark_of_process
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.graphs import community_graph, membership_error

GRAPH = community_graph(220, 2, 0.5, 0.05, 0.0, seed=0)


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """The edges in three formats, some of them twice, in either direction; a loop."""
    folder = tmp_path_factory.mktemp("edges")
    rng = np.random.default_rng(0)
    ends = rng.permutation(GRAPH.edges)
    turned = rng.random(len(ends)) < 0.5
    ends[turned] = ends[turned][:, ::-1]
    first, second, third = np.array_split(ends, 3)
    third = np.concatenate([third, first[:5][:, ::-1], first[5:7], [[3, 3]]])
    table = {"source": first[:, 0], "target": first[:, 1]}
    pq.write_table(pa.table(table), folder / "a.parquet")
    for path, part, mark in (("b.tsv.gz", second, "\t"), ("c.csv", third, ",")):
        lines = "".join(f"{one}{mark}{other}\n" for one, other in part)
        content = f"source{mark}target\n{lines}".encode()
        compressed = gzip.compress(content) if path.endswith("gz") else content
        (folder / path).write_bytes(compressed)
    return str(folder / "*")


def test_edges_become_lists_a_store_and_memberships(run, edges, tmp_path):
    lists, store = tmp_path / "lists", tmp_path / "store"
    code, out, err = run("neighbours", edges, "--output", lists, "--parts", "2", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["nodes"], found["edges"]) == (220, len(GRAPH.edges))
    assert (found["duplicates"], found["loops"]) == (7, 1)
    # and nothing beside them but the lock
    assert sorted(found["files"]) == sorted(map(str, lists.glob("[!.]*")))
    assert [path.name for path in lists.glob(".*")] == [".grouping"]

    given = (*found["files"], "--ids-column", "neighbours")
    told = ("--min-documents", "1", "--max-document-fraction", "1", "--max-topics", "2")
    assert run("create", store, *given, *told)[0] == 0
    for file in found["files"]:  # each in a segment of its own, which a change replaces
        assert run("update", store, file)[0] == 0
    opened = MomentStore.open(str(store))
    assert opened.load().length_histogram.n_tokens == 2 * len(GRAPH.edges)
    fit = ("--model", "communities", "--topics", "2", "--alpha0", "0", "--refine", "0")
    code, out, err = run("refit", store, *fit)
    assert code == 0, err
    model = opened.latest().load_model()
    assert type(model) is Communities
    output = tmp_path / "memberships"
    code, out, err = run(
        "transform", store, *found["files"], "--output", output, "--id-column", "node"
    )
    assert code == 0, err
    rows = pa.concat_tables([pq.read_table(file) for file in output.glob("*.parquet")])
    nodes = np.array(rows["id"].to_pylist(), dtype=int)
    assert sorted(nodes) == list(range(220))
    memberships = np.array(rows["proportions"].to_pylist())
    assert membership_error(memberships, GRAPH.memberships[nodes]) < 0.1

    code, _, err = run("page", store, "--output", tmp_path / "communities.html")
    assert code == 0, err
    assert "communities" in (tmp_path / "communities.html").read_text()

    # an edge that goes away: lists of as many parts are counted anew
    ends = GRAPH.edges[1:]
    less = pa.table({"source": ends[:, 0], "target": ends[:, 1]})
    pq.write_table(less, tmp_path / "less.parquet")
    grouped = run("neighbours", tmp_path / "less.parquet", "--output", lists, "--parts", "2")
    assert grouped[0] == 0
    code, _, err = run("update", store, *found["files"], "--replace")
    assert code == 0, err
    assert opened.latest().load().length_histogram.n_tokens == 2 * len(ends)
    assert run("neighbours", tmp_path / "less.parquet", "--output", lists)[0] == 0
    assert [path.name for path in lists.glob("[!.]*")] == ["neighbours-00000-of-00001.parquet"]


def test_directed_edges_give_their_targets_alone(run, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n1,3\n2,1\n")
    ends = ("--source", "x", "--target", "y", "--directed", "--json")
    out = run("neighbours", tmp_path / "a.csv", "--output", tmp_path / "lists", *ends)[1]
    found = json.loads(out)
    assert (found["nodes"], found["edges"], found["duplicates"]) == (2, 3, 0)
    lists = pq.read_table(found["files"][0]).to_pydict()
    assert lists == {"node": [1, 2], "neighbours": [[2, 3], [1]]}


def test_of_many_nodes_all_are_words_and_edges_in_any_order_are_named(run, tmp_path):
    nodes = np.arange(10_001)
    ring = pa.table({"source": nodes, "target": (nodes + 1) % nodes.size})
    pq.write_table(ring, tmp_path / "a.parquet")
    code, out, err = run("neighbours", tmp_path / "a.parquet", "--output", tmp_path / "lists")
    assert code == 0, err
    said = " ".join(out.split())
    assert "--max-document-fraction 1 --vocabulary-size 10001" in said
    assert (
        "with more than 4,096 nodes, a store of --kind edges separates communities better" in said
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("source,target\n1,2\n3,\n", "row 2 has an edge with one end"),
        ("source,target\n3,3\n", "none of 1 edges joins two nodes"),
        ("from,to\n1,2\n", "has no column 'source'"),
        ("source,target\n", "is empty"),
    ],
)
def test_bad_edges_leave_nothing_behind(run, tmp_path, content, said):
    (tmp_path / "a.csv").write_text(content)
    code, _, err = run("neighbours", tmp_path / "a.csv", "--output", tmp_path / "lists")
    assert code == 2
    assert said in err
    assert {path.name for path in (tmp_path / "lists").iterdir()} <= {".grouping"}


def test_of_two_groupings_at_once_into_a_folder_one_is_refused(run, embedded, edges, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("source,target\n" + "".join(f"{n},{n + 1}\n" for n in range(1000, 3000)))
    out = tmp_path / "lists"
    with held(Folder.at(f"{out}/.grouping"), timedelta(hours=1)):
        code, _, err = run("neighbours", edges, "--output", out)
        assert (code, "another run holds the lock" in err) == (2, True)
        assert [path.name for path in out.iterdir()] == [".grouping"]

    def group(shards):
        try:
            return job.neighbours(list_shards([shards]), str(out), Run(embedded), parts=3)
        except LockHeld as error:
            return error

    for _ in range(4):
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(group, (edges, str(other))))
        nodes = pq.read_table(out)["node"].to_numpy()
        assert (nodes < 1000).all() or (nodes >= 1000).all()
        assert len(nodes) in [one.nodes for one in found if not isinstance(one, LockHeld)]


def test_more_parts_than_there_may_be_are_refused(embedded):
    with pytest.raises(job.InvalidInput, match="5000 parts"):
        job.neighbours([object()], "memory://none", job.Run(embedded), parts=5000)


KILLED = """
import os, signal, sys
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs import neighbours as job
from streaming_moments.storage.listing import list_shards

def dying(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

job.gather_part = dying
with connect() as cluster:
    job.neighbours(list_shards([sys.argv[1]]), sys.argv[2], Run(cluster))
"""


def test_what_a_killed_grouping_left_the_next_deletes_and_no_other(run, tmp_path):
    (tmp_path / "a.csv").write_text("source,target\n1,2\n1,3\n")
    lists = tmp_path / "lists"
    grouping = [sys.executable, "-c", KILLED, tmp_path / "a.csv", lists]
    killed = subprocess.run(grouping, capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    [left] = lists.glob(".edges-*")
    assert list(left.iterdir())
    # of one that goes on here, and of those elsewhere, of which the age tells
    mine, other = mark_of_process().replace(" ", "-"), f"{32 * '0'}-7-7"
    kept = {lists / f".edges-{mark}-{uuid.uuid4().hex}" for mark in (mine, other)}
    old = {lists / f".edges-{mark}{uuid.uuid4().hex}" for mark in ("", f"{other}-")}
    for folder in kept | old:
        folder.mkdir()
        (folder / "0-0").write_bytes(b"edges")
    long_ago = time.time() - 8 * 24 * 3600
    for folder in old:
        os.utime(folder / "0-0", (long_ago, long_ago))
    assert run("neighbours", tmp_path / "a.csv", "--output", lists)[0] == 0
    written = {lists / "neighbours-00000-of-00001.parquet", lists / ".grouping"}
    assert set(lists.iterdir()) == kept | written
