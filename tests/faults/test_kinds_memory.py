"""Hostile shards of other kinds, with little memory: no more than the budget is ever held.

Each shard is given to `create`, to `update` of a store whose pilot was honest, and to `transform`
with a model of it; a store that has counted one is refitted. Each of them ends with what is
expected, within `--memory 600MB`.
"""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_runs import run_command
from measured_commands import BUDGET, bounded

MEGABYTE = 1_000_000
DONE, REFUSED, BAD_SHARD = 0, 2, 3
VIEWS = ("--kind", "views", "--columns", "a,b,c")
TEXTS = ("--kind", "views", "--columns", "a:text,b,c", "--max-document-fraction", "1")
SEQUENCES = ("--kind", "sequences")
LISTS = ("--kind", "sequences", "--columns", "steps")
TIMES = ("--kind", "sequences", "--columns", "name,time,symbol")
VECTORS = ("--kind", "vectors")
EDGES = ("--kind", "edges", "--sketch-columns", "8")


def text(path, *pieces):
    with open(path, "w") as file:
        file.writelines(pieces)


def zstd(path, pieces):
    with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd") as file:
        for piece in pieces:
            file.write(piece.encode())


def records(path, number, record):
    """Lines of JSON, of each number, compressed."""
    zstd(path, (json.dumps(record(one)) + "\n" for one in range(number)))


def rows(path, table, number, **options):
    """One row group of so many rows, each of those of a table in turn."""
    taken = table.take(pa.array(np.arange(number) % table.num_rows))
    options = {"row_group_size": number, **options}
    pq.write_table(taken, path, compression="zstd", **options)


def wide(path, table):
    """A row with 100,000 columns that nobody asks for."""
    numbers = {f"c{number}": pa.array([1], pa.int8()) for number in range(100_000)}
    columns = {name: table[name].slice(0, 1) for name in table.column_names}
    pq.write_table(pa.table({**numbers, **columns}), path)


def sparse_array(path, shape):
    """An array of zeros that takes no place on the disk."""
    np.lib.format.open_memmap(path, "w+", np.float64, shape).flush()


def lists_of(names, numbers):
    return pa.table({name: [list(map(str, numbers))] for name in names})


LONG = "a" * (8 * 1024 * 1024 + 10)
THREE = pa.table({"a": ["x" * 4000, "y"], "b": ["p", "q"], "c": ["m", "n"]})
PAGE = {"use_dictionary": False, "data_page_size": 1 << 30}
ENDS = pa.table({"source": ["n1" * 200, "n2"], "target": ["n2", "n3" * 200]})
FOUR = pa.table({"vector": [[0.0, 4.0, 1.0, 2.0], [4.0, 0.0, 2.0, 1.0]]})
STEPS = pa.table({"steps": [list("abcdabcd"), list("dcba")]})

# Each shard by its name: the options of its store, and what makes it.
SHARDS = {
    "views": {
        "line.csv": (VIEWS, lambda path: text(path, "a,b,c\n", *["x" * MEGABYTE] * 200, ",y,z\n")),
        "line.jsonl": (VIEWS, lambda path: text(path, '{"a": "', *["x" * MEGABYTE] * 200, '"}')),
        "empty.csv.zst": (VIEWS, lambda path: zstd(path, ["a,b,c\n", *[",,\n" * MEGABYTE] * 4])),
        "values.csv.zst": (
            VIEWS,
            lambda path: zstd(path, ["a,b,c\n", *(f"{one},{one},x\n" for one in range(1_000_000))]),
        ),
        "columns.parquet": (VIEWS, lambda path: wide(path, THREE)),
        "group.parquet": (VIEWS, lambda path: rows(path, THREE, 600_000)),
        "page.parquet": (VIEWS, lambda path: rows(path, THREE, 600_000, **PAGE)),
        "list.parquet": (
            VIEWS,
            lambda path: rows(path, lists_of("abc", [1] * 1000), 30_000),
        ),
        "pairs.jsonl.zst": (
            VIEWS,
            lambda path: records(
                path, 20, lambda one: {key: [f"{key}{n}" for n in range(9_000)] for key in "abc"}
            ),
        ),
        "texts.jsonl.zst": (
            TEXTS,
            lambda path: records(
                path, 20_000, lambda one: {"a": f"law sea {one} " * 5_000, "b": "x", "c": "y"}
            ),
        ),
        "words.jsonl.zst": (
            TEXTS,
            lambda path: records(
                path,
                6,
                lambda one: {
                    "a": " ".join(
                        f"{letter}{place:x}" for place in range(100_000, 250_000)
                    ).translate(str.maketrans("0123456789", "ghijklmnop"))
                    if (letter := "qrstuv"[one])
                    else "",
                    "b": "x",
                    "c": "y",
                },
            ),
        ),
    },
    "sequences": {
        "line.txt": (SEQUENCES, lambda path: text(path, *["abcd" * 250_000] * 200)),
        "empty.txt": (SEQUENCES, lambda path: text(path, "abcd\n" * 20, "\n" * 5_000_000)),
        "bomb.txt.zst": (SEQUENCES, lambda path: zstd(path, ["abcd" * 50_000 + "\n"] * 500)),
        "list.jsonl": (
            LISTS,
            lambda path: text(path, '{"steps": ["a"', *[',"b"' * 500_000] * 100, "]}"),
        ),
        "columns.parquet": (LISTS, lambda path: wide(path, STEPS)),
        "group.parquet": (LISTS, lambda path: rows(path, STEPS, 4_000_000)),
        "page.parquet": (LISTS, lambda path: rows(path, STEPS, 4_000_000, **PAGE)),
        "symbols.jsonl.zst": (
            LISTS,
            lambda path: records(path, 20_000, lambda one: {"steps": ["z" * 50_000 + str(one)]}),
        ),
        "alphabet.jsonl.zst": (
            LISTS,
            lambda path: records(
                path, 8, lambda one: {"steps": [f"{one} {place}" for place in range(400_000)]}
            ),
        ),
        "names.csv.zst": (
            TIMES,
            lambda path: zstd(
                path,
                ["name,time,symbol\n", *(f"n{one},{one},a\n" for one in range(2_000_000))],
            ),
        ),
    },
    "vectors": {
        "line.csv": (VECTORS, lambda path: text(path, "vector\n", *["1" * MEGABYTE] * 200)),
        "line.jsonl": (
            VECTORS,
            lambda path: text(path, '{"vector": [0', *[",1" * 500_000] * 200, "]}"),
        ),
        "empty.jsonl.zst": (VECTORS, lambda path: zstd(path, ['{"vector":[]}\n' * 100_000] * 20)),
        "columns.parquet": (VECTORS, lambda path: wide(path, FOUR)),
        "group.parquet": (VECTORS, lambda path: rows(path, FOUR, 10_000_000)),
        "page.parquet": (VECTORS, lambda path: rows(path, FOUR, 10_000_000, **PAGE)),
        "long.npy": (VECTORS, lambda path: sparse_array(path, (2, 500_000_000))),
        "many.npy": (VECTORS, lambda path: sparse_array(path, (10_000_000, 4))),
        "wide.npy": (VECTORS, lambda path: sparse_array(path, (20_000, 5_000))),
        "wide.parquet": (
            VECTORS,
            lambda path: rows(
                path,
                pa.table({"vector": list(np.random.default_rng(1).normal(size=(64, 760)))}),
                20_000,
                row_group_size=500,
            ),
        ),
    },
    "edges": {
        "line.csv": (EDGES, lambda path: text(path, "source,target\n", *["n" * MEGABYTE] * 200)),
        "line.jsonl": (EDGES, lambda path: text(path, '{"source": "', *["n" * MEGABYTE] * 200)),
        "empty.csv": (EDGES, lambda path: text(path, "source,target\nn1,n2\n", "\n" * 5_000_000)),
        "columns.parquet": (EDGES, lambda path: wide(path, ENDS)),
        "group.parquet": (EDGES, lambda path: rows(path, ENDS, 2_000_000)),
        "page.parquet": (EDGES, lambda path: rows(path, ENDS, 2_000_000, **PAGE)),
        "again.csv.zst": (
            EDGES,
            lambda path: zstd(path, ["source,target\n", *["n1,n2\nn2,n3\n" * 100_000] * 20]),
        ),
        "names.csv.zst": (
            EDGES,
            lambda path: zstd(
                path,
                ["source,target\n", *(f"node {one},node {one + 1}\n" for one in range(1_500_000))],
            ),
        ),
        "nodes.csv.zst": (
            EDGES,
            lambda path: zstd(
                path,
                ["source,target\n", *(f"n{one},n{one * 7 % 240_000}\n" for one in range(240_000))],
            ),
        ),
        "dense.csv.zst": (
            EDGES,
            lambda path: zstd(
                path,
                [
                    "source,target\n",
                    *(f"n{one // 3000},m{one % 3000}\n" for one in range(3_000_000)),
                ],
            ),
        ),
    },
}
# `create` held twice the budget for it before pilots had a bound; all else is in the long form.
SHORT = {("sequences", "symbols.jsonl.zst")}
EVERY = [(kind, name) for kind, shards in SHARDS.items() for name in shards]
# How a command may end: as a shard that cannot be counted makes `update` do, or a budget that is
# too small.
ENDS_OF = {
    "create": (DONE, REFUSED),
    "update": (DONE, REFUSED, BAD_SHARD),
    "transform": (DONE, REFUSED, BAD_SHARD),
    "refit": (DONE, REFUSED),
}


def honest(options, folder):
    """A small shard of two components, as those of a kind should be."""
    rng = np.random.default_rng(1)

    def seen(states, columns):
        """Symbols that mostly tell of which two states they are."""
        told = np.where(
            rng.random((len(states), columns)) < 0.9, states[:, None], 1 - states[:, None]
        )
        return 2 * told + rng.integers(0, 2, told.shape)

    states, path = rng.integers(0, 2, 600), folder / "honest.parquet"
    letters = np.array(list("abcd"))
    if options in (VIEWS, TEXTS):
        words = np.array(["law", "sea", "ship", "tax"])[seen(states, 3)]
        table = {name: words[:, place] for place, name in enumerate("abc")}
    elif "sequences" in options:
        states = (np.cumsum(rng.random(6000) < 0.1) % 2).astype(np.int64)
        symbols = letters[seen(states, 1)[:, 0]].reshape(300, 20)
        table = {"steps": symbols.tolist()}
        if options == SEQUENCES:
            path = folder / "honest.txt"
            path.write_text("\n".join(map("".join, symbols)))
            return path
        if options == TIMES:
            table = {
                "name": [f"s{one // 20}" for one in range(6000)],
                "time": list(range(20)) * 300,
                "symbol": symbols.ravel(),
            }
    elif "vectors" in options:
        table = {"vector": list(6.0 * states[:, None] + rng.normal(size=(600, 4)))}
    else:
        pairs = rng.integers(0, 30, (4000, 2))
        pairs = pairs[(pairs[:, 0] % 2 == pairs[:, 1] % 2) | (rng.random(4000) < 0.1)]
        table = {"source": [f"n{one}" for one in pairs[:, 0]]}
        table["target"] = [f"n{one}" for one in pairs[:, 1]]
    pq.write_table(pa.table(table), path)
    return path


REFITS = {
    "views": ("--model", "views", "--topics", "2"),
    "sequences": ("--model", "hmm", "--topics", "2"),
    "vectors": ("--model", "gaussian_mixture", "--topics", "2"),
    "edges": ("--model", "blockmodel", "--topics", "2"),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of honest shards with a model each, by their options; a copy is given."""
    made = {}

    def given(kind, options, folder):
        if options not in made:
            own = tmp_path_factory.mktemp(kind)
            shard = honest(options, own)
            run_command("create", own / "store", shard, *options)
            run_command("update", own / "store", shard)
            run_command("refit", own / "store", *REFITS[kind])
            made[options] = own / "store"
        shutil.copytree(made[options], folder / "store")
        return folder / "store"

    return given


@pytest.mark.long
@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_no_command_on_a_hostile_shard_takes_more_than_the_budget(
    kind, name, stores, tmp_path, campaigns
):
    if not campaigns.long and (kind, name) not in SHORT:
        pytest.skip("in the long form")
    options, make = SHARDS[kind][name]
    shard = tmp_path / name
    make(shard)
    runs = {"create": bounded("create", tmp_path / "new", shard, *options)}
    if campaigns.long:
        store = stores(kind, options, tmp_path)
        runs["update"] = bounded("update", store, shard)
        if kind != "edges":
            runs["transform"] = bounded("transform", store, shard, "--output", tmp_path / "output")
        runs["refit"] = bounded("refit", store, "--name", "again", *REFITS[kind])
    note = ", ".join(f"{verb} {one.code}: {one.peak / 1e6:.0f} MB" for verb, one in runs.items())
    for verb, one in runs.items():
        print(verb, one)
    held = sum(one.peak <= BUDGET and one.code in ENDS_OF[verb] for verb, one in runs.items())
    campaigns.record(f"peak memory of {kind}, {name}", len(runs), held, note)
