"""The wheel, the import contract and the README."""

import ast
import json
import re
import subprocess
import tomllib
from importlib import import_module
from importlib.metadata import requires, version
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from page_scripts import printed_by

import streaming_moments
from streaming_moments.pipelines.command_line.demo import write_decades
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.storage.log.format import INSTALLS, WRITES

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PYPROJECT["project"]["version"]
MAIN = "streaming_moments"
SOURCES = (MAIN, "storage", "pipelines")
FOLDERS = (*SOURCES, "deploy", "docs", "tests", ".ci")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "Makefile")
# Of a decade, some 25 passages each: examples take seconds. The night's gates ask for 1,000.
ADDRESSES, ADDRESSES_OF_NIGHTS = 1, 4
PAPERS = ("CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md")


def test_what_stores_tell_to_install_is_this_version_or_an_earlier_one():
    assert streaming_moments.__version__ == VERSION
    told = [Version(INSTALLS[one]) for one in range(1, WRITES + 1)]
    assert told == sorted(told)
    assert told[-1] <= Version(VERSION)


def test_the_root_holds_nothing_else():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    tops = {name.split("/")[0] for name in tracked}
    assert {top for top in tops if not top.startswith(".")} <= {*FOLDERS, *FILES, *PAPERS}
    # Windows makes no links
    modes = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [line for line in modes if line.startswith("120000")] == []


def test_the_contract_on_the_mathematics_names_every_folder():
    layers, *_, forbidden, _ = PYPROJECT["tool"]["importlinter"]["contracts"]
    assert layers["exhaustive"]
    rooms = {path.stem for path in (ROOT / "streaming_moments").iterdir() if holds_code(path)}
    named = {name.removeprefix("streaming_moments.") for name in forbidden["source_modules"]}
    others = {"__init__", "__main__", "testing", "storage", "pipelines"}
    assert named == rooms - others


def holds_code(path):
    return path.suffix == ".py" or (path / "__init__.py").exists()


@pytest.mark.parametrize("name", SOURCES)
def test_a_folder_is_a_subject(name):
    for folder in (ROOT / name, *filter(Path.is_dir, (ROOT / name).rglob("*"))):
        files = list(folder.glob("*.py"))
        if files:
            assert len(files) <= 17, f"{folder} holds {len(files)} files; make a room of some"
            assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))


@pytest.mark.parametrize("name", SOURCES)
def test_every_face_shows_what_it_says(name):
    for path in (ROOT / name).rglob("__init__.py"):
        parts = path.parent.relative_to(ROOT).parts
        package = import_module(".".join(parts if name == "streaming_moments" else (MAIN, *parts)))
        assert all(hasattr(package, public) for public in getattr(package, "__all__", []))
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            package.nothing  # noqa: B018


BOUNDED = ("s3fs", "aiobotocore", "botocore", "moto")
S3_FAMILY = (*BOUNDED, "boto3")


def floors():
    """Lower bound of each package of the family, as the extras give it."""
    extras = PYPROJECT["project"]["optional-dependencies"]
    asked = [Requirement(line) for line in (*extras["s3"], *extras["test"])]
    return {
        one.name: Version(bound.version)
        for one in asked
        for bound in one.specifier
        if one.name in BOUNDED and bound.operator == ">="
    }


def test_the_packages_of_s3_have_floors_that_end_the_search_for_versions_that_fit():
    """Without a floor pip goes through years of releases of each for every release of another."""
    assert set(floors()) == set(BOUNDED)
    for name, floor in floors().items():
        assert floor <= Version(version(name)), f"{name} {version(name)}: run make install"
    # whoever asks for [s3] and moto of their own is helped by the extra alone
    alone = {Requirement(line).name for line in PYPROJECT["project"]["optional-dependencies"]["s3"]}
    assert {"s3fs", "aiobotocore", "botocore"} <= alone


@pytest.mark.parametrize("name", S3_FAMILY)
def test_what_a_package_of_s3_asks_of_the_others_is_within_their_floors(name):
    for line in requires(name) or ():
        asked = Requirement(line)
        if asked.name not in S3_FAMILY or (asked.marker and not asked.marker.evaluate()):
            continue
        assert Version(version(asked.name)) in asked.specifier, line
        tops = [Version(one.version) for one in asked.specifier if one.operator in ("<", "==")]
        assert all(floors()[asked.name] < top for top in tops if asked.name in BOUNDED), line


def test_boto3_is_left_to_moto():
    """A requirement of our own on it comes first, and its latest fits no aiobotocore."""
    extras = PYPROJECT["project"]["optional-dependencies"]
    named = [Requirement(line).name for extra in extras.values() for line in extra]
    assert "boto3" not in named
    assert any(Requirement(line).name == "boto3" for line in requires("moto") or ())


@pytest.fixture(scope="module")
def decades(tmp_path_factory):
    """Shards of all addresses, one for each decade."""
    return write_decades(tmp_path_factory.mktemp("readme"))


def pages(pattern):
    """The papers of the house that git knows or would take."""
    asked = ["git", "ls-files", "-co", "--exclude-standard", "--", pattern]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in told.stdout.split()]


def blocks(language):
    """Examples in all READMEs."""
    found = re.compile(rf"```{language}\n(.*?)```", re.DOTALL)
    return [text for page in pages("*README.md") for text in found.findall(page.read_text())]


@pytest.fixture
def beside_addresses(request, decades, tmp_path, monkeypatch):
    """The folder in which an example of a README runs; a process of its own would load all anew.

    The examples read shards as `addresses/*.parquet`; here each holds some addresses of a decade.
    """
    some = getattr(request, "param", ADDRESSES)
    (tmp_path / "addresses").mkdir()
    for path in decades[-8:]:
        pq.write_table(pq.read_table(path).slice(0, some), tmp_path / "addresses" / Path(path).name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_command(*arguments):
    """The exit code of a command, as the script of that name gives it."""
    with pytest.raises(SystemExit) as ended:
        main([str(one) for one in arguments])
    return ended.value.code


@pytest.mark.usefixtures("few_blocks", "forked_workers")
@pytest.mark.parametrize("example", blocks("python"))
def test_the_python_examples_of_the_readmes_run(example, beside_addresses, capsys):
    # names that the example gives stay its own
    exec(compile(example, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


def test_every_place_that_contributing_names_is_there():
    named = re.findall(r"`((?:\w+/)+[\w.]*)`", (ROOT / "CONTRIBUTING.md").read_text())
    rooms = ("", "streaming_moments", "storage", "pipelines")
    for place in named:
        assert any((ROOT / room / place).exists() for room in rooms), place
    assert len(named) > 40


def test_every_link_of_the_papers_leads_somewhere():
    # links of the site may lead to pages that its build writes: tests/test_docs.py
    for page in (one for one in pages("*.md") if ROOT / "docs" not in one.parents):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page}: {link}"


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("beside_addresses", [ADDRESSES_OF_NIGHTS], indirect=True)
def test_the_nightly_example_of_the_site_runs(beside_addresses, capsys):
    page = (ROOT / "docs" / "operation" / "night_details.md").read_text()
    example = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    Path("night.toml").write_text(example)
    assert run_command("nightly", "night.toml") == 0, capsys.readouterr()
    capsys.readouterr()
    assert run_command("nightly", "night.toml") == 10, capsys.readouterr()
    assert capsys.readouterr().out == "nothing new; 0 shards counted\n"
    reports = sorted(Path("reports").glob("night-*.json"))
    first, second = (json.loads(path.read_text()) for path in reports)
    assert (first["outcome"], second["outcome"]) == ("published", "nothing new")
    assert len(first["topics"]) in (6, 8)


@pytest.mark.long
@pytest.mark.usefixtures("few_blocks", "beside_addresses")
def test_the_command_line_example_of_the_readme_runs():
    example = next(text for text in blocks("bash") if "streaming-moments create" in text)
    assert "words by relevance" in printed_by(example)
