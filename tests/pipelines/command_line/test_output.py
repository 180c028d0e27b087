"""Output of commands: the answer first, details on request, and only data with --quiet."""

import json
import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_runs import COMMANDS

from streaming_moments.synthetic.graphs import community_graph

pytestmark = pytest.mark.usefixtures("few_blocks")
# Commands that are not run here: they take seconds, or count for a server.
SLOW = {"accumulate", "demo", "kernels", "nightly", "plan"}
# Each line is "=" for a change, of which --quiet prints nothing, or ">" for data to show.
LINES = """
= create s {first} --max-topics 3 --min-documents 2
= update s {first}
= refit s --name two
= polish s --model two --name polished
= label s 0 law --model two
= tag s best two
= transform s {first} --output out
= page s --output page.html
= foundation s --output words.json
= create other --like words.json
= update other {second}
= merge s other
= pull-model other s
= grow s {second}
= compact s
> status s
> topics s --model two
> log s
> diff s 0 1
> select s --topics 2-3
> expire s --dry-run
> gc s --dry-run
> purge s {first} --dry-run
= rebase other
= forget s {first}
= expire s --keep 1 --older-than 0d
= gc s
= purge s {first}
= rollback s latest
= verify s
= create graph edges.csv
= update graph edges.csv
= rename graph edges.csv moved.csv
= refit graph --model blockmodel --topics 2
= memberships graph --output memberships
= neighbours numbers.csv --output lists
> choose --data text --want topics
> serve --init service
> token add tokens.json admin
> token list tokens.json
= token remove tokens.json admin
= set-aside service.toml --retry
> set-aside service.toml
> inbox show service.toml
= inbox assign service.toml
= nightly --init night
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder in which commands run, with the edges of a graph and the file of a service."""
    monkeypatch.chdir(tmp_path)
    edges = community_graph(40, 2, 0.6, 0.05, 0.0, seed=0).edges
    lines = "".join(f"{one},{other}\n" for one, other in edges)
    (tmp_path / "numbers.csv").write_text(f"source,target\n{lines}")
    named = "".join(f"n{one},n{other}\n" for one, other in edges)
    (tmp_path / "edges.csv").write_text(f"source,target\n{named}")
    (tmp_path / "service.toml").write_text('store = "graph"\n')
    return tmp_path


def test_quiet_prints_data_that_is_asked_for_and_nothing_of_what_has_changed(run, shards, place):
    places = {"first": shards / "0.parquet", "second": shards / "1.jsonl"}
    told, names = [], set()
    for line in LINES.strip().splitlines():
        shows, *words = shlex.split(line.format(**places))
        if words[0] == "rename":
            (place / words[2]).rename(place / words[3])
        code, out, err = run(*words, "--quiet")
        named = " ".join(words[:2]) if words[0] in ("token", "inbox") else words[0]
        names |= {named}
        if (code, err, bool(out)) != (0, "", shows == ">") or "Next:" in out:
            told.append((line, code, out, err))
    assert not told, "\n".join(map(repr, told))
    assert names | SLOW | {"nightly"} == {*COMMANDS}


def write_rows(place, number=400):
    """Write rows of two groups: of numbers, of features, and of categories."""
    draws = np.random.default_rng(0)
    state = draws.integers(2, size=number)
    likely = np.where(np.arange(4) % 2 == state[:, None], 0.8, 0.2)
    bits = draws.random((number, 4)) < likely
    tables = {
        "table": {f"c{at}": [f"v{bit:d}" for bit in bits[:, at]] for at in range(4)},
        "vectors": {"vector": list(draws.normal(size=(number, 3)) + 6 * state[:, None])},
        "sets": {"features": [[f"f{at}" for at in np.flatnonzero(row)] for row in bits]},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), place / f"{name}.parquet")


@pytest.mark.parametrize(
    ("name", "options", "first", "hidden"),
    [
        ("vectors", (), "of kind vectors.", "step"),
        ("sets", (), "of kind sets: 4 features.", "of sums"),
        ("table", ("--categories", "c0,c1,c2,c3"), "of kind counts: 8 words.", "basis"),
    ],
)
def test_the_first_lines_of_each_kind_answer_and_the_next_command_works(
    run, place, name, options, first, hidden
):
    write_rows(place)
    code, out, err = run("create", "s", f"{name}.parquet", *options)
    created, *others = out.splitlines()
    assert (code, created.startswith("Created "), created.endswith(first)) == (0, True, True)
    assert hidden not in out + err
    assert "1 shard" in others[0]
    counted, shown = run("update", "s", f"{name}.parquet")[1], run("status", "s")[1]
    assert counted.startswith("version 1: counted 1 shard (400 row")
    assert "0.0%" not in shown
    following = re.search("Next: streaming-moments (.*)", shown)[1]
    code, out, err = run(*shlex.split(following))
    assert (code, err.splitlines()[0].startswith("Chose 2 ")) == (0, True)
    assert "\nSaved model " in out
    code, out, err = run("topics", "s")
    assert out.startswith("model ")
    assert (err, "captured spectrum" in out, "log-likelihood" in out) == ("", False, False)
    assert run("topics", "s", "-v")[2]


def test_details_of_a_fit_and_of_a_comparison_are_for_verbose_and_json(run, shards, place):
    run("create", "s", shards / "0.parquet", "--max-topics", 3, "--min-documents", 2)
    run("update", "s", shards / "0.parquet")
    _, out, err = run("refit", "s")
    assert err.startswith("Chose ")
    assert "alpha0" not in out + err
    assert "alpha0" in run("refit", "s", "--topics", 2, "-v")[2]
    compared = ("select", "s", "--topics", "2-3")
    out, detailed = run(*compared)[1], run(*compared, "-v")[1]
    assert out.startswith("Chose ")
    for name in ("captured", "seconds", "UMass 20"):
        assert (name in out, name in detailed) == (False, True)
    assert json.loads(run(*compared, "--json")[1])["candidates"][0]["captured"] > 0
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]", run("log", "s")[1])


def test_numbers_out_of_range_name_a_range_that_people_read(run, shards, place):
    run("create", "s", shards / "0.parquet", "--max-topics", 3, "--min-documents", 2)
    run("update", "s", shards / "0.parquet")
    code, _, err = run("refit", "s", "--topics", 9999999)
    assert (code, "9,999,999 topics" in err, "ask for at most " in err) == (2, True, True)
    most = "create", "t", shards / "0.parquet", "--vocabulary-size", 10**20
    assert "give at most 1 trillion" in run(*most)[2]
