"""Vectors by the command line: create, update, forget, status, verify; the same bits anywhere."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from command_runs import run_command

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import rebase
from streaming_moments.statistics.vectors.moments import VectorMoments
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.storage.store.store import MomentStore


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Three shards of 400 rows of 70 numbers: lists, an array, and lists with some bad rows."""
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(0)
    means = 3 * rng.normal(size=(4, 70))
    rows = (means[rng.integers(0, 4, 1_200)] + rng.normal(size=(1_200, 70))).astype(np.float32)
    pq.write_table(pa.table({"vector": list(rows[:400])}), folder / "0.parquet")
    np.save(folder / "1.npy", rows[400:800])
    last = [*rows[800:1_197].tolist(), [1.0], [float("nan")] * 70, None]
    pq.write_table(pa.table({"vector": last}), folder / "2.parquet")
    return folder, rows[:1_197]


@pytest.fixture(scope="module")
def store(shards, tmp_path_factory):
    folder, _ = shards
    made = tmp_path_factory.mktemp("kinds") / "vectors"
    run_command(
        "create", made, folder / "0.parquet", folder / "1.npy", "--kind", "vectors", "--squares"
    )
    run_command("update", made, folder / "0.parquet", folder / "1.npy")
    return made


def test_vectors_are_created_counted_and_shown(run, store, shards):
    opened, (_, rows) = MomentStore.open(str(store)), shards
    assert opened.verify() == []
    status = json.loads(run("status", store, "--json")[1])
    assert (status["kind"], status["vectors"], status["dimension"]) == ("vectors", 800, 70)
    assert (status["squares"], status["fourth"], status["without_numbers"]) == (True, False, 0)
    assert status["room"] > 10**9
    said = run("status", store)[1]
    assert "800 of 70 numbers" in said
    kept = opened.load()
    # halves go by the bytes of a shard, the rest by its rows
    again = opened.foundation.of_vectors(VectorBatch.of(rows[:800]))
    for name, sums in again.sums.items():
        if not name.startswith("even_"):
            assert np.array_equal(kept.sums[name], sums), name
    moments = VectorMoments.of(kept)
    found = opened.foundation.grid.values(moments.mean)
    assert np.abs(found - rows[:800].mean(axis=0)).max() < 0.1


def test_shards_of_vectors_are_forgotten_bit_for_bit_and_bad_rows_said(
    run, store, shards, tmp_path
):
    folder, rows = shards
    before = MomentStore.open(str(store)).load()
    code, said, _ = run("update", store, folder / "2.parquet")
    assert code == 0
    assert "left out 3 records" in said
    status = json.loads(run("status", store, "--json")[1])
    assert (status["vectors"], status["without_numbers"]) == (1_197, 3)
    zarr.create_array(str(tmp_path / "more.zarr"), data=rows[:100], chunks=(30, 70))
    code, said, err = run("update", store, tmp_path / "more.zarr")
    assert code == 0, err
    assert "counted 1 shard (100 rows" in said
    assert run("forget", store, folder / "2.parquet", tmp_path / "more.zarr")[0] == 0
    assert run("compact", store)[0] == 0
    found = MomentStore.open(str(store))
    assert found.load() == before
    assert found.verify() == []
    assert run("verify", store)[0] == 0


def test_two_worker_processes_give_the_same_bits(run, store, shards, tmp_path):
    folder, _ = shards
    both, again = (folder / "0.parquet", folder / "1.npy"), tmp_path / "again"
    assert run("create", again, *both, "--kind", "vectors", "--squares")[0] == 0
    code, _, err = run("update", again, *both, "--workers", "2")
    assert code == 0, err
    one, two = (MomentStore.open(str(url)).load() for url in (store, again))
    assert one == two
    assert one.totals.n_tokens == 800


def test_bad_rows_may_spoil_their_shard(run, shards, tmp_path):
    folder, _ = shards
    store = tmp_path / "store"
    options = ("--kind", "vectors", "--bad-rows", "refuse", "--fourth", "--sketch-columns", "9")
    assert run("create", store, folder / "0.parquet", *options)[0] == 0
    code, _, err = run("update", store, folder, "--skip-bad-shards")
    assert code == 3
    assert "2.parquet" in err
    assert "row 398 has 1 numbers" in " ".join(err.split())
    found = MomentStore.open(str(store))
    assert found.totals().n_tokens == 800
    assert found.foundation.fourth
    assert found.verify() == []


def test_rows_beyond_the_radius_are_said_where_they_are_many(run, shards, tmp_path):
    _, rows = shards
    np.save(tmp_path / "near.npy", rows[:300])
    np.save(tmp_path / "far.npy", 9 * rows[300:320])
    store = tmp_path / "store"
    assert run("create", store, tmp_path / "near.npy", "--kind", "vectors")[0] == 0
    code, said, _ = run("update", store, tmp_path / "near.npy")
    assert code == 0
    assert "drawn in" not in said
    said = " ".join(run("update", store, tmp_path / "far.npy")[1].split())
    assert "6.2% of the rows of the store were beyond the radius and were clipped" in said
    assert json.loads(run("status", store, "--json")[1])["clipped"] == 20


def test_a_rebase_gives_a_grid_of_all_shards_and_counts_them_once_more(run, shards, tmp_path):
    folder, rows = shards
    far, store = tmp_path / "far.npy", tmp_path / "store"
    np.save(far, (3 * rows[:800]).astype(np.float16))
    options = "--kind", "vectors", "--squares", "--sketch-columns", "9"
    assert run("create", store, folder / "1.npy", *options)[0] == 0
    assert run("update", store, folder / "1.npy", folder / "2.parquet", far)[0] == 0
    model = "--model", "gaussian_mixture", "--components", "2", "--name"
    assert run("refit", store, *model, "before")[0] == 0
    before = MomentStore.open(str(store))
    assert before.totals().clipped > 700
    code, said, err = run("rebase", store, "--seed", "5", "--json")
    assert code == 0, err
    told = json.loads(said)
    assert (told["shards"], told["documents"], told["words"]) == (3, 1_600, None)
    after = MomentStore.open(str(store))
    assert after.verify() == []
    assert (after.foundation.squares, after.foundation.columns) == (True, 9)
    assert (after.totals().n_tokens, after.totals().clipped < 100) == (1_597, True)
    assert after.commit.lineage.pilot["seed"] == 5
    # as if it had been made so, and as exactly forgotten
    again = tmp_path / "again"
    known = [record.url for record in after.ledger()]
    assert run("create", again, *known, *options, "--seed", "5")[0] == 0
    assert run("update", again, *known)[0] == 0
    assert MomentStore.open(str(again)).load() == after.load()
    for one in (store, again):
        assert run("forget", one, far)[0] == 0
    assert MomentStore.open(str(again)).load() == MomentStore.open(str(store)).load()
    # versions before keep theirs, and models of them are read and polished
    assert MomentStore.open(str(store), before.version).load() == before.load()
    assert run("transform", store, far, "--output", tmp_path / "out", "--model", "before")[0] == 0
    assert run("polish", store, "--model", "before", "--name", "polished")[0] == 0
    assert run("refit", store, *model, "after")[0] == 0


def test_a_rebase_that_was_cut_off_goes_on(run, shards, embedded, tmp_path, monkeypatch):
    folder, rows = shards
    np.save(tmp_path / "more.npy", 2 * rows[:60])
    both = folder / "1.npy", tmp_path / "more.npy"
    assert run("create", tmp_path / "store", both[0], "--kind", "vectors")[0] == 0
    assert run("update", tmp_path / "store", *both)[0] == 0
    before = MomentStore.open(str(tmp_path / "store")).writable()
    whole = rebase.stage_segment

    def cut_off(*given):
        whole(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rebase, "stage_segment", cut_off)
        with pytest.raises(KeyboardInterrupt):
            rebase.rebase(before, Run(embedded))
    assert before.latest().load() == before.load()
    result = rebase.rebase(before, Run(embedded))
    assert (result.resumed, result.shards) == (True, 2)
    assert result.store.foundation != before.foundation
    assert result.store.totals().n_tokens == 460
    assert result.store.verify() == []


def test_a_rebase_has_no_use_for_options_of_words(run, store):
    code, _, err = run("rebase", store, "--max-topics", "9")
    assert code == 2
    assert "kind vectors does not use `create --max-topics`" in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--columns", "other"), "no column 'other'"),
        (("--symbols", "words"), "does not use `create --symbols`"),
        (("--max-topics", "9"), "does not use `create --max-topics`"),
        (("--vocabulary-size", "9"), "does not use `create --vocabulary-size`"),
    ],
)
def test_what_cannot_be_created_is_said(run, shards, tmp_path, options, told):
    given = ("create", tmp_path / "store", shards[0] / "0.parquet", "--kind", "vectors")
    code, _, err = run(*given, *options)
    assert code
    assert told in " ".join(err.split())


def test_rows_that_are_all_equal_are_refused(run, tmp_path):
    np.save(tmp_path / "equal.npy", np.ones((30, 4)))
    code, _, err = run("create", tmp_path / "store", tmp_path / "equal.npy", "--kind", "vectors")
    assert code
    assert "rows of the pilot are equal" in " ".join(err.split())


def test_other_kinds_have_no_use_for_what_is_of_vectors(run, shards, tmp_path):
    given = ("create", tmp_path / "store", shards[0] / "0.parquet")
    for kind in ("counts", "views", "sequences"):
        code, _, err = run(*given, "--kind", kind, "--squares")
        assert code
        assert "does not use `create --squares`" in " ".join(err.split())


def test_a_pilot_is_as_large_as_it_is_asked_for_and_columns_below_the_grid_are_said(run, tmp_path):
    rows = np.random.default_rng(0).normal(size=(9_500, 3)) * [1.0, 1.0, 1e-3]
    np.save(tmp_path / "rows.npy", rows)
    for options, drawn in (((), 9_500), (("--pilot-documents", "9000"), 9_000)):
        store = tmp_path / str(drawn)
        code, said, _ = run("create", store, tmp_path / "rows.npy", "--kind", "vectors", *options)
        assert code == 0
        said = " ".join(said.split())
        assert f"a sample of {drawn:,} rows" in said
        assert "1 of the numbers varies by less than a step" in said
