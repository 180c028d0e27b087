"""Views and sequences by the command line: create, update, refit, show, read, forget, verify."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from command_runs import run_command

from streaming_moments import polished
from streaming_moments.errors import BoundExceeded
from streaming_moments.models.chains import HiddenMarkovModel
from streaming_moments.models.rows import InMemory
from streaming_moments.models.three_view import MultiViewMixture
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.memory import LIMITS
from streaming_moments.pipelines.jobs.kinds.views import pairs_of
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.storage.contents import content_of
from streaming_moments.storage.formats import START
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.hidden import markov_sequences, view_records

pytestmark = pytest.mark.usefixtures("few_blocks")
LETTERS = "abcdefghijklmnopqrst"


def names(prefix, table):
    """Values of one word each, from counts of one word a record; a record without is a null."""
    words = table.to_csr().indices
    return [f"{prefix}{word:02d}" for word in words]


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    """Three shards of records with a text, a list of ids and a class."""
    folder = tmp_path_factory.mktemp("views")
    drawn = view_records(3_000, sizes=(20, 15, 10), k=3, seed=5)
    rows, left, right = (view.to_csr() for view in drawn.batch.views)
    texts, ids, classes = [], [], []
    for record in range(3_000):
        counts = rows[[record]].toarray()[0]
        letters = [f"w{LETTERS[word]}" for word in np.repeat(np.arange(20), counts)]
        texts.append(" ".join(letters))
        ids.append(np.repeat(np.arange(15), left[[record]].toarray()[0]).tolist())
        held = np.flatnonzero(right[[record]].toarray()[0])
        classes.append(f"class {held[0]}" if held.size else None)
    table = pa.table({"text": texts, "ids": ids, "class": classes})
    for number in range(3):
        pq.write_table(table[1000 * number : 1000 * (number + 1)], folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def view_store(views, tmp_path_factory):
    store = tmp_path_factory.mktemp("kinds") / "views"
    columns = ("--kind", "views", "--columns", "text:text,ids,class")
    run_command("create", store, views, *columns, "--min-documents", "2", "--date-pattern", "none")
    run_command("update", store, views / "0.parquet", views / "1.parquet")
    run_command("refit", store, "--model", "views", "--topics", "3", "--name", "first")
    return store


def test_views_are_created_counted_fitted_and_shown(run, view_store):
    status = json.loads(run("status", view_store, "--json")[1])
    assert (status["kind"], status["documents"], status["shards"]) == ("views", 2_000, 2)
    assert status["words"]["class"] <= 10
    assert status["outside"] == 0
    assert 0 < status["without_a_triple"] < 100
    shown = json.loads(run("topics", view_store, "--json", "--words", "3")[1])
    assert shown["fitted_as"] == "views"
    assert [state["state"] for state in shown["states"]] == [0, 1, 2]
    assert shown["states"][0]["words"].keys() == {"text", "ids", "class"}
    assert len(shown["error_bar"]) == 3
    code, out, _ = run("topics", view_store)
    assert code == 0
    assert "class 1" in out
    assert "records lack a view" in out.replace("\n", " ")
    assert "words" in run("status", view_store)[1]


def test_a_model_on_the_cluster_is_that_of_the_statistics(view_store):
    store = MomentStore.open(str(view_store))
    assert store.verify() == []
    kept = store.load_any_model("first")
    options = MultiViewMixture.Options(topics=3)
    again = MultiViewMixture.fit(InMemory((store.load(),)), options)
    assert np.allclose(kept.right, again.right, atol=1e-9)
    assert kept.columns == ("text", "ids", "class")


def batches(store, shards):
    """What the tasks of a pass read of the shards."""
    context = ReadingContext.of(MomentStore.open(str(store)), LIMITS, None)
    for shard in list_shards([str(one) for one in shards]):
        for read in context.read(shard, START, content_of(shard, None)):
            yield read.batch


def polished_as_in_memory(run, original, place, shards):
    """The polished model of a copy of a store: the bits of passes over the same records."""
    store = shutil.copytree(original, place / "store")
    found = ("--name", "polished", "--passes", "2", "--model", "first", "--json")
    code, out, err = run("polish", store, *shards, *found)
    assert code == 0, err
    opened = MomentStore.open(str(store))
    kept = opened.load_any_model("polished")
    here = polished(opened.load_any_model("first"), [*batches(store, shards)], 2, threads=2)
    for name, table in kept.tables.items():
        assert (here.tables[name] == table).all()
    assert (kept.weights == here.weights).all()
    return json.loads(out), kept


def test_states_of_records_are_polished(run, view_store, views, tmp_path):
    shown, kept = polished_as_in_memory(
        run, view_store, tmp_path, [views / "0.parquet", views / "1.parquet"]
    )
    assert shown["polishing"]["passes"] == 2
    assert kept.polishing.shards == 2
    assert kept.polishing.documents == 2000


def test_shards_of_views_are_forgotten_and_replaced_bit_for_bit(run, view_store, views, tmp_path):
    before = MomentStore.open(str(view_store)).load()
    assert run("update", view_store, views / "2.parquet")[0] == 0
    grown = MomentStore.open(str(view_store))
    assert grown.load() != before
    assert run("forget", view_store, views / "2.parquet")[0] == 0
    assert run("compact", view_store)[0] == 0
    found = MomentStore.open(str(view_store))
    assert found.load() == before
    assert found.verify() == []


def test_states_of_records_are_written(run, view_store, views, tmp_path):
    shard = views / "2.parquet"
    code, out, err = run("transform", view_store, shard, "--output", tmp_path / "out", "--json")
    assert code == 0, err
    [path] = json.loads(out)["files"]
    table = pq.read_table(path)
    assert table.num_rows == 1000
    assert set(table["topic"].to_pylist()) == {0, 1, 2}
    # a table without one of the columns, and two of three
    model = MomentStore.open(str(view_store)).load_any_model("first")
    few = tmp_path / "few.parquet"
    pq.write_table(pq.read_table(shard, columns=["ids", "text"]), few)
    asked = ("transform", view_store, few, "--output", tmp_path / "few", "--model", "first")
    assert "has no column 'class'" in run(*asked)[2]
    code, out, err = run(*asked, "--views", "text,ids", "--json")
    assert code == 0, err
    found = pq.read_table(json.loads(out)["files"][0])
    lists = np.array(pq.read_table(shard)["ids"].to_pylist(), dtype=object)
    ids = np.stack([np.bincount(np.array(one, int), minlength=15) for one in lists])
    words = MomentStore.open(str(view_store)).foundation.vocabularies
    columns = [words[1].index[str(one)] for one in range(15)]
    counts = np.zeros_like(ids)
    counts[:, columns] = ids
    # a folder is of one choice of views
    assert "--replace" in run(*asked, "--views", "ids", "--json")[2]
    code, out, err = run(*asked, "--views", "ids", "--json", "--replace")
    assert code == 0, err
    alone = pq.read_table(json.loads(out)["files"][0])["proportions"].to_pylist()
    expected = model.posterior({"left": CountBatch.from_csr(counts)})
    assert np.allclose(alone, expected)
    assert not np.allclose(found["proportions"].to_pylist(), expected)
    assert (
        "the given views are text, day, but the views of the model are text, ids, class; "
        "give some of the model's" in run(*asked, "--views", "text,day")[2]
    )


@pytest.fixture(scope="module")
def texts():
    drawn = markov_sequences(300, length=60, n_symbols=12, k=3, seed=2)
    symbols = drawn.batch.symbols.reshape(300, 60)
    return ["".join(LETTERS[symbol] for symbol in row) for row in symbols]


@pytest.fixture(scope="module")
def sequence_shards(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequences")
    (folder / "0.txt").write_text("\n".join(texts[:120]) + "\nab\n")
    (folder / "1.txt").write_text("\n".join(texts[120:240]) + "\na#b\n")
    (folder / "2.txt").write_text("\n".join(texts[240:]) + "\n")
    return folder


@pytest.fixture(scope="module")
def sequence_store(sequence_shards, tmp_path_factory):
    store = tmp_path_factory.mktemp("kinds") / "sequences"
    both = [sequence_shards / "0.txt", sequence_shards / "1.txt"]
    run_command("create", store, *both, "--kind", "sequences", "--min-documents", "3")
    run_command("update", store, *both)
    run_command(
        "refit", store, "--model", "hmm", "--topics", "3", "--refine", "10", "--name", "first"
    )
    return store


def test_sequences_are_created_counted_fitted_and_shown(run, sequence_store):
    status = json.loads(run("status", sequence_store, "--json")[1])
    assert (status["kind"], status["documents"]) == ("sequences", 242)
    assert status["triples"] == 240 * 58
    assert (status["outside"], status["without_a_triple"]) == (1, 1)
    shown = json.loads(run("topics", sequence_store, "--json", "--words", "4")[1])
    assert shown["windows"] == 240 * 58
    assert np.allclose(np.sum(shown["moves"], axis=1), 1)
    code, out, err = run("topics", sequence_store, "--verbose")
    assert code == 0
    said = " ".join(out.split())
    assert "refined in 10 rounds" in err
    assert "1 sequence has fewer than three symbols" in said


def test_chains_are_polished_by_the_sequences(run, sequence_store, sequence_shards, tmp_path):
    both = [sequence_shards / "0.txt", sequence_shards / "1.txt"]
    shown, kept = polished_as_in_memory(run, sequence_store, tmp_path, both)
    assert shown["polishing"]["parent"] == "first"
    assert (kept.polishing.documents, kept.polishing.tokens) == (242, 240 * 60 + 5)
    held = [*batches(sequence_store, [sequence_shards / "2.txt"])]
    before = MomentStore.open(str(sequence_store)).load_any_model("first")
    assert kept.perplexity(held[0]) < before.perplexity(held[0])
    code, _, err = run("topics", tmp_path / "store", "--model", "polished", "--verbose")
    assert code == 0
    assert "polished from model first: 242 records of 2 shards" in err


def test_what_lies_outside_the_alphabet_is_said(run, sequence_store, tmp_path):
    odd = tmp_path / "odd.txt"
    odd.write_text("abcabc#abcab\nxx\n")
    code, out, err = run("update", sequence_store, odd)
    assert code == 0, err
    assert "sequences are split there" in out
    assert "under three symbols" in out
    assert run("forget", sequence_store, odd)[0] == 0
    none = tmp_path / "none.txt"
    none.write_text("####\n")
    code, _, err = run("update", sequence_store, none)
    assert code == 2
    assert "three known symbols in a row" in err


def test_sequences_are_decoded_with_their_perplexity(
    run, sequence_store, sequence_shards, tmp_path
):
    shard = sequence_shards / "2.txt"
    decoded = {}
    for method in ("viterbi", "posterior"):
        out = tmp_path / method
        asked = ("transform", sequence_store, shard, "--output", out, "--method", method, "--json")
        code, printed, err = run(*asked)
        assert code == 0, err
        decoded[method] = json.loads(printed)
    found = decoded["viterbi"]
    assert (found["sequences"], found["symbols"]) == (60, 60 * 60)
    assert found["perplexity"] == decoded["posterior"]["perplexity"]
    assert 1 < found["perplexity"] < 12
    table = pq.read_table(found["files"][0])
    assert (table["name"].null_count, table["from"].null_count) == (60, 60)
    assert table["length"].to_pylist() == [60] * 60
    assert {len(states) for states in table["states"].to_pylist()} == {60}
    for refused in (("--method", "gibbs"), ("--id-column", "a"), ("--passages",), ("--seed", "1")):
        code, _, err = run("transform", sequence_store, shard, "--output", tmp_path, *refused)
        assert (code, refused[0] in err) == (2, True), err


def test_days_of_sequences_are_fitted_apart(run, sequence_shards, tmp_path):
    store, folder = tmp_path / "store", tmp_path / "dated"
    folder.mkdir()
    for day, number in (("2026-11-01", 0), ("2026-11-02", 1)):
        (folder / f"{day}.txt").write_text((sequence_shards / f"{number}.txt").read_text())
    assert run("create", store, folder / "*.txt", "--kind", "sequences")[0] == 0
    assert run("update", store, folder / "*.txt")[0] == 0
    fit = ("refit", store, "--model", "hmm", "--topics", "2", "--refine", "2", "--json")
    code, out, err = run(*fit, "--until", "2026-11-01")
    assert code == 0, err
    assert json.loads(out)["documents"] == 121
    code, _, err = run(*fit, "--half-life", "30")
    assert code == 2
    assert "leave out --half-life" in err


def test_symbols_in_words_and_in_lists(run, tmp_path, texts):
    lines, lists = tmp_path / "words.txt", tmp_path / "lists.parquet"
    lines.write_text("\n".join(" ".join(f"w{one}" for one in text) for text in texts[:60]))
    pq.write_table(pa.table({"steps": [list(text) for text in texts[:60]]}), lists)
    for path, more in ((lines, ("--symbols", "words")), (lists, ("--columns", "steps"))):
        store = tmp_path / path.stem
        options = ("--kind", "sequences", "--sketch-columns", "8", "--no-halves")
        more = (*more, "--min-documents", "1")
        assert run("create", store, path, *options, *more)[0] == 0
        assert run("update", store, path)[0] == 0
        fit = ("refit", store, "--model", "hmm", "--topics", "2", "--json")
        code, out, err = run(*fit)
        assert code == 0, err
        fitted = json.loads(out)
        # of a sketch there is no table of windows to refine by
        assert (fitted["refined"], fitted["windows"]) == (0, 60 * 58)
        assert "error_bar" not in fitted
    kept = MomentStore.open(str(tmp_path / "lists")).load_any_model()
    assert isinstance(kept, HiddenMarkovModel)


def test_what_does_not_fit_the_kind_is_refused(run, views, view_store, sequence_store, tmp_path):
    for arguments, told in (
        (("create", tmp_path / "s", views, "--kind", "views"), "three different columns"),
        (
            ("create", tmp_path / "s", views, "--kind", "views", "--columns", "a,b,c"),
            "has no column 'a'",
        ),
        (("create", tmp_path / "s", views, "--columns", "a"), "give `--kind sequences` for"),
        (
            ("create", tmp_path / "s", views, "--kind", "sequences", "--max-topics", "3"),
            "does not use `create --max-topics`",
        ),
        (("refit", view_store, "--topics", "2"), "`refit --model views`"),
        (("refit", sequence_store, "--topics", "2"), "`refit --model hmm`"),
        (
            ("refit", view_store, "--model", "views", "--topics", "40", "--refine", "0"),
            "sketches of at least",
        ),
        (("status", view_store, "--drift", "first"), "--drift needs a store of documents"),
        (("topics", view_store, "--over-time", "month"), "--over-time needs a model of topics"),
        (("refit", view_store, "--model", "views", "--topics", "2", "--refine", "-1"), "0 to 10"),
        (
            ("select", sequence_store, "--topics", "2", "--alpha0", "1"),
            "--alpha0 needs a model of topics",
        ),
        (("rebase", view_store), "create another store with `streaming-moments create`"),
        (("grow", view_store, views), "holds statistics of kind 'views'"),
        (
            ("polish", view_store, views, "--alpha"),
            "model views has no alpha to learn",
        ),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (2, ""), (arguments, out, err)
        assert told in err, (arguments, err)
        assert "Traceback" not in err
    assert not (tmp_path / "s").exists()


def test_pages_show_states_with_their_words(run, view_store, sequence_store, tmp_path):
    head = '<th role="columnheader" class="below">class</th>'
    for store, shown in (
        (view_store, (head, "class 1", "3 states of 2,000 documents")),
        (sequence_store, ("States of sequences", "refined in 10 rounds", "3 states of")),
    ):
        page = tmp_path / f"{store.name}.html"
        code, out, err = run("page", store, "--output", page, "--model", "first")
        assert code == 0, err
        text = out + page.read_text()
        assert all(one in text for one in shown), [one for one in shown if one not in text]


def test_what_came_after_a_model_of_another_kind_is_said(run, sequence_store, tmp_path):
    later = tmp_path / "later.txt"
    later.write_text("abcabcab\n")
    assert run("update", sequence_store, later)[0] == 0
    stale = "1 document counted since then is not in it"
    assert stale in run("status", sequence_store)[1].replace("\n", " ")
    [one] = json.loads(run("status", sequence_store, "--json")[1])["stale_models"]
    assert one["model"] == "first"
    assert one["counted"] > 0
    assert json.loads(run("topics", sequence_store, "--json")[1])["stale"]
    out = tmp_path / "out"
    assert stale in run("transform", sequence_store, later, "--output", out)[2]
    assert run("forget", sequence_store, later)[0] == 0


def test_history_of_a_store_of_another_kind(run, view_store, tmp_path):
    for arguments in (
        ("log", view_store),
        ("tag", view_store, "live", "first"),
        ("diff", view_store, "0", "1"),
        ("gc", view_store),
        ("verify", view_store),
        ("rollback", view_store, "1"),
    ):
        code, _, err = run(*arguments)
        assert code == 0, (arguments, err)
        assert "Traceback" not in err


def long_table(path, rows):
    path.write_text("\n".join(["name,time,symbol", *rows, ""]))
    return path


def test_rows_that_come_to_records_are_counted(run, tmp_path):
    rows = [f"s{name},{time},{'abc'[(name + time) % 3]}" for name in range(9) for time in range(30)]
    shard = long_table(tmp_path / "long.csv", rows)
    told = ("--kind", "views", "--columns", "name,time,symbol", "--date-pattern", "none")
    run_command("create", tmp_path / "views", shard, *told)
    run_command("update", tmp_path / "views", shard)
    with shard.open("a") as end:
        end.write("s8,3,a\ns8,4,b\n")
    assert run("update", tmp_path / "views", shard)[0] == 0
    assert MomentStore.open(str(tmp_path / "views")).commit.documents == 9 * 30 + 2


def test_sequences_that_go_on_in_other_shards_and_in_new_rows_are_joined(run, tmp_path):
    rows = [
        [f"s{name},{time},{'abc'[(name * time + time // 3) % 3]}" for time in range(30)]
        for name in range(9)
    ]
    whole = long_table(tmp_path / "whole.csv", [row for own in rows for row in own])
    thirds = [
        long_table(
            tmp_path / f"{part}.csv",
            [row for own in rows for row in own[10 * part : 10 * part + 10]],
        )
        for part in range(3)
    ]
    one, several = tmp_path / "one", tmp_path / "several"
    for store in (one, several):
        run_command("create", store, whole, "--kind", "sequences", "--columns", "name,time,symbol")
    assert "rises by one" in MomentStore.open(str(one)).commit.message
    run_command("update", one, whole)
    expected = MomentStore.open(str(one)).load()
    assert (expected.totals.n_documents, expected.totals.triples) == (9, 9 * 28)

    def loaded():
        return MomentStore.open(str(several)).load()

    # the end first, and the beginning: what lies between is missing
    assert run("update", several, thirds[2])[0] == 0
    said = " ".join(run("update", several, thirds[0])[1].split())
    assert "9 gaps in sequences, which no window spans: 's" in said
    assert "from 0 to 9 and from 20 to 29" in said
    status = json.loads(run("status", several, "--json")[1])
    assert (status["gaps"], status["documents"], status["triples"]) == (9, 9, 9 * 16)
    assert "gaps" not in run("update", several, thirds[1])[1]
    assert loaded() == expected
    # taken away, summed up, and counted again
    assert run("forget", several, thirds[1])[0] == 0
    assert run("compact", several)[0] == 0
    assert loaded().totals.triples == 9 * 16
    assert run("update", several, thirds[1], "--include-forgotten")[0] == 0
    assert loaded() == expected
    # rows that come to a file go on with the sequence it ends with
    with thirds[2].open("a") as end:
        end.write("s8,30,a\ns8,31,b\n")
    run_command("update", one, long_table(tmp_path / "more.csv", ["s8,30,a", "s8,31,b"]))
    assert run("update", several, thirds[2])[0] == 0
    assert loaded() == MomentStore.open(str(one)).load() != expected
    # parts are read as they lie, and told by name and number
    fit = ("refit", several, "--model", "hmm", "--topics", "2", "--refine", "2")
    assert run(*fit)[0] == 0
    code, out, err = run("transform", several, thirds[1], "--output", tmp_path / "read", "--json")
    assert code == 0, err
    read = pq.read_table(json.loads(out)["files"][0])
    assert read["name"].to_pylist() == [f"s{name}" for name in range(9)]
    assert (set(read["from"].to_pylist()), set(read["first"].to_pylist())) == ({10}, {0})
    # what is counted already comes in no other shard again
    again = long_table(tmp_path / "again.csv", ["s8,3,a", "s8,4,b", "s9,0,c"])
    code, _, err = run("update", several, again)
    assert code
    assert "'s8' from 0 to 9 and from 3 to 4" in err
    assert MomentStore.open(str(several)).verify() == []


def test_pairs_of_a_pilot_are_those_of_as_many_records_as_there_is_room_for():
    rng = np.random.default_rng(1)
    views = [sp.csr_array(rng.integers(0, 2, (8, 150))) for _ in range(3)]

    def counted(every):
        kept = [one[::every] for one in views]
        return np.hstack([(kept[1].T @ kept[place]).toarray() for place in (0, 2)])

    enough = 4 * np.count_nonzero(counted(1))
    assert (pairs_of(views, 1, enough).toarray() == counted(1)).all()
    assert (pairs_of(views, 1, enough - 4).toarray() == counted(2)).all()
    with pytest.raises(BoundExceeded, match="words of one record form more than 0 pairs"):
        pairs_of(views, 1, 0)
