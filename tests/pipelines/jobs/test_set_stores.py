"""Sets of features by the command line: create, update, refit, select, polish, read, forget."""

import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_runs import run_command

from streaming_moments.errors import ShardError
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.passes.in_memory import polished
from streaming_moments.models.rows import InMemory
from streaming_moments.pipelines.cluster.rows_on_cluster import OnCluster
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.drawn_records import draw_of_shard
from streaming_moments.pipelines.jobs.polish import polish
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.storage.contents import content_of
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.sets import feature_sets, probability_error

pytestmark = pytest.mark.usefixtures("few_blocks")
ROWS, FEATURES, K = 3_000, 24, 3


@pytest.fixture(scope="module")
def drawn():
    return feature_sets(ROWS, FEATURES, K, seed=4)


@pytest.fixture(scope="module")
def shards(drawn, tmp_path_factory):
    """Three shards of lists, and the same of columns of 0 and 1; some rows have no feature."""
    folder = tmp_path_factory.mktemp("sets")
    X = drawn.batch.to_csr().toarray()
    lists = [[f"f{place:02d}" for place in np.flatnonzero(row)] for row in X]
    for number in range(3):
        part = slice(1000 * number, 1000 * (number + 1))
        own = {"id": np.arange(part.start, part.stop).astype(str), "codes": lists[part]}
        if number < 2:
            pq.write_table(pa.table(own), folder / f"{number}.parquet")
        else:
            rows = zip(own["id"].tolist(), own["codes"], strict=True)
            lines = [json.dumps({"id": one, "codes": codes}) for one, codes in rows]
            (folder / f"{number}.jsonl").write_text("\n".join(lines))
        columns = {f"f{place:02d}": X[part, place] for place in range(FEATURES)}
        (folder / "columns").mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), folder / "columns" / f"{number}.parquet")
    return folder


def lists_of(shards):
    return shards / "0.parquet", shards / "1.parquet", shards / "2.jsonl"


@pytest.fixture(scope="module")
def store(shards, tmp_path_factory):
    store = tmp_path_factory.mktemp("kinds") / "sets"
    kind = ("--kind", "sets", "--columns", "codes", "--date-pattern", "none")
    run_command("create", store, *lists_of(shards), *kind, "--min-documents", "1")
    run_command("update", store, *lists_of(shards)[:2])
    run_command("refit", store, "--model", "bernoulli_mixture", "--topics", K, "--name", "first")
    return store


def test_sets_are_created_counted_fitted_and_shown(run, store, drawn):
    status = json.loads(run("status", store, "--json")[1])
    assert (status["kind"], status["documents"], status["shards"]) == ("sets", 2_000, 2)
    assert status["words"] == {"features": FEATURES}
    own = drawn.batch.select(0, 2000).lengths
    assert status["empty"] == (own == 0).sum()
    assert status["tokens"] == own.sum()
    assert status["longest"] == own.max()
    shown = json.loads(run("topics", store, "--json", "--words", "3")[1])
    assert shown["fitted_as"] == "bernoulli_mixture"
    assert [state["state"] for state in shown["states"]] == [0, 1, 2]
    assert len(shown["states"][0]["words"]["features"]) == 3
    assert len(shown["error_bar"]) == 3
    code, out, _ = run("topics", store)
    assert code == 0
    assert "features a row" in out
    assert "without a feature" in run("status", store)[1].replace("\n", " ")


def test_a_model_on_the_cluster_is_that_of_the_statistics(store, drawn):
    opened = MomentStore.open(str(store))
    assert opened.verify() == []
    kept = opened.load_any_model("first")
    options = BernoulliMixture.Options(topics=K)
    again = BernoulliMixture.fit(InMemory((opened.load(),)), options)
    for name, array in again.parts()[0].items():
        assert np.array_equal(array, kept.parts()[0][name]), name
    places = [opened.foundation.features.index[f"f{place:02d}"] for place in range(FEATURES)]
    assert probability_error(kept.probabilities[places], drawn.probabilities) < 0.03


def test_bars_are_the_same_where_workers_keep_no_blocks(store, embedded):
    opened, run = MomentStore.open(str(store)), Run(embedded)
    rows = OnCluster.of(opened, opened.totals(), run, 1, keep=False, keep_prepared=False)
    found = BernoulliMixture.fit(rows, BernoulliMixture.Options(topics=K))
    assert np.array_equal(found.probability_bars, opened.load_any_model("first").probability_bars)


def test_columns_of_0_and_1_count_as_lists_do(store, shards, tmp_path):
    names = ",".join(f"f{place:02d}" for place in range(FEATURES))
    own, one_hot = tmp_path / "store", shards / "columns"
    run_command(
        "create", own, one_hot, "--kind", "sets", "--columns", names, "--date-pattern", "none"
    )
    run_command("update", own, one_hot / "0.parquet", one_hot / "1.parquet")
    found, listed = MomentStore.open(str(own)), MomentStore.open(str(store))
    order = [found.foundation.features.index[one] for one in listed.foundation.features.terms]
    pairs = found.load().pair_counts[np.ix_(order, order)]
    assert np.array_equal(pairs, listed.load().pair_counts)
    assert found.totals().whole == listed.totals().whole


def test_shards_of_sets_are_forgotten_and_replaced_bit_for_bit(run, store, shards):
    before = MomentStore.open(str(store)).load()
    assert run("update", store, shards / "2.jsonl")[0] == 0
    grown = MomentStore.open(str(store))
    assert grown.totals().whole.n_documents == ROWS
    assert run("forget", store, shards / "2.jsonl")[0] == 0
    assert run("compact", store)[0] == 0
    found = MomentStore.open(str(store))
    assert found.load() == before
    assert found.verify() == []


def test_the_number_of_components_is_selected(run, store):
    code, out, err = run("select", store, "--topics", "2,3,4", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["taken"]["n_topics"] == K
    assert "Chose 3 components: " in told["why"]


def test_passes_polish_a_model_as_in_memory(run, store, shards, drawn):
    code, _, err = run("polish", store, "--model", "first", "--passes", "2", "--name", "better")
    assert code == 0, err
    opened = MomentStore.open(str(store))
    found, features = opened.load_any_model("better"), opened.foundation.features
    order = [int(term[1:]) for term in features.terms]
    batch = drawn.batch.select(0, 2000).to_csr()[:, order]
    expected = polished(opened.load_any_model("first"), type(drawn.batch).from_csr(batch), 2)
    assert np.array_equal(found.probabilities, expected.probabilities)
    assert np.array_equal(found.weights, expected.weights)
    assert (found.polishing.documents, found.polishing.shards) == (2000, 2)
    assert "polished from model first" in run("topics", store, "--model", "better", "-v")[2]


def test_passes_begin_at_drawn_rows_where_rows_are_likelier(store, embedded):
    opened = MomentStore.open(str(store))
    # equal components, which passes never tell apart
    equal = np.full((FEATURES, K), 0.3)
    model = BernoulliMixture(equal, np.full(K, 1 / K), bars=np.full(K, 0.1), documents=ROWS)
    found = polish(opened, model, Run(embedded), passes=2)
    found.work.delete()
    assert (found.elsewhere, found.model.start, found.model.bars) == (True, "pilot", None)
    kept = opened.load_any_model("first")
    near = np.abs(found.model.probabilities[:, :, None] - kept.probabilities[:, None]).max(axis=0)
    assert (np.sort(near.argmin(axis=1)) == np.arange(K)).all()
    assert near.min(axis=1).max() < 0.1
    again = polish(opened, model, Run(embedded), passes=2)
    again.work.delete()
    assert (again.model.probabilities == found.model.probabilities).all()


@pytest.mark.parametrize("size", [1, 7, 100])
def test_drawn_rows_are_the_same_however_a_shard_is_cut(shards, drawn, size):
    [shard] = list_shards([str(shards / "0.parquet")])
    batch = drawn.batch.select(0, 100)
    cuts = [batch.select(at, min(at + size, 100)) for at in range(0, 100, size)]
    reader = SimpleNamespace(read=lambda *told: (SimpleNamespace(batch=one) for one in cuts))
    reading = SimpleNamespace(reader=reader, storage_options=None)
    mark = content_of(shard, None).mark
    found = draw_of_shard(shard, mark, 30, 5, reading, concatenate, False)
    order = np.argsort(np.random.default_rng(5).random(100))[:30]
    assert (found.to_csr() != batch.to_csr()[order]).nnz == 0
    with pytest.raises(ShardError, match="changed"):
        draw_of_shard(shard, "other", 30, 5, reading, concatenate, False)
    assert draw_of_shard(shard, "other", 30, 5, reading, concatenate, True) is None


def test_components_are_compared_with_those_before(run, store):
    code, _, err = run("diff", store, "-2", "-1", "--json")
    assert code == 0, err


def test_a_plan_says_what_sets_cost(run, shards):
    given = ("--kind", "sets", "--columns", "codes", "--json")
    code, out, err = run("plan", *lists_of(shards), *given)
    assert code == 0, err
    assert json.loads(out)["words"] == {"features": FEATURES}


def test_options_of_other_kinds_are_refused(run, shards, tmp_path):
    asked = (
        "create",
        tmp_path / "other",
        *lists_of(shards),
        "--kind",
        "sets",
        "--columns",
        "codes",
    )
    assert "does not use `create --squares`" in run(*asked, "--squares")[2]
    assert "does not use `create --passage-words`" in run(*asked, "--passage-words", "20")[2]


def test_components_of_rows_are_written(run, store, shards, drawn, tmp_path):
    asked = ("transform", store, shards / "2.jsonl", "--model", "first", "--id-column", "id")
    code, out, err = run(*asked, "--output", tmp_path / "out", "--json")
    assert code == 0, err
    told = json.loads(out)
    found = pq.read_table(told["files"][0])
    own = drawn.batch.select(2000, 3000)
    assert found["id"].to_pylist() == [str(one) for one in range(2000, 3000)]
    assert found["length"].to_pylist() == own.lengths.tolist()
    assert (told["documents"], told["empty"]) == (1000, (own.lengths == 0).sum())
    opened = MomentStore.open(str(store))
    model, features = opened.load_any_model("first"), opened.foundation.features
    order = [int(term[1:]) for term in features.terms]
    batch = type(own).from_csr(own.to_csr()[:, order])
    assert found["topic"].to_pylist() == model.assign(batch).tolist()
    assert np.allclose(found["proportions"].to_pylist(), model.posterior(batch))
    assert np.allclose(found["log_likelihood"], model.log_likelihoods(batch))
    assert told["log_likelihood"] == pytest.approx(model.log_likelihoods(batch).mean())
