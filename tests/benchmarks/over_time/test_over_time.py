import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cases import commands, counts, kinds
from cases.timing import Timed, bare, first_of
from history import evenly, medians, table
from install import placed, requirements

HERE = Path(__file__).parent
# so few that all cases take a second
SMALL = {"documents": 300, "records": 600}


def in_process():
    """The cases that need no store, with the names of what they time."""
    modules = counts, kinds
    found = [one for module in modules for one in vars(module).values() if isinstance(one, type)]
    timed = {case: [name for name in dir(case) if name.startswith("time_")] for case in found}
    return [case for case, names in timed.items() if issubclass(case, Timed) and names]


@pytest.mark.parametrize("case", in_process(), ids=lambda case: case.__name__)
def test_no_case_is_skipped_here(case, monkeypatch):
    # as many words as fit 20 topics take seconds for cells of pairs that hold nothing
    monkeypatch.setattr(counts, "TOPICS", 4)
    monkeypatch.setattr(counts, "WORDS", 1_000)
    small = {name: value for name, value in SMALL.items() if hasattr(case, name)}
    made = type(case.__name__, (case,), small)()
    made.setup()
    for name in dir(case):
        if name.startswith("time_"):
            getattr(made, name)()


def test_a_command_is_timed_as_a_process():
    before = commands.Commands.timer()
    commands.Commands().time_help("")
    assert commands.Commands.timer() > before
    assert commands.run("no-such-command", check=False) == 2
    with pytest.raises(RuntimeError, match="no-such-command"):
        commands.run("no-such-command")


def test_what_a_commit_lacks_skips_a_case():
    assert first_of(".nothing:at_all", ".models:nothing", ":fit").__name__ == "fit"
    with pytest.raises(NotImplementedError, match="nothing"):
        first_of(".nothing:at_all")
    assert bare(lambda a, b=1: None, b=2, c=3) == {"b": 2}


def test_a_range_is_its_ends_and_commits_between():
    assert evenly("abcdefg", 3) == ["a", "d", "g"]
    assert evenly("ab", 3) == ["a", "b"]


def test_medians_of_a_commit_stand_beside_the_first(tmp_path):
    content = {
        "result_columns": ["result", "params"],
        "results": {"fit": [[2.0], []], "log": [[None], []], "update": [None, []]},
    }
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "01234567-virtualenv.json").write_text(json.dumps(content))
    old = medians("0123456789", tmp_path)
    assert old == {"fit": 2.0}
    lines = table({"old": old, "new": {"fit": 3.0, "log": 0.0625}}).splitlines()
    assert lines[2:] == ["| fit | 2 | 3 (1.50) |", "| log |  | 0.0625 |"]


def test_a_placed_commit_knows_its_version(tmp_path):
    checkout = tmp_path / "checkout"
    (checkout / "streaming_moments").mkdir(parents=True)
    (checkout / "streaming_moments" / "__init__.py").write_text("here = True\n")
    project = {"name": "streaming-moments", "version": "0.9.1", "dependencies": ["click"]}
    placed(checkout, tmp_path / "commit", project)
    program = (
        "from importlib.metadata import version; import streaming_moments; "
        "print(version('streaming-moments'), streaming_moments.here)"
    )
    command = [sys.executable, "-c", program]
    environment = {"PYTHONPATH": str(tmp_path / "commit")}
    told = subprocess.check_output(command, env=environment, cwd=tmp_path, text=True)
    assert told.split() == ["0.9.1", "True"]


def test_extras_of_the_cases_are_required_where_a_commit_has_them():
    project = tomllib.loads((HERE.parents[2] / "pyproject.toml").read_text())["project"]
    asked = " ".join(requirements(project))
    assert "uvicorn" in asked
    assert "scikit-learn" in asked
    assert requirements({"dependencies": ["click"]}) == ["click"]
