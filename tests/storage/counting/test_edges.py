import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.errors import ShardError
from streaming_moments.storage.counting.graphs import edges
from streaming_moments.storage.counting.graphs.edges import (
    EdgeColumns,
    gather_part,
    part_of,
    read_edges,
    set_down,
)
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60)


def write_csv(path, pairs):
    path.write_text("source,target\n" + "".join(f"{one},{other}\n" for one, other in pairs))


@given(
    pairs=EDGES,
    cut=st.integers(0, 60),
    parts=st.integers(1, 4),
    directed=st.booleans(),
    held=st.integers(1, 40),
)
def test_lists_hold_each_neighbour_once_wherever_edges_are_cut(
    tmp_path_factory, pairs, cut, parts, directed, held
):
    folder = tmp_path_factory.mktemp("edges")
    write_csv(folder / "a.csv", pairs[:cut] or [(0, 1)])
    write_csv(folder / "b.csv", pairs[cut:] or [(0, 1)])
    every = [*(pairs[:cut] or [(0, 1)]), *(pairs[cut:] or [(0, 1)])]
    columns = EdgeColumns(directed=directed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "_HELD", held)
        read = [
            set_down(shard, place, ShardFormat(), columns, parts, str(folder / "aside"))
            for place, shard in enumerate(list_shards([str(folder / "*.csv")]))
        ]
    files = [file for one in read for file in one.files]
    found = [gather_part(part, parts, files, str(folder / "lists")) for part in range(parts)]
    expected = {}
    for one, other in every:
        for x, y in [(one, other)] if directed else [(one, other), (other, one)]:
            if x != y:
                expected.setdefault(x, set()).add(y)
    lists = {}
    for part, own in enumerate(found):
        if own.url:
            rows = pq.read_table(own.url)
            nodes = rows["node"].to_numpy()
            assert (part_of(nodes, parts) == part).all()
            assert (np.diff(nodes) > 0).all()
            lists |= dict(zip(nodes.tolist(), rows["neighbours"].to_pylist(), strict=True))
    assert lists == {node: sorted(own) for node, own in expected.items()}
    ends = 1 if directed else 2
    loops = sum(one == other for one, other in every)
    assert sum(one.loops for one in read) == loops
    assert sum(one.edges for one in read) == len(every)
    different = sum(map(len, expected.values())) // ends
    assert sum(one.repeated for one in found) // ends == len(every) - loops - different


def test_lists_come_in_row_groups_that_a_reader_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(edges, "_GROUP_IDS", 10)
    write_csv(tmp_path / "a.csv", [(0, node) for node in range(1, 25)])
    [shard] = list_shards([str(tmp_path / "a.csv")])
    read = set_down(shard, 0, ShardFormat(), EdgeColumns(), 1, str(tmp_path / "aside"))
    found = gather_part(0, 1, read.files, str(tmp_path / "lists"))
    file = pq.ParquetFile(found.url)
    groups = [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)]
    assert groups == [1, 10, 10, 4]  # the first node has more neighbours than a group


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("1,2\n3,\n", "row 2 has an edge with one end: its 'target' is empty"),
        (",2\n", "row 1 has an edge with one end: its 'source' is empty"),
        ("1,2\n2,3\n3,Ada\n", "row 3 has the target 'Ada', which is not a whole number"),
        ("1,2\n-4,3\n", "row 2 has the source -4; number the nodes from 0"),
        ("1.5,3\n", "row 1 has the source '1.5', which is not a whole number"),
    ],
)
def test_an_edge_that_is_none_is_named_by_its_row(tmp_path, lines, said):
    (tmp_path / "a.csv").write_text("source,target\n" + lines)
    [shard] = list_shards([str(tmp_path / "a.csv")])
    with pytest.raises(ShardError, match=said):
        list(read_edges(shard, ShardFormat(), EdgeColumns()))


def test_edges_of_parquet_and_compressed_tables_are_the_same(tmp_path):
    pairs = np.random.default_rng(0).integers(0, 500, (700, 2))
    table = pa.table({"to": pairs[:, 1].astype(np.int32), "from": pairs[:, 0].astype(np.float32)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=150)
    lines = "".join(f"{one}\t{other}\n" for one, other in pairs)
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(f"from\tto\n{lines}".encode()))
    objects = "".join(f'{{"from": {one}, "to": {other}}}\n' for one, other in pairs)
    (tmp_path / "a.jsonl").write_text(objects)
    columns = EdgeColumns("from", "to")
    for shard in list_shards([str(tmp_path / "*")]):
        read = np.concatenate(list(read_edges(shard, ShardFormat(), columns)))
        assert np.array_equal(read, pairs)
    (tmp_path / "a.txt").write_text("1 2\n")
    [shard] = list_shards([str(tmp_path / "a.txt")])
    with pytest.raises(ShardError, match="give Parquet, JSON Lines, CSV or TSV"):
        list(read_edges(shard, ShardFormat(), columns))


def test_numbers_of_a_large_dictionary_are_read_many_rows_at_a_time(tmp_path):
    pairs = np.random.default_rng(0).integers(0, 1 << 40, (40_000, 2))
    table = pa.table({"source": pairs[:, 0], "target": pairs[:, 1], "more": ["x"] * 40_000})
    pq.write_table(table, tmp_path / "a.parquet", dictionary_pagesize_limit=1 << 20)
    [shard] = list_shards([str(tmp_path / "a.parquet")])
    # so a chunk is what was decoded at once
    limits = ReadLimits(batch_documents=1, row_group_bytes=1 << 20)
    read = list(read_edges(shard, ShardFormat(), EdgeColumns(), limits))
    assert np.array_equal(np.concatenate(read), pairs)
    assert max(map(len, read)) == 16_384


@pytest.mark.parametrize("missing", [None, np.nan])
def test_an_end_that_is_missing_among_numbers_is_named(tmp_path, missing):
    ends = {"source": pa.array([3.0, missing], pa.float64()), "target": [4, 5]}
    pq.write_table(pa.table(ends), tmp_path / "a.parquet")
    [shard] = list_shards([str(tmp_path / "a.parquet")])
    with pytest.raises(ShardError, match="row 2 has an edge with one end: its 'source' is empty"):
        list(read_edges(shard, ShardFormat(), EdgeColumns()))


@pytest.mark.parametrize(("kind", "exact"), [(pa.float64(), 2**53), (pa.float32(), 2**24)])
def test_floats_that_may_be_two_numbers_are_no_nodes(tmp_path, kind, exact):
    for last, fits in ((exact - 1, True), (exact, False)):
        ends = {"source": pa.array([3.0, last], kind), "target": [4, 5]}
        pq.write_table(pa.table(ends), tmp_path / "a.parquet")
        [shard] = list_shards([str(tmp_path / "a.parquet")])
        if fits:
            assert np.concatenate([*read_edges(shard, ShardFormat(), EdgeColumns())])[1, 0] == last
            continue
        with pytest.raises(
            ShardError, match=r"row 2 has the source .*, or is too large for a float"
        ):
            list(read_edges(shard, ShardFormat(), EdgeColumns()))


def test_nodes_of_any_number_are_gathered_alike(tmp_path):
    small = np.random.default_rng(0).integers(0, 30, (200, 2))
    lists = []
    for shift in (0, 1 << 40):
        write_csv(tmp_path / f"{shift}.csv", small + shift)
        [shard] = list_shards([str(tmp_path / f"{shift}.csv")])
        read = set_down(shard, 0, ShardFormat(), EdgeColumns(), 1, str(tmp_path / "aside"))
        found = gather_part(0, 1, read.files, str(tmp_path / f"lists{shift}"))
        table = pq.read_table(found.url).to_pydict()
        own = [[other - shift for other in row] for row in table["neighbours"]]
        lists.append(([node - shift for node in table["node"]], own, found.repeated))
    assert lists[0] == lists[1]
