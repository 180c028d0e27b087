"""The tool that looks for lines that no test holds."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from mutation import mutants_of

HERE = Path(__file__).parent
AREA = """def area(width, height):
    if width < 0:
        raise ValueError(width)
    return width * height
"""
TEST = """import pytest
from streaming_moments.storage.area import area

def test_area():
    assert area(2, 3) == 6
"""
REFUSED = """    assert area(0, 1) == 0
    with pytest.raises(ValueError):
        area(-1, 1)
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


def ran(project, test):
    (project / "tests" / "storage" / "test_area.py").write_text(test)
    run = subprocess.run(
        [sys.executable, HERE, "HEAD"], cwd=project, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_what_no_test_notices_is_listed_and_only_of_the_changed_lines(project):
    told = ran(project, TEST)
    assert "storage/area.py:3: 'raise ValueError(width)' became 'pass'" in told
    assert "area.py:4" not in told, "line 4 was there before"
    assert (project / "storage" / "area.py").read_text() == AREA


def test_a_test_that_holds_the_change_leaves_no_survivor(project):
    told = ran(project, TEST + REFUSED)
    assert told.splitlines()[-1] == "3 mutants, 3 noticed, 0 survived:"


def test_a_failing_test_is_no_kill(project):
    (project / "tests" / "storage" / "test_area.py").write_text(TEST + "    assert 0\n")
    run = subprocess.run(
        [sys.executable, HERE, "HEAD"], cwd=project, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 1
    assert "fail without a mutant" in run.stderr


def test_every_mutant_is_python_and_differs_in_its_line():
    """Of this file, each way of changing something, and letters of several bytes."""
    source = Path(__file__).read_text() + "\nnames = ['ü' 'ß', -1 if not 2 + 3 // 4 else 5.0]\n"
    lines = set(range(1, len(source.splitlines()) + 1))
    mutants = list(mutants_of("a.py", source, lines))
    assert len(mutants) > 50
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(source)), mutant
