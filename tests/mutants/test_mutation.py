"""The tool that looks for lines that no test holds."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from covering import Coverage, Ran
from mutation import mutants_of
from reviewed import reviewed, stale

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
AREA = """def area(width, height):
    if width < 0:
        raise ValueError(width)
    return width * height
"""
TEST = """import subprocess
import sys

import pytest
from streaming_moments.storage.area import area

def test_area():
    assert area(2, 3) == 6
"""
REFUSED = """    assert area(0, 1) == 0
    with pytest.raises(ValueError):
        area(-1, 1)
"""
EXAMPLES = """import doctest

from streaming_moments.storage import area

def test_examples():
    assert doctest.testmod(area).failed == 0
"""
LOOP = """def area(width, height):
    total = 0
    while width > 0:
        width -= 1
        total += height
    return total
"""
LOOPED = """import time

from streaming_moments.storage.area import area

class Slow(int):
    # a mutant without end counts down in vain, and takes no time of the processor
    def slowly(self, other, counted):
        time.sleep(0.005)
        return Slow(counted(int(self), other))

    def __sub__(self, other):
        return self.slowly(other, int.__sub__)

    def __add__(self, other):
        return self.slowly(other, int.__add__)

    def __gt__(self, other):
        return bool(self.slowly(other, int.__gt__))

    def __ge__(self, other):
        return bool(self.slowly(other, int.__ge__))

def test_area():
    assert area(Slow(2), 3) == 6
    assert area(Slow(1), 3) == 3
"""
REVIEWED = """[[equivalent]]
path = "storage/area.py"
within = "area"
before = "{before}"
after = "width <= 0"
reason = "an area of no width is 0"
"""
IN_PROCESSES = """
def test_command():
    code = "from streaming_moments.storage.area import area; area(-1, 2)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert b"ValueError: -1" in ended.stderr

def test_nothing():
    pass

def test_of_none():
    assert area(0, 1) == 0
"""


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path):
    """A project of one module, whose last commit added two lines."""
    for name in ("streaming_moments", "storage", "tests/storage"):
        (tmp_path / name).mkdir(parents=True)
    beside = "import os\n\n__path__.append(os.path.dirname(__path__[0]))\n"
    (tmp_path / "streaming_moments" / "__init__.py").write_text(beside)
    (tmp_path / "storage" / "__init__.py").touch()
    area = tmp_path / "storage" / "area.py"
    area.write_text("".join(line + "\n" for line in AREA.splitlines()[::3]))
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    area.write_text(AREA)
    return tmp_path


def run(project, *arguments):
    """The tool, whose pytests load no plugins that are installed here: the project needs none."""
    return subprocess.run(
        [sys.executable, HERE, *arguments],
        cwd=project,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def ran(project, test, *arguments):
    (project / "tests" / "storage" / "test_area.py").write_text(test)
    done = run(project, *(arguments or ("--since", "HEAD")))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_no_test_notices_is_listed_and_only_of_the_changed_lines(project):
    told = ran(project, TEST)
    assert "storage/area.py:3: 'raise ValueError(width)' became 'pass', and no test" in told
    assert "-        raise ValueError(width)\n+        pass\n" in told
    assert "area.py:4" not in told, "line 4 was there before"
    assert (project / "storage" / "area.py").read_text() == AREA


def test_a_test_that_holds_the_change_leaves_no_survivor(project):
    told = ran(project, TEST + REFUSED)
    assert told.splitlines()[-1] == "3 mutants, 3 noticed, 0 survived"


def test_all_lines_of_a_folder_are_mutated_and_a_run_goes_on_where_it_was(project):
    told = ran(project, TEST, "storage")
    assert told.splitlines()[-1] == "5 mutants, 2 noticed, 3 survived"
    assert "| storage/area.py | 5 | 2 | 3 | 0 |" in told
    known = (project / ".mutants" / "outcomes.jsonl").read_text()
    assert ran(project, TEST, "storage").splitlines()[-1] == told.splitlines()[-1]
    assert (project / ".mutants" / "outcomes.jsonl").read_text() == known
    # a survivor is tried again once its tests are others
    told = ran(project, TEST + REFUSED, "storage")
    assert told.splitlines()[-1] == "5 mutants, 5 noticed, 0 survived"


def test_a_sample_is_drawn_by_its_seed(project):
    two = ("storage", "--sample", "2", "--seed")
    first = ran(project, TEST, *two, "1")
    assert "2 of 5 mutants, seed 1" in first
    assert ran(project, TEST, *two, "1").splitlines()[3:] == first.splitlines()[5:]


def test_a_mutant_that_hangs_is_noticed(project):
    (project / "storage" / "area.py").write_text(LOOP)
    told = ran(project, LOOPED, "storage", "--slack", "3")
    assert told.splitlines()[-1].endswith(" 0 survived")


def test_each_reviewed_mutant_of_the_project_can_still_be_made():
    changes = reviewed(PROJECT)
    sources = {one.path: (PROJECT / one.path).read_text() for one in changes}
    lines = set(range(1, 100_000))
    every = [one for path, text in sources.items() for one in mutants_of(path, text, lines)]
    assert changes
    assert stale(changes, every) == []


def test_reviewed_mutants_are_left_out_until_the_source_is_another(project):
    (project / "tests" / "mutants").mkdir()
    file = project / "tests" / "mutants" / "equivalent.toml"
    file.write_text(REVIEWED.format(before="width < 0"))
    told = ran(project, TEST, "storage")
    assert "| storage/area.py | 4 | 2 | 2 | 1 |" in told
    file.write_text(REVIEWED.format(before="width < 1"))
    done = run(project, "storage")
    assert done.returncode == 1
    assert "storage/area.py: no mutant makes 'width <= 0' of 'width < 1'" in done.stderr


def test_examples_of_docstrings_are_tests_of_their_lines(project):
    area, example = project / "storage" / "area.py", "    >>> area(2, 3)\n    6\n"
    area.write_text(AREA.replace("height):\n", f'height):\n    """\n{example}    """\n'))
    (project / "tests" / "test_examples.py").write_text(EXAMPLES)
    done = run(project, "storage")
    assert done.stdout.splitlines()[-1] == "5 mutants, 2 noticed, 3 survived", done.stderr


def test_a_failing_test_is_no_kill(project):
    (project / "tests" / "storage" / "test_area.py").write_text(TEST + "    assert 0\n")
    done = run(project, "--since", "HEAD")
    assert done.returncode == 1
    assert "fail without a mutant" in done.stderr


def test_a_mutant_with_which_a_conftest_cannot_be_imported_is_noticed(project):
    conftest = "from streaming_moments.storage.area import area\n\nassert area(2, 3) == 6\n"
    (project / "tests" / "storage" / "conftest.py").write_text(conftest)
    assert "'width * height' became" not in ran(project, TEST, "storage")


def test_what_is_made_as_a_file_is_read_is_known_to_all_its_tests(project):
    begun = TEST.replace("def test_area", "AREA = area(2, 3)\n\ndef test_area")
    made = begun.replace("assert area(2, 3) == 6", "assert AREA == 6")
    told = ran(project, made, "storage")
    assert "no test runs the line" in told
    assert "'width * height' became" not in told


def test_tests_are_known_by_the_lines_that_they_run_in_any_process(project):
    """One calls the function, one a process that does, one neither."""
    told = ran(project, TEST + IN_PROCESSES, "storage")
    assert told.splitlines()[-1] == "5 mutants, 5 noticed, 0 survived"
    [kept] = (project / ".mutants").glob("coverage-*.json")
    lines = {
        one["name"].partition("::")[2]: one["lines"].get("storage/area.py", [])
        for one in json.loads(kept.read_text())["tests"]
    }
    assert lines == {
        "test_area": [2, 4],
        "test_command": [2, 3],
        "test_nothing": [],
        "test_of_none": [2, 4],
    }


@pytest.mark.parametrize("path", ["storage/nothing", "nothing.py"])
def test_a_folder_without_sources_is_named(project, path):
    done = run(project, path)
    assert (done.returncode, path in done.stderr) == (1, True)


def test_every_mutant_is_python_and_differs_in_its_line():
    """Of this file, each way of changing something, and letters of several bytes."""
    source = Path(__file__).read_text() + "\nnames = ['ü' 'ß', -1 if not 2 + 3 // 4 else 5.0]\n"
    lines = set(range(1, len(source.splitlines()) + 1))
    mutants = list(mutants_of("a.py", source, lines))
    assert len(mutants) > 50
    original = ast.dump(ast.parse(source))
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.source)) != original, mutant


def test_the_test_beside_a_file_comes_first_then_the_fastest():
    """Files of one name in several folders have tests of one name."""
    seconds = {
        "tests/store/test_area.py::test_other": 0.1,
        "tests/storage/test_area.py::test_slow": 3.0,
        "tests/storage/test_area.py::test_fast": 2.0,
        "tests/storage/test_area.py::test_long": 9.0,
        "tests/test_users.py::test_use": 0.2,
        "tests/test_users.py::test_none": 0.0,
    }
    tests = [
        Ran(name, time, {"storage/area.py": [] if "none" in name else [2]})
        for name, time in seconds.items()
    ]
    found = Coverage(tuple(tests)).of("storage/area.py", 2, AREA, 5.2)
    names = ["storage/test_area.py::test_fast", "storage/test_area.py::test_slow"]
    names += ["store/test_area.py::test_other"]
    assert [ran.name for ran in found] == [f"tests/{name}" for name in names]
