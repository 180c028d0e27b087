"""The workflows of CI name what is there, run what they promise, and publish nothing unasked."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in FOLDER.glob("*.yml")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def steps(name):
    for job in WORKFLOWS[name]["jobs"].values():
        yield from job["steps"]


@pytest.mark.skipif(not shutil.which("actionlint"), reason="no actionlint on PATH")
def test_actionlint_has_nothing_to_say():
    ran = subprocess.run(["actionlint"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_a_workflow_runs_is_there(name):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for step in steps(name):
        run = step.get("run", "")
        for path in re.findall(r"\S*\.ci/\w+\.py|tests/\S+\.py", run):
            assert (ROOT / path).exists(), run
        assert set(re.findall(r"\bmake (\S+)", run)) <= set(targets), run
        extras = {one for found in re.findall(r"\.\[([\w,]+)\]", run) for one in found.split(",")}
        assert extras <= PROJECT["optional-dependencies"].keys(), run
    script = runpy.run_path(str(ROOT / ".ci" / "quick.py"))
    for told in script["QUICK"] + script["WIDE"]:
        path, _, name = told.partition("::")
        assert (ROOT / path).exists(), told
        assert not name or f"def {name}(" in (ROOT / path).read_text(), told


def test_each_job_may_read_alone_and_ends():
    for workflow in WORKFLOWS.values():
        assert workflow["permissions"] == {"contents": "read"}
        assert all(job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())


def test_each_version_that_is_promised_runs_on_each_system():
    matrix = WORKFLOWS["test"]["jobs"]["quick"]["strategy"]["matrix"]
    promised = [
        one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)
    ]
    assert matrix["python"] == promised
    assert f">={promised[0]}" == PROJECT["requires-python"]
    assert [one.split("-")[0] for one in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert "schedule" in WORKFLOWS["prereleases"][True]  # what YAML makes of "on"


def test_a_browser_is_required_in_ci():
    [test] = [one for one in steps("test") if one.get("run") == "make test"]
    assert test["env"]["REQUIRE_BROWSER"] == "1"


def test_the_site_is_built_in_ci_with_warnings_as_errors():
    runs = [one.get("run") for one in WORKFLOWS["test"]["jobs"]["site"]["steps"]]
    assert "make docs" in runs
    [recipe] = re.findall(r"^docs: (?:.*\n)((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert "--fail-on-warning" in recipe
    assert ".[docs]" in recipe


@pytest.mark.parametrize(("required", "outcome"), [("", "1 skipped"), ("1", "1 error")])
def test_a_test_of_pages_fails_where_a_browser_is_required_and_none_is(tmp_path, required, outcome):
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "test_page.py").write_text("def test_page(chromium):\n    pass\n")
    for name in ("conftest.py", "browser_fixtures.py"):
        (tmp_path / name).write_text((ROOT / "tests" / name).read_text())
    environment = {**os.environ, "PATH": str(tmp_path), "REQUIRE_BROWSER": required}
    environment |= {"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
    paths = [tmp_path, ROOT, ROOT / "tests" / "faults", ROOT / "tests" / "storage"]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    command = [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*command, str(tmp_path)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert outcome in ran.stdout, ran.stdout + ran.stderr


def test_other_systems_skip_what_needs_linux(tmp_path):
    told = {**os.environ, "STREAMING_MOMENTS_SYSTEM": "win32"}
    command = [sys.executable, "-m", "pytest", "tests/storage/log/test_locks.py", "-rs"]
    ran = subprocess.run(
        command, cwd=ROOT, env=told, capture_output=True, text=True, timeout=120, check=True
    )
    assert "needs Linux, this is win32" in ran.stdout
    assert "passed" not in ran.stdout


def test_nothing_is_published_until_it_is_switched_on():
    publish = WORKFLOWS["release"]["jobs"]["publish"]
    assert publish["if"] == "vars.PUBLISH == 'true'"
    assert publish["environment"] == "pypi"
    others = [job for name, job in WORKFLOWS["release"]["jobs"].items() if name != "publish"]
    assert all("permissions" not in job for job in others)


def release(tag, root):
    script = root / ".ci" / "release.py"
    return subprocess.run([sys.executable, script, tag], capture_output=True, text=True, timeout=60)


def test_a_release_is_of_the_version_and_says_what_is_new(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "release.py", tmp_path / ".ci")
    project = (ROOT / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(project)
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 9.0.0\n\nnew\n\n## 0.1.0\n\nold\n")
    version = PROJECT["version"]
    assert "the tag is v9.0.0" in release("v9.0.0", tmp_path).stderr
    assert "OWNER" in release(f"v{version}", tmp_path).stderr
    (tmp_path / "pyproject.toml").write_text(project.replace("/OWNER/", "/somebody/"))
    assert f"no section {version}" in release(f"v{version}", tmp_path).stderr
    text = f"# Changes\n\n## [{version}] - 2030-01-01\n\n### Added\n\n- new\n\n## 0.1.0\n\nold\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    assert release(f"v{version}", tmp_path).stdout == "### Added\n\n- new\n"


def test_the_version_is_the_same_wherever_it_is_written():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == PROJECT["version"]
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert re.search(
        rf"^## \[?{re.escape(PROJECT['version'])}\]?", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    Version(PROJECT["version"])
