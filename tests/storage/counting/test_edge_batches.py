"""Edges between names: distinct in a shard for any cut, skipped edges, bad rows."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.errors import BoundExceeded, ShardError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.graphs.edge_batches import (
    EdgeReader,
    added_counts,
    sample_edges,
)
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

NAMES = ["ann", "bob", "cid", "dée"]
NODES = Vocabulary(tuple(NAMES), 4)
ENDS = st.sampled_from([*NAMES, "nobody"])


def written(path, edges):
    content = "source\ttarget\n" + "".join(f"{one}\t{other}\n" for one, other in edges)
    path.write_bytes(gzip.compress(content.encode()))
    [shard] = list_shards([str(path)])
    return shard


@given(
    edges=st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=40),
    rows=st.integers(1, 3),
    directed=st.booleans(),
)
def test_each_edge_of_a_shard_is_there_once_however_it_is_cut(
    tmp_path_factory, edges, rows, directed
):
    shard = written(tmp_path_factory.mktemp("edges") / "a.tsv.gz", edges)
    columns = EdgeColumns(directed=directed)
    limits = ReadLimits(batch_documents=rows)
    found = list(EdgeReader.of(ShardFormat(), columns, NODES, limits).read(shard))
    ends = [(NAMES[one], NAMES[other]) for read in found for one, other in read.batch.ends]
    known = [edge for edge in edges if "nobody" not in edge]
    kept = [edge for edge in known if edge[0] != edge[1]]
    expected = set(kept) if directed else {frozenset(edge) for edge in kept}
    assert len(ends) == len(expected)
    assert {edge if directed else frozenset(edge) for edge in ends} == expected
    assert sum(read.outside for read in found) == len(edges) - len(known)
    assert sum(read.batch.loops for read in found) == len(known) - len(kept)
    assert sum(read.batch.repeated for read in found) == len(kept) - len(expected)


def test_names_of_all_nodes_and_some_edges_are_drawn(tmp_path):
    edges = [("hub", f"leaf{number:03d}") for number in range(300)]
    shard = written(tmp_path / "a.tsv.gz", edges)
    limits = ReadLimits(batch_documents=5)
    sample = sample_edges(shard, ShardFormat(), EdgeColumns(), 50, 0, limits)
    assert sample.nodes.num_rows == 301
    assert sample.nodes.to_pylist()[0] == {"name": "hub", "count": 300}
    drawn = sample.edges.to_pydict()
    assert set(drawn["source"]) == {"hub"}
    assert len(set(drawn["target"])) == 50
    again = sample_edges(shard, ShardFormat(), EdgeColumns(), 50, 0, limits)
    assert again.edges == sample.edges
    few = sample_edges(shard, ShardFormat(), EdgeColumns(), 50, 0, limits, room=400)
    assert 5 <= few.edges.num_rows < 20
    assert few.edges.nbytes <= 400
    assert few.nodes == sample.nodes
    little = ReadLimits(batch_documents=5, pilot_bytes=2000)
    with pytest.raises(BoundExceeded, match="nodes take .* raise --memory"):
        sample_edges(shard, ShardFormat(), EdgeColumns(), 50, 0, little)
    both = added_counts([sample.nodes, sample.nodes]).to_pylist()
    assert both[:2] == [{"name": "hub", "count": 600}, {"name": "leaf000", "count": 2}]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"source": ["a", None], "target": ["b", "c"]}, "row 2 has an edge with one end"),
        ({"source": ["a", "b"], "target": ["", "c"]}, "row 1 has an edge with one end"),
        ({"source": [3.0, None], "target": [4, 5]}, "row 2 has an edge with one end"),
        ({"source": [0.5], "target": ["b"]}, "of type double"),
        ({"source": [["a", "b"]], "target": ["b"]}, "holds lists"),
        ({"source": ["a"]}, "no column 'target'"),
    ],
)
def test_bad_ends_are_named(tmp_path, ends, said):
    pq.write_table(pa.table(ends), tmp_path / "a.parquet")
    [shard] = list_shards([str(tmp_path / "a.parquet")])
    reader = EdgeReader.of(ShardFormat(), EdgeColumns(), NODES)
    with pytest.raises(ShardError, match=said):
        list(reader.read(shard))
    with pytest.raises(ShardError, match=said):
        sample_edges(shard, ShardFormat(), EdgeColumns(), 5, 0)


def test_a_shard_of_too_many_edges_is_to_be_cut(tmp_path):
    shard = written(tmp_path / "a.tsv.gz", [("ann", "bob"), ("bob", "cid")])
    reader = EdgeReader.of(ShardFormat(), EdgeColumns(), NODES, ReadLimits(row_group_bytes=8))
    with pytest.raises(ShardError, match="more than 1 edges.*split it"):
        list(reader.read(shard))
