"""What each command loads: none waits for what only others need."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_runs import exit_code_of

from streaming_moments.pipelines.command_line import commands
from streaming_moments.pipelines.command_line.every_command import cli

# of these each takes a tenth of a second of the processor or more
HEAVY = {"numba", "llvmlite", "scipy", "dask", "distributed", "zarr", "pandas", "sklearn", "bokeh"}
HEAVY |= {"pyarrow.dataset", "tornado", "matplotlib"}
ARROW = {"pyarrow", "pyarrow.parquet", "pyarrow.compute"}
STORAGE = {"fsspec", "pydantic", "numpy", "numcodecs"}
LOADED = (
    "import contextlib, io, json, sys\n"
    "from streaming_moments.pipelines.command_line.entry import main\n"
    "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
    "    main(sys.argv[1:])\n"
    "print(json.dumps(sorted(sys.modules)))"
)


def loaded(*arguments, code=LOADED):
    """Names of the modules that a process has loaded at its end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def place(tmp_path_factory, planted):
    """A store with a model and a night that is over, of shards without marks of their own."""
    folder = tmp_path_factory.mktemp("loading")
    for number in range(3):
        part = planted[number::3]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in part)
        (folder / f"2026-11-0{number + 1}.jsonl").write_text(lines)
    night = (
        f'store = "{folder}/store"\nshards = ["{folder}/*.jsonl"]\noutput = "{folder}/reports"\n'
        "[create]\nmax_topics = 4\nmin_documents = 2\n[refit]\ntopics = [2]\nalpha0 = [0.5]\n"
    )
    (folder / "night.toml").write_text(night)
    ran = CliRunner().invoke(cli, ["nightly", str(folder / "night.toml")])
    assert ran.exit_code == 0, ran.output
    return folder


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_says_what_there_is_loads_no_library(option):
    found = loaded(option)
    assert not found & (HEAVY | ARROW | STORAGE | {"rich", "asyncio"})


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_a_command_line_without_click_names_it_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "click", None)
    with pytest.raises(SystemExit, match=r"needs the package click.* run `pip install [^\n]*$"):
        runpy.run_module("streaming_moments.pipelines.command_line.entry")


@pytest.mark.parametrize(
    ("command", "more"), [("log", set()), ("topics", set()), ("status", ARROW)]
)
def test_what_shows_a_store_loads_nothing_that_computes(place, command, more):
    found = loaded(command, place / "store")
    assert not found & (HEAVY | ARROW - more)
    assert "numpy" in found, "the command has run"


def test_an_update_with_nothing_to_do_starts_no_cluster(place):
    found = loaded("update", place / "store", *place.glob("*.jsonl"))
    # pandas is loaded by Arrow itself, where it is installed
    assert not found & (HEAVY - {"pandas"})
    assert "streaming_moments.pipelines.jobs.listed.compare" in found


def test_a_night_with_nothing_to_do_starts_no_cluster(place):
    found = loaded("nightly", place / "night.toml")
    # its page says how far apart topics are, and their shares of each day, of arrays of counts
    assert not found & (HEAVY - {"pandas", "zarr"})
    assert "streaming_moments.quality.mixture_shares" in found
    assert len(list((place / "reports").glob("night-*.json"))) == 2


def test_what_counts_starts_one(place, tmp_path):
    found = loaded("create", tmp_path / "store", place / "2026-11-01.jsonl", "--max-topics", "2")
    assert {"numba", "distributed"} <= found


@pytest.mark.parametrize(
    "module", ["streaming_moments", "streaming_moments.storage", "streaming_moments.pipelines"]
)
def test_a_package_loads_what_it_exports_when_it_is_asked_for(module):
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    assert not loaded(code=f"import {module}; {report}") & (HEAVY | ARROW | STORAGE)


def test_kernels_are_loaded_when_one_runs():
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    start = "from streaming_moments import CountBatch, TopicModel; import numpy as np"
    assert not loaded(code=f"{start}; {report}") & HEAVY
    counts = "CountBatch.from_csr([[2, 1, 0], [0, 0, 3]])"
    model = "TopicModel.from_topics(np.eye(3)[:, :2], np.array([0.6, 0.4]), 0.5)"
    found = loaded(code=f"{start}; {model}.transform({counts}); {report}")
    assert {"numba", "scipy.sparse"} <= found


def test_the_list_of_commands_says_what_each_says_itself():
    context = cli.make_context("streaming-moments", ["status"], resilient_parsing=True)
    shown = " ".join(cli.get_help(context).split())
    for name in cli.list_commands(context):
        line = cli.get_command(context, name).help.split("\n\n")[0]
        assert f" {name} {' '.join(line.split())}" in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("updat store", "No such command 'updat'; did you mean 'update'? See `streaming-mo"),
        ("quench store", "No such command 'quench'. See `streaming-moments --help`."),
        ("token ad store", "No such command 'ad'; did you mean 'add'? See `streaming-moments to"),
        ("create --jsn s t", "No such option '--jsn'; did you mean '--json'? See `streaming-mom"),
        ("log --until 3 s", "No such option '--until'; '--until' is an option of `refit` and `sel"),
        ("log --schedular t s", "'--scheduler' is an option of `compact`, `create` and 14 more."),
        ("log --zzzz s", "No such option '--zzzz'. See `streaming-moments log --help`."),
        ("log -z s", "No such option '-z'. See `streaming-moments log --help`."),
    ],
)
def test_a_slip_is_named_with_what_is_near_it(given, said, capsys):
    assert exit_code_of(*given.split()) == 2
    assert said in capsys.readouterr().err


def test_each_command_is_in_a_file_of_its_name():
    folder = Path(commands.__file__).parent
    files = {
        path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("[!_]*.py")
    }
    shared = {"commands", "entry", "every_command", "shared_options", "stores/dropping"}
    shared |= {f"new_folders/{name}" for name in ("examples", "night", "service", "writing")}
    known = {
        "/".join(filter(None, (group, name.replace("-", "_"))))
        for group, own in commands._COMMANDS.items()
        for name in own
    }
    assert files == known | shared


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "create s t --seed",
            "'--seed' requires an argument. See `streaming-moments create --help",
        ),
        ("create s t --topics 3", "No such option '--topics'; did you mean '--max-topics'? See"),
        ("refit s --model gaussian-mixture", "is unknown; did you mean 'gaussian_mixture'? See"),
        ("create s t --kind photos", "'photos' is not one of 'counts', 'views', 'sequences', "),
        ("token creat", "No such command 'creat'; choose among add, list, remove. See"),
        ("status s --topcs 3", "'--topics' is an option of `plan`, `refit` and `select`. See"),
    ],
)
def test_a_wrong_line_is_answered_with_what_is_right(given, said, capsys):
    assert exit_code_of(*given.split()) == 2
    assert said in capsys.readouterr().err
