"""Tables of categorical columns: a store, a latent tree of it, and rows completed by that."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments import polished
from streaming_moments.errors import InvalidInput
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.counts.tables.columns import state_bytes
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.tables import latent_tree_table

PLANTED = latent_tree_table(1500, n_columns=5, n_states=2, n_categories=3, missing=0.05, seed=4)
COLUMNS = ",".join(PLANTED.table.names)


def written(folder):
    """The rows as Parquet, of numbers and texts, and as CSV; nulls and empty fields."""
    codes = PLANTED.codes
    columns = {
        name: [None if code < 0 else int(code) for code in own]
        for name, own in zip(PLANTED.table.names, codes.T, strict=True)
    }
    first = {name: own[:700] for name, own in columns.items()}
    first["c1"] = pa.array([None if one is None else str(one) for one in first["c1"]])
    first["c2"] = pa.array(first["c2"], pa.float64())  # as pandas has them where some are missing
    pq.write_table(
        pa.table({**first, "more": [0.5] * 700}), folder / "a.parquet", row_group_size=300
    )
    with (folder / "b.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*reversed(columns), "more"])
        for row in zip(*(columns[name][700:] for name in reversed(columns)), strict=True):
            writer.writerow([*("" if one is None else one for one in row), "x"])
    return str(folder / "a.parquet"), str(folder / "b.csv")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return written(tmp_path_factory.mktemp("rows"))


@pytest.fixture
def store(run, shards, tmp_path):
    place = str(tmp_path / "store")
    code, _, err = run("create", place, *shards, "--categories", COLUMNS)
    assert code == 0, err
    assert run("update", place, *shards)[0] == 0
    return place


def test_a_tree_is_polished_by_its_rows(run, store, shards):
    assert run("refit", store, "--model", "latent_tree", "--topics", "2", "--name", "first")[0] == 0
    code, out, err = run("polish", store, *shards, "--passes", "2", "--name", "polished", "--json")
    assert code == 0, err
    assert json.loads(out)["polishing"]["documents"] == (PLANTED.codes >= 0).any(axis=1).sum()
    opened = MomentStore.open(store)
    kept, before = (opened.load_any_model(name) for name in ("polished", "first"))
    here = polished(before, before.table.batch(_codes(before), before.vocabulary), 2, threads=2)
    assert (kept.flat == here.flat).all()
    score = before.tree.log_probabilities(_codes(before)).mean()
    assert kept.tree.log_probabilities(_codes(before)).mean() > score
    assert "1,500 records of 2 shards" in run("topics", store, "--verbose")[2]


def _codes(model):
    """The planted rows by the categories of a model."""
    found = []
    for name, known in zip(model.table.names, model.table.categories, strict=True):
        places = {int(value): at for at, value in enumerate(known)}
        own = PLANTED.codes[:, PLANTED.table.names.index(name)]
        found.append([places.get(code, -1) for code in own])
    return np.array(found).T


def test_tables_of_any_format_make_a_tree_and_are_completed_by_it(run, store, shards, tmp_path):
    opened = MomentStore.open(store)
    table = opened.basis.table
    assert (table.names, table.sizes) == (PLANTED.table.names, (3,) * 5)
    assert opened.format.min_reader == 4
    statistics = opened.load()
    X = PLANTED.table.batch(PLANTED.codes).to_csr().toarray()
    pairs = X.T @ X
    np.fill_diagonal(pairs, 0)
    assert np.array_equal(statistics.pair_counts, pairs)
    assert run("verify", store)[0] == 0

    code, out, err = run("refit", store, "--model", "latent_tree", "--topics", "2", "--json")
    assert code == 0, err
    fitted = json.loads(out)
    model = opened.latest().load_any_model()
    assert type(model) is LatentTree
    alone = LatentTree.fit(InMemory((statistics,)), LatentTree.Options(topics=2))
    assert (model.structure, model.scores) == (alone.structure, alone.scores)
    assert model.bars.scores == alone.bars.scores
    assert fitted["pair_log_likelihood_error"] == alone.bars.scores
    assert 0 < np.max(fitted["nodes"][0]["errors"]) < 0.2
    assert fitted["pair_log_likelihood"]["latent_tree"] > fitted["pair_log_likelihood"]["chow_liu"]
    assert {node["node"] for node in fitted["nodes"] if not node["hidden"]} == set(table.names)

    code, out, _ = run("show", store, "--plot", tmp_path / "tree.svg")
    assert "└── " in out
    assert out.index("h0") < out.index("c0")
    picture = (tmp_path / "tree.svg").read_text()
    assert picture.startswith("<svg")
    assert all(name in picture for name in table.names)
    assert run("status", store)[0] == 0
    code, _, err = run("page", store, "--output", tmp_path / "tree.html")
    assert code == 0, err
    page = (tmp_path / "tree.html").read_text()
    assert "└── " in page
    assert "err by" in page
    assert run("show", store, "--plot", tmp_path / "tree.png")[0] == 2

    code, out, err = run("transform", store, *shards, "--output", tmp_path / "out", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["documents"] == 1500
    assert found["log_probability"] > found["chow_liu_log_probability"]
    rows = pa.concat_tables([pq.read_table(file) for file in found["files"]])
    completed, chances = model.tree.completed(PLANTED.codes)
    logs = model.tree.log_probabilities(PLANTED.codes)
    assert np.allclose(rows["_log_probability"].to_numpy(), logs)
    assert np.allclose(np.array(rows["_probabilities"].to_pylist()), chances)
    for name, own in zip(table.names, completed.T, strict=True):
        assert rows[name].to_pylist() == [str(code) for code in own]
    assert rows["_missing"].to_numpy().sum() == (PLANTED.codes < 0).sum()

    code, _, err = run("transform", store, shards[0], "--output", tmp_path / "o", "--seed", "1")
    assert (code, "does not use --method and --seed" in err) == (2, True)
    assert run("forget", store, shards[1])[0] == 0
    X = PLANTED.table.batch(PLANTED.codes[:700]).to_csr().toarray()
    assert np.array_equal(MomentStore.open(store).load().word_counts, X.sum(axis=0))


def test_a_value_that_the_store_has_not_is_missing_and_counted_outside(run, store, tmp_path):
    rows = {name: ["0", "new", None] for name in PLANTED.table.names[:4]}
    rows[PLANTED.table.names[4]] = [None] * 3  # of no type
    pq.write_table(pa.table(rows), tmp_path / "later.parquet")
    assert run("update", store, tmp_path / "later.parquet")[0] == 0
    [record] = [one for one in MomentStore.open(store).ledger() if "later" in one.url]
    assert (record.documents, record.tokens, record.outside) == (3, 4, 4)
    code, _, err = run("grow", store, tmp_path / "later.parquet")
    assert (code, "`streaming-moments rebase` changes them" in err) == (2, True)


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        ({"a": [0, 1] * 20}, "a", "has 1 categorical column (a)"),
        (
            {"a": [0, 1] * 5000, "b": [0, 1] * 5000, "name": range(10_000)},
            "a,b,name",
            f"10,004 categories, 10,000 of them in 'name': all their pairs and triples need "
            f"{state_bytes(10_004):,} bytes",
        ),
        (
            {"a": [0, 1] * 20, "b": [0, 1] * 20, "c": [7] * 40},
            "a,b,c",
            "column 'c' has 1 category with 5 rows or more",
        ),
        ({"a": [0.5] * 40, "b": [0] * 40, "c": [1] * 40}, "a,b,c", "'a' is of type double"),
        ({"a": [0] * 40, "b": [0] * 40, "c": [[1]] * 40}, "a,b,c", "'c' is of type list"),
        ({"a": [0] * 40}, "a,b,c", "has no column 'b'"),
        ({"a": [0] * 40}, "a,a,c", "give each once"),
    ],
)
def test_tables_that_hold_nothing_hidden_are_refused(run, tmp_path, columns, given, said):
    pq.write_table(pa.table({name: list(own) for name, own in columns.items()}), tmp_path / "t.pq")
    code, _, err = run("create", tmp_path / "store", tmp_path / "t.pq", "--categories", given)
    assert code == 2
    assert said in err
    assert not (tmp_path / "store").exists()


def test_texts_are_no_tables_and_tables_no_texts(run, store, shards, tmp_path):
    (tmp_path / "a.txt").write_text("law and sea\n")
    code, _, err = run("create", tmp_path / "s", tmp_path / "a.txt", "--categories", "a,b,c")
    assert (code, "has no columns of categories" in err) == (2, True)
    code, _, err = run(
        "create", tmp_path / "s", shards[0], "--categories", COLUMNS, "--passage-words", "9"
    )
    assert (code, "no order and no spelling" in err) == (2, True)
    with pytest.raises(
        InvalidInput, match="needs parquet or jsonl or csv or tsv, but the format is text"
    ):
        ShardFormat("text", categories=("a",))
    with pytest.raises(InvalidInput, match="token ids or categories"):
        ShardFormat(ids_column="ids", categories=("a",))
    four = "--model", "latent_tree", "--topics", "4"
    code, _, err = run("refit", store, *four, "--shape", "latent_tree")
    assert (code, "4 states are asked for" in err) == (2, True)
    code, out, _ = run("refit", store, *four, "--json")
    told = json.loads(out)
    assert (code, told["shape"]) == (0, max(told["held_out"], key=told["held_out"].get))
    assert set(told["held_out"]) == {"chow_liu", "latent_classes"}


def test_stores_of_documents_say_nothing_of_tables():
    assert "categories" not in ShardFormat("text").to_json()
    assert ShardFormat.from_json(ShardFormat(categories=("a", "b")).to_json()).categories == (
        "a",
        "b",
    )
