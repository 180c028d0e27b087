"""The command line: what it prints, its exit codes, and that wrong input leaves nothing behind."""

import csv
import io
import json
import lzma
import re
import subprocess
import sys
import time
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_runs import run_command

from streaming_moments.models.fit import fit_by
from streaming_moments.pipelines.command_line.stores import status as commands
from streaming_moments.storage.store.store import MomentStore

FIT = ("--topics", "3", "--alpha0", "0.5")


@pytest.fixture(scope="module")
def made(tmp_path_factory, shards):
    """A store with all shards counted and one model, made by the command line."""
    store = tmp_path_factory.mktemp("cli") / "store"
    for arguments in (
        ("create", store, shards, "--max-topics", "4", "--min-documents", "2"),
        ("update", store, shards),
        ("refit", store, *FIT, "--name", "first"),
    ):
        run_command(*arguments)
    return store


def test_status_log_topics_and_refit_print_one_json_object(run, made):
    code, out, err = run("status", made, "--json")
    status = json.loads(out)
    assert (code, err) == (0, "")
    assert status["documents"] == 900
    assert status["shards"] == 6
    assert status["models"] == ["first"]
    assert 0 < status["effective_documents"] <= 900
    commits = json.loads(run("log", made, "--json")[1])["commits"]
    assert [commit["operation"] for commit in commits] == ["model", "append", "create"]
    topics = json.loads(run("topics", made, "--json")[1])
    assert topics["model"] == "first"
    assert len(topics["topics"]) == 3
    assert all(len(topic["words"]) == 10 for topic in topics["topics"])
    refit = json.loads(run("refit", made, *FIT, "--name", "again", "--json")[1])
    assert refit["documents"] == 900
    assert refit["topics"][0]["npmi"] is not None
    assert [t["words"] for t in refit["topics"]] == [t["words"] for t in topics["topics"]]


def test_refit_by_another_method_names_it(run, made):
    refit = json.loads(run("refit", made, *FIT, "--method", "svd", "--seed", "4", "--json")[1])
    assert (refit["method"], refit["seed"]) == ("svd", 4)
    statistics = MomentStore.open(str(made)).load()
    own, other = (
        fit_by(statistics, 3, alpha0=0.5, method=method, seed=4) for method in ("svd", "joint")
    )
    weights = [topic["weight"] for topic in refit["topics"]]
    assert weights == pytest.approx(own.weights.tolist(), rel=1e-9)
    assert weights != pytest.approx(other.weights.tolist(), rel=1e-9)
    assert refit["model"] == f"k3-a0.5-svd-v{refit['fitted_version']}"
    assert refit["model"] in run("topics", made, "--model", refit["model"])[1]


def test_the_same_commands_print_tables(run, made):
    assert "900" in run("status", made)[1]
    assert "update: 6 shards" in run("log", made)[1]
    assert "words by relevance" in run("topics", made, "--model", "first")[1]


def test_transform_and_update_as_json(run, made, shards, tmp_path):
    code, out, _ = run(
        *("transform", made, shards, "--model", "first", "--output", tmp_path / "out", "--json")
    )
    assert code == 0
    told = json.loads(out)
    assert (told["documents"], told["model"], told["foreign"]) == (900, "first", 0)
    words = told["tokens"] + told["unknown"]
    assert told["unknown_share"] == pytest.approx(told["unknown"] / words)
    assert (told["stale"], told["top_documents"]) == (False, [])
    again = json.loads(run("update", made, shards, "--json")[1])
    assert (again["counted"], again["already"]) == (0, 6)


def bad_input(tmp_path, shards, made):
    """Arguments, and what the one line must say."""
    new = tmp_path / "new"
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "no.parquet").write_text("this is not Parquet")
    (tmp_path / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    (tmp_path / "minus.dat").write_text("2 1:3 2:-1\n")
    (tmp_path / "half.dat").write_text("1 1:0.5\n")
    (tmp_path / "one.txt").write_text("a\nb\nc\n")
    pq.write_table(pa.table({"body": ["sea"]}), tmp_path / "other.parquet")
    (tmp_path / "ids.dat").write_text("1 1:2\n")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "format.json").write_text('{"format": 99}')
    return {
        "missing file": (("update", made, tmp_path / "absent.txt"), "absent.txt"),
        "empty shard": (("create", new, tmp_path / "empty.jsonl"), "is empty"),
        "not Parquet": (("create", new, tmp_path / "no.parquet"), "no.parquet"),
        "wrong column": (("create", new, tmp_path / "other.parquet"), "body"),
        "invalid UTF-8": (("create", new, tmp_path / "latin.txt"), "UTF-8"),
        "negative count": (("create", new, tmp_path / "minus.dat"), "line 1"),
        "fractional count": (("create", new, tmp_path / "half.dat"), "line 1"),
        "k above the rank": (("refit", made, "--topics", "50"), "basis has"),
        "no such method": (("refit", made, *FIT, "--method", "jacobi"), "'joint', 'feature'"),
        "no topics": (("refit", made, "--topics", "0"), "0 topics"),
        "alpha0 below zero": (("refit", made, "--topics", "2", "--alpha0", "-1"), "alpha0"),
        "another format": (("status", broken), "format"),
        "store exists": (("create", made, shards), "there is already a store"),
        "no store": (("status", tmp_path / "nowhere"), "there is no store"),
        "no term": (("create", new, tmp_path / "one.txt"), "so there is no vocabulary"),
        "language": (("create", new, shards, "--language", "klingon"), "klingon"),
        "memory": (("update", made, shards, "--memory", "1MB"), "--memory"),
        "size": (("update", made, shards, "--memory", "much"), "write for example 512MB"),
        "no shards": (("update", made), "SHARDS"),
        "unknown option": (("update", made, shards, "--fast"), "--fast"),
        "unknown command": (("upgrade", made), "upgrade"),
        "model": (("topics", made, "--model", "absent"), "absent"),
        "model taken": (("refit", made, *FIT, "--name", "first"), "already"),
        "version": (("status", made, "--version", "99"), "99"),
        "negative seed": (("create", new, shards, "--seed", "-1"), "--seed"),
        "huge alpha0": (("refit", made, "--topics", "2", "--alpha0", "1e300"), "alpha0"),
        "create memory": (("create", new, shards, "--memory", "1MB"), "--memory"),
        "transform memory": (
            ("transform", made, shards, "--output", new, "--memory", "1MB"),
            "--memory",
        ),
        "words": (("topics", made, "--words", "0"), "--words"),
        "texts and ids": (("create", new, shards / "0.parquet", tmp_path / "ids.dat"), "holds"),
        "seed": (("transform", made, shards, "--output", new, "--method", "gibbs"), "--seed"),
        "options": (("status", made, "--storage-options", "secret"), "JSON object"),
    }


@pytest.mark.parametrize(
    "case",
    [
        "missing file",
        "empty shard",
        "not Parquet",
        "wrong column",
        "invalid UTF-8",
        "negative count",
        "fractional count",
        "k above the rank",
        "no such method",
        "no topics",
        "alpha0 below zero",
        "another format",
        "store exists",
        "no store",
        "no term",
        "language",
        "memory",
        "size",
        "no shards",
        "unknown option",
        "unknown command",
        "model",
        "model taken",
        "version",
        "negative seed",
        "huge alpha0",
        "create memory",
        "transform memory",
        "words",
        "texts and ids",
        "seed",
        "options",
    ],
)
def test_wrong_input_is_one_line_and_code_2(run, tmp_path, shards, made, case):
    before = sorted(path for path in made.rglob("*") if path.is_file())
    arguments, expected = bad_input(tmp_path, shards, made)[case]
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert expected in err
    assert not (tmp_path / "new").exists()
    assert sorted(path for path in made.rglob("*") if path.is_file()) == before


def test_bad_shards_that_were_left_out_are_code_3(run, made, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    code, out, err = run("update", made, tmp_path / "empty.jsonl", "--skip-bad-shards")
    assert code == 3
    assert "no new shards" in out
    assert "left out" in err
    assert "empty.jsonl" in err
    # a table would break a long path where the cell ends
    assert "empty.jsonl" in run("log", made, "--json")[1]


def test_a_fault_of_ours_is_one_line_and_code_1(run, made, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("an error nobody thought of")

    monkeypatch.setattr(commands, "status_of_any", broken)
    code, out, err = run("status", made)
    assert (code, out) == (1, "")
    assert err.startswith("bug in streaming-moments (ZeroDivisionError: an error nobody")
    assert err.count("\n") == 1
    assert "Traceback" in run("--debug", "status", made)[2]


def test_an_interrupt_says_how_to_go_on(run, made, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "status_of_any", interrupted)
    code, _, err = run("status", made)
    assert code == 130
    assert "run the same command again" in err


def test_without_a_command_the_help_is_shown_as_it_is(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "\n  update    Count the SHARDS" in out
    assert out == run("--help")[1]


def test_every_command_is_found_where_it_is_said_to_be(run):
    names = re.findall(r"^  ([a-z-]+)  ", run()[1].split("\nStores:")[1], re.MULTILINE)
    assert len(names) == 38
    for name in names:
        assert run(name, "--help")[1].startswith(f"Usage: streaming-moments {name}")


def test_the_installed_command_answers():
    shown = subprocess.run(
        [sys.executable, "-m", "streaming_moments", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert shown.returncode == 0
    for command in ("create", "update", "select", "refit", "topics", "status", "log", "transform"):
        assert f"\n  {command} " in shown.stdout
    assert "\n  demo " in shown.stdout


def test_shards_and_store_on_s3(run, shards):
    fsspec = pytest.importorskip("fsspec")
    from s3_server import S3Server

    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", "key": "user", "secret": "hidden-secret"}
    try:
        fs = fsspec.filesystem("s3", **options)
        fs.mkdir("cloud")
        fs.put(str(shards) + "/", "cloud/shards/", recursive=True)
        cloud = ("--storage-options", json.dumps(options))
        store, source = "s3://cloud/store", "s3://cloud/shards/*"
        assert run("create", store, source, "--max-topics", "4", *cloud)[0] == 0
        code, out, err = run("update", store, source, "--json", *cloud)
        assert (code, json.loads(out)["counted"]) == (0, 6), err
        assert json.loads(run("update", store, source, "--json", *cloud)[1])["already"] == 6
        assert run("refit", store, *FIT, *cloud)[0] == 0
        code, out, _ = run("transform", store, source, "--output", "s3://cloud/out", *cloud)
        assert code == 0
        assert len(fs.glob("cloud/out/*.parquet")) == 6
        again = ("--output", "s3://cloud/out", "--json", *cloud)
        assert json.loads(run("transform", store, source, *again)[1])["kept"] == 6
        for path in fs.find("cloud/store"):
            assert b"hidden-secret" not in fs.cat(path)
        code, _, err = run("update", store, "s3://cloud/absent/*", *cloud)
        assert code == 2
        assert "hidden-secret" not in err
        for command in (
            ("create", "s3://absent/store", "s3://cloud/absent/*"),
            ("plan", "s3://absent/shards/"),
            ("update", store, "s3://absent/a.txt"),
            ("transform", store, source, "--output", "s3://absent/out"),
        ):
            code, _, err = run(*command, *cloud)
            assert code == 2, err
            assert "the bucket 'absent' does not exist; create it" in " ".join(err.split())
    finally:
        server.stop()


def test_a_row_group_above_the_limit_is_refused_and_admitted_by_its_option(run, tmp_path, planted):
    texts = [f"{text} {'x' * 3000}" for text in planted]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", use_dictionary=False)
    create = ("create", tmp_path / "store", tmp_path / "a.parquet", "--max-topics", "2")
    code, _, err = run(*create, "--max-row-group-bytes", "1MB")
    assert code == 2
    assert "a.parquet" in err
    assert "raise --max-row-group-bytes" in err
    assert not (tmp_path / "store").exists()
    code, _, err = run(*create, "--max-row-group-bytes", "8MB")
    assert (code, err) == (0, "")
    update = ("update", tmp_path / "store", tmp_path / "a.parquet")
    code, _, err = run(*update, "--max-row-group-bytes", "1MB")
    assert code == 2
    assert "raise --max-row-group-bytes" in err
    assert run(*update, "--max-row-group-bytes", "8MB")[0] == 0


@pytest.mark.usefixtures("each_step_a_task")
def test_a_run_can_be_watched_and_leaves_a_report_on_request(run, made, tmp_path):
    page = tmp_path / "run.html"
    name = ("--name", "watched")
    code, _, err = run("refit", made, *FIT, *name, "--dashboard", "--performance-report", page)
    assert code == 0
    assert re.search(r"^dashboard: http://\S+/status$", err, re.MULTILINE)
    assert "reading-row-blocks" in page.read_text(encoding="utf-8"), "the tasks are in it"
    gone = tmp_path / "gone" / "run.html"
    code, _, err = run("refit", made, *FIT, "--performance-report", gone)
    assert code == 2
    assert f"{gone.parent} is not a writable folder" in err


def test_status_tells_how_far_the_documents_have_moved_since_a_model(run, shards, tmp_path):
    store = tmp_path / "store"
    run("create", store, shards, "--max-topics", "4", "--min-documents", "2")
    run("update", store, shards / "0.parquet")
    run("refit", store, "--topics", "2", "--name", "first")
    status = json.loads(run("status", store, "--drift", "first", "--json")[1])
    assert status["drift"]["model"] == "first"
    assert status["drift"]["drift"]["pair_distance"] == 0
    assert json.loads(run("status", store, "--json")[1])["drift"] is None
    run("update", store, shards)
    moved = json.loads(run("status", store, "--drift", "first", "--json")[1])["drift"]
    assert 0 < moved["drift"]["pair_distance"] < 1
    assert (
        f"since first of version {moved['version']}" in run("status", store, "--drift", "first")[1]
    )
    code, _, err = run("status", store, "--drift", "second")
    assert code == 2
    assert "second" in err


def test_csv_and_xz_make_the_store_that_json_lines_make(run, tmp_path, planted):
    def table(rows, delimiter):
        stream = io.StringIO()
        csv.writer(stream, delimiter=delimiter).writerows([("day", "body"), *rows])
        return stream.getvalue().encode()

    days = [("2026-11-20", planted[:200]), ("2026-11-21", planted[200:400])]
    for kind in ("lines", "tables"):
        for number, (day, texts) in enumerate(days):
            lines = "".join(json.dumps({"day": day, "body": text}) + "\n" for text in texts)
            rows = [(f"{day} 08:00", text) for text in texts]
            written = {
                ("lines", 0): ("a.jsonl", lines.encode()),
                ("lines", 1): ("b.jsonl.xz", lzma.compress(lines.encode())),
                ("tables", 0): ("a.csv", table(rows, ",")),
                ("tables", 1): ("b.tsv.xz", lzma.compress(table(rows, "\t"), preset=9)),
            }
            name, content = written[kind, number]
            (tmp_path / kind).mkdir(exist_ok=True)
            (tmp_path / kind / name).write_bytes(content)
        columns = ("--text-column", "body", "--date-column", "day")
        store = tmp_path / f"{kind}.store"
        assert run("create", store, tmp_path / kind, "--max-topics", "4", *columns)[0] == 0
        assert run("update", store, tmp_path / kind)[0] == 0
    one, two = (MomentStore.open(str(tmp_path / f"{kind}.store")) for kind in ("lines", "tables"))
    assert one.load() == two.load()
    dates = [[str(part.dates) for part in store.commit.segments] for store in (one, two)]
    assert sorted(dates[0]) == sorted(dates[1]) == [day for day, _ in days]


def test_create_answers_in_json(run, shards, tmp_path):
    create = ("create", tmp_path / "store", shards, "--max-topics", "2", "--min-documents", "2")
    code, out, err = run(*create, "--json")
    assert (code, err) == (0, "")
    made = json.loads(out)
    assert (made["version"], made["core"]) == (0, made["words"])
    assert made["message"].startswith("create from a sample of")


def test_the_latest_model_may_be_called_so(run, made):
    assert run("topics", made, "--model", "latest") == run("topics", made)


def test_tables_are_as_wide_as_columns_says(run, made, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, run("log", made)[1].splitlines())) <= 60
    monkeypatch.setenv("COLUMNS", "200")
    assert max(map(len, run("log", made)[1].splitlines())) > 160


def test_status_tells_the_time_by_the_clock_here(run, made, monkeypatch):
    stored = json.loads(run("status", made, "--json")[1])["time"]
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        here = f"{datetime.fromisoformat(stored).astimezone():%Y-%m-%d %H:%M:%S} JST"
        assert here in run("status", made, "--verbose")[1]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_storage_options_that_no_path_uses_are_named_and_their_values_are_not(run, made, shards):
    options = ("--storage-options", '{"key": "hushhush", "anon": true}')
    warned = (
        "warning: --storage-options key, anon has no effect, because all paths are local; remove "
        "it, or write URLs such as s3://BUCKET\n"
    )
    assert run("log", made, *options)[2] == warned
    assert run("status", made, "--json", "--quiet", *options)[2] == warned
    code, _, err = run("update", made, shards, "--workers", 1, *options)
    assert (code, err.endswith(warned)) == (0, True)
    assert run("log", made, "--storage-options", "{}")[2] == ""
    # a client got them, whatever it made of them
    code, _, err = run("plan", "http://127.0.0.1:9/a.txt", "--topics", 2, *options)
    assert code == 2
    assert "(unknown option 'key'); correct or remove this option" in err
    code, _, err = run("plan", "http://127.0.0.1:9/a.txt", "--topics", 2)
    assert code == 2
    assert re.search(r"Cannot connect .*; check the URL, and that its server answers\n$", err)
