"""Models of vectors by the command line and as jobs: refitted, polished, read, the same bits."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_runs import run_command

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.mixtures.matching import matched_order
from streaming_moments.models.mixtures.passes import polished
from streaming_moments.models.passes.in_memory import passes_over
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.polish import polish, polish_stored
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.mixtures import matched_means, mixture_rows


@pytest.fixture(scope="module")
def drawn():
    return mixture_rows(3000, 12, 3, separation=5.0, variances="spherical", seed=7)


@pytest.fixture(scope="module")
def folder(drawn, tmp_path_factory):
    """Three shards, the last with a row that is none."""
    place = tmp_path_factory.mktemp("rows")
    parts = [part.tolist() for part in np.split(drawn.rows, 3)]
    parts[2][4] = None
    for number, part in enumerate(parts):
        column = pa.array(part, type=pa.list_(pa.float64()))
        names = [None if row == 1 else f"row {row}" for row in range(1000)]
        table = pa.table({"vector": column, "name": names})
        # names are read in other pieces than numbers
        pq.write_table(table, place / f"{number}.parquet", row_group_size=300)
    return place


@pytest.fixture(scope="module")
def store(folder, tmp_path_factory):
    made = tmp_path_factory.mktemp("vectors") / "store"
    for command in (
        ("create", made, folder, "--kind", "vectors", "--squares"),
        ("update", made, folder),
        ("refit", made, "--model", "gaussian_mixture", "--components", "auto", "--name", "auto"),
    ):
        run_command(*command)
    return made


def opened(store) -> MomentStore:
    return MomentStore.open(str(store)).writable()


def test_the_number_is_found_and_the_model_kept(store, drawn, run) -> None:
    model = opened(store).load_any_model("auto")
    assert model.n_topics == 3
    errors, _ = matched_means(model.means, drawn.means)
    assert errors.max() < 0.5
    assert model.n_missing == 1
    code, said, _ = run("topics", store, "--model", "auto", "--json")
    facts = json.loads(said)
    assert code == 0
    assert (facts["components"], facts["told_apart"], facts["dimension"]) == (3, 3, 12)
    assert len(facts["error_bar"]) == 3
    assert facts["parameters"]["means"] == model.means.tolist()
    assert facts["parameters"]["variances"] == model.variances.tolist()
    code, _, said = run("topics", store, "--model", "auto", "--verbose")
    assert "3 components of 12 dimensions" in said


def test_more_than_the_spectrum_holds_is_said(store, run) -> None:
    given = "refit", store, "--model", "gaussian_mixture", "--covariance", "tied-diag"
    code, _, err = run(*given, "--components", "5", "--name", "many")
    assert code == 0
    assert "warning: the spectrum separates 3" in err
    assert "warning: the spectrum separates 3" in run("topics", store, "--model", "many")[1]
    code, _, err = run(*given, "--components", "13")
    assert code == 2
    assert "rows of 12 numbers have at most 11 directions" in " ".join(err.split())
    code, _, err = run("refit", store, "--model", "factors", "--components", "2")
    assert code == 2
    assert "no skewness beyond noise" in " ".join(err.split())


def test_passes_on_a_cluster_are_those_in_memory(store, drawn, embedded) -> None:
    source = opened(store)
    model = source.load_any_model("auto")
    there = polish(source, model, Run(embedded), passes=2, parent="auto")
    rows = np.delete(drawn.rows, 2004, axis=0)
    here = polished(model, [rows], source.foundation.grid, 2)
    for name in ("means", "weights", "variances"):
        np.testing.assert_array_equal(getattr(there.model, name), getattr(here, name))
    note = there.model.polishing
    assert (note.parent, note.passes, note.shards, note.documents) == ("auto", 2, 3, 2999)
    there.work.delete()
    with connect(workers=2) as processes:
        again = polish(source, model, Run(processes), passes=2)
    np.testing.assert_array_equal(again.model.means, here.means)
    # what was kept is not read again
    assert again.work.find(1, "sum").expected.rows == 2999
    again.work.delete()
    with pytest.raises(InvalidInput, match="has no alpha to learn"):
        polish(source, model, Run(embedded), alpha=True)


def test_a_job_goes_on_with_sums_of_its_own_covariance_alone(store, drawn, embedded) -> None:
    source = opened(store)
    model = source.load_any_model("auto")
    tied = replace(model, covariance="tied-spherical")
    rows = np.delete(drawn.rows, 2004, axis=0)
    polish(source, model, Run(embedded))
    found = polish(source, tied, Run(embedded))
    expected = polished(tied, [rows], source.foundation.grid)
    np.testing.assert_array_equal(found.model.variances, expected.variances)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A store with a labelled model that no passes mend: one component holds two of six clusters,
    and two share one."""
    place, rng = tmp_path_factory.mktemp("crowded"), np.random.default_rng(0)
    means = rng.normal(size=(6, 8))
    means *= 8 / np.linalg.norm(means, axis=1, keepdims=True)
    rows = means[rng.integers(0, 6, 2400)] + rng.normal(size=(2400, 8))
    (place / "rows").mkdir()
    for number, part in enumerate(np.split(rows, 4)):
        np.save(place / "rows" / f"{number}.npy", part)
    for command in (
        ("create", place / "store", place / "rows", "--kind", "vectors"),
        ("update", place / "store", place / "rows"),
    ):
        run_command(*command)
    held = np.vstack([means[:4], means[4:].mean(axis=0), means[0] + 0.1])
    spreads = np.array([[1.0], [1], [1], [1], [6], [1]])
    model = GaussianMixture(held, np.full(6, 1 / 6), spreads, bars=np.full(6, 0.1), documents=2400)
    store = opened(place / "store").save_model("astray", model)
    for component in range(6):
        store = label(store, component, f"component {component}")
    return store, means, place / "rows"


def test_passes_of_a_store_begin_where_drawn_rows_are_likelier(crowded, embedded) -> None:
    store, means, folder = crowded
    model = store.load_any_model()
    found = polish(store, model, Run(embedded), passes="auto")
    found.work.delete()
    assert (found.elsewhere, found.model.start, found.model.bars) == (True, "pilot", None)
    assert matched_means(model.means, means)[0].max() > 3
    assert matched_means(found.model.means, means)[0].max() < 0.3
    # a component is where one of the fit was that is near it
    order = matched_order(model.means, found.model.means)
    assert np.count_nonzero(order == np.arange(6)) >= 4
    with connect(workers=2) as processes:
        again = polish(store, model, Run(processes), passes="auto")
    again.work.delete()
    np.testing.assert_array_equal(again.model.means, found.model.means)
    # passes over passes go on where those ended
    more = polish(store, found.model, Run(embedded), passes=1)
    assert not more.elsewhere
    assert more.model.start == "pilot"
    rows = np.concatenate([np.load(path) for path in sorted(folder.iterdir())])
    expected = polished(found.model, [rows], store.foundation.grid, 1)
    np.testing.assert_array_equal(more.model.means, expected.means)


def test_labels_stay_with_components_that_are_found_again(crowded, embedded) -> None:
    store, _, _ = crowded
    done = polish_stored(store, None, Run(embedded), passes=5, name="elsewhere")
    before = store.load_any_model().means
    labels = done.kept.models["elsewhere"].labels
    assert 4 <= len(labels) < 6, "those that had no cluster of their own have no successors"
    for component, text in labels.items():
        near = np.linalg.norm(before - done.model.means[component], axis=1)
        assert text == f"component {near.argmin()}"


def test_rows_that_cannot_be_read_are_not_drawn(crowded, embedded, tmp_path) -> None:
    store, _, folder = crowded
    (tmp_path / "broken.npy").write_bytes(b"no array")
    shards = list_shards([str(folder), str(tmp_path)])
    model = store.load_any_model()
    with pytest.raises(ShardError, match="broken"):
        polish(store, model, Run(embedded), shards, passes=1)
    result = polish(store, model, Run(embedded), shards, passes=1, skip_bad_shards=True)
    result.work.delete()
    assert result.model.start == "pilot"
    assert (result.note.documents, len(result.bad)) == (2400, 1)


def test_passes_over_no_rows_are_refused(store, embedded, tmp_path) -> None:
    source = opened(store)
    nothing = pa.array([None, None], type=pa.list_(pa.float64()))
    pq.write_table(pa.table({"vector": nothing}), tmp_path / "none.parquet")
    shards = list_shards([str(tmp_path)])
    with pytest.raises(InvalidInput, match="no records to polish with: 1 shard"):
        polish(source, source.load_any_model("auto"), Run(embedded), shards)


def test_polish_and_transform_by_the_command_line(store, drawn, folder, run, tmp_path) -> None:
    polishing = "polish", store, "--model", "auto", "--name", "polished", "--passes", "1"
    code, _, said = run(*polishing, "--verbose")
    assert code == 0
    assert "2,999 records of 3 shards read once" in said
    given = "transform", store, folder, "--output", tmp_path / "out", "--model", "polished"
    code, said, _ = run(*given, "--top-documents", "2", "--json")
    assert code == 0
    told = json.loads(said)
    assert (told["documents"], told["without"]) == (3000, 1)
    model = opened(store).load_any_model("polished")
    tables = [pq.read_table(file) for file in told["files"]]
    whole = pa.concat_tables(tables)
    assert whole["row"].to_pylist() == list(range(1000)) * 3
    assert "id" not in whole.column_names, "where no ids are asked for"
    assert whole["topic"][2004].as_py() is None
    assert whole["proportions"][2004].as_py() is None
    kept = np.delete(np.arange(3000), 2004)
    topics = np.array(whole["topic"].to_pylist(), dtype=object)[kept].astype(int)
    np.testing.assert_array_equal(topics, model.assign(drawn.rows[kept]))
    logs = model.log_likelihoods(drawn.rows[kept])
    np.testing.assert_allclose(np.array(whole["log_likelihood"].to_pylist(), float)[kept], logs)
    assert told["log_likelihood"] == pytest.approx(logs.mean())
    distances = np.linalg.norm(drawn.rows - model.means[1], axis=1)
    distances[2004] = np.inf
    near = np.argsort(distances)[:2]
    found = [int(one["source"].split("/")[-1][0]) * 1000 + one["row"] for one in told["nearest"][1]]
    assert found == near.tolist()
    code, _, err = run(*given, "--seed", "3")
    assert code == 2
    assert "does not use --method and --seed" in err


def test_rows_far_beyond_all_others_are_read_and_told_in_json(store, drawn, run, tmp_path) -> None:
    rows = drawn.rows[:5].copy()
    rows[1, 0], rows[2], rows[3] = 1e200, 1e308, -1e308
    np.save(tmp_path / "far.npy", rows)
    given = "transform", store, tmp_path / "far.npy", "--output", tmp_path / "out"
    code, said, err = run(*given, "--model", "auto", "--top-documents", "5", "--json")
    assert code == 0
    assert "Warning" not in err

    def refused(name: str) -> float:
        raise AssertionError(f"{name} is no JSON")

    told = json.loads(said, parse_constant=refused)
    assert told["log_likelihood"] < -1e190
    distances = [one["distance"] for one in told["nearest"][0]]
    assert distances[2] == pytest.approx(1e200)
    kept = (tmp_path / "out" / "_top_documents.json").read_text()
    assert json.loads(kept, parse_constant=refused)
    shares = np.array(pq.read_table(told["files"][0])["proportions"].to_pylist())
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_factors_of_rows_are_written(store, drawn, folder, run, tmp_path) -> None:
    given = "refit", store, "--model", "factors", "--components", "2", "--weak", "keep"
    assert run(*given, "--name", "weak")[0] == 0
    code, said, _ = run(
        *("transform", store, folder, "--output", tmp_path / "out", "--model", "weak", "--json"),
        *("--id-column", "name"),
    )
    assert code == 0
    model = opened(store).load_any_model("weak")
    shown = json.loads(run("topics", store, "--model", "weak", "--json")[1])
    assert shown["parameters"]["mixing"] == model.mixing.tolist()
    assert shown["parameters"]["kurtosis"] == [None, None]
    table = pq.read_table(json.loads(said)["files"][0])
    shard = folder / "0.parquet"
    ids = [f"{shard}#1" if row == 1 else f"row {row}" for row in range(1000)]
    assert table["id"].to_pylist() == ids
    assert table["source"].to_pylist() == [str(shard)] * 1000
    np.testing.assert_allclose(
        np.array(table["factors"].to_pylist()), model.values(drawn.rows[:1000])
    )


def test_passes_of_factors_on_a_store_are_those_in_memory(store, drawn, run) -> None:
    given = "refit", store, "--model", "factors", "--components", "2", "--weak", "keep"
    assert run(*given, "--name", "begun")[0] == 0
    code, said, _ = run("polish", store, "--model", "begun", "--passes", "3", "--json")
    assert code == 0
    name = json.loads(said)["model"]
    source = opened(store)
    begun, there = (source.load_any_model(one) for one in ("begun", name))
    rows = np.delete(drawn.rows, 2004, axis=0)
    here = passes_over(begun, source.foundation, [VectorBatch(rows)], 3)
    for array in ("mixing", "unmixing", "skewness", "kurtosis"):
        np.testing.assert_array_equal(getattr(there, array), getattr(here, array))
    assert (there.polishing.parent, there.polishing.shards) == ("begun", 3)
    assert there.order_told == begun.order_told == "order third, as there are no fourth moments"
    code, _, said = run("topics", store, "--model", name, "--verbose")
    assert code == 0
    assert "polished from model begun: 2,999 records" in said
