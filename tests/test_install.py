"""What is built installs without the clone, and works where nothing else of it is."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from locket import lock_file

ROOT = Path(__file__).parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
WHEEL = f"streaming_moments-{VERSION}-py3-none-any.whl"
SDIST = f"streaming_moments-{VERSION}.tar.gz"
PLACES = """
import streaming_moments.storage.store.store
from streaming_moments.pipelines.command_line import entry

print(entry.__file__)
"""
ESTIMATOR = """
from streaming_moments.sklearn import MomentTopics
from streaming_moments.synthetic import lda_corpus

counts = lda_corpus(500, n_words=30, n_topics=2).batch.to_csr()
print(MomentTopics(2).fit_transform(counts).shape)
"""


def without_the_clone(**more):
    leads = ("PYTHONPATH", "VIRTUAL_ENV")
    return {name: text for name, text in os.environ.items() if name not in leads} | more


def ran(*command, cwd, **more):
    done = subprocess.run(
        [str(one) for one in command],
        cwd=cwd,
        env=without_the_clone(**more),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the clone, without its history."""
    place = tmp_path_factory.mktemp("clone")
    ignore = shutil.ignore_patterns("__pycache__", "v0_2", "v1*", ".venv", ".*", "build")
    shutil.copytree(ROOT, place / "source", ignore=ignore)
    return place / "source"


@pytest.fixture(scope="module")
def built(source, tmp_path_factory):
    """The folder of both files, for all processes of tests: pip builds the wheel of the sdist."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    place /= "dist"
    place.mkdir(exist_ok=True)
    with lock_file(place.with_name("dist.lock")):
        if not any(place.iterdir()):
            ran(sys.executable, "-m", "build", "--sdist", "--outdir", place, source, cwd=place)
            # as an installation of the sdist does
            pip = sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"
            ran(*pip, "--wheel-dir", place, place / SDIST, cwd=place)
    assert {path.name for path in place.iterdir()} == {WHEEL, SDIST}
    return place


def test_the_wheel_holds_all_three_packages_under_one_name(built):
    names = zipfile.ZipFile(built / WHEEL).namelist()
    for module in (
        *("py.typed", "models/fit.py", "statistics/counts/kernels/row_kernels.py"),
        *("storage/store/store.py", "pipelines/command_line/entry.py", "testing/laws.py"),
        *("pipelines/reports/templates/report.html", "pipelines/reports/templates/report.css"),
    ):
        assert f"streaming_moments/{module}" in names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"streaming_moments", f"streaming_moments-{VERSION}.dist-info"}
    sources = {
        str(Path("streaming_moments", *([] if top == "streaming_moments" else [top]), inner))
        for top in ("streaming_moments", "storage", "pipelines")
        for inner in (path.relative_to(ROOT / top) for path in (ROOT / top).rglob("*.py"))
    }
    assert {name for name in names if name.endswith(".py")} == sources


def test_tests_stay_out_of_what_is_built(built):
    with tarfile.open(built / SDIST) as archive:
        inside = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert inside <= {
        *("streaming_moments", "storage", "pipelines", "streaming_moments.egg-info"),
        *("pyproject.toml", "setup.py", "setup.cfg", "README.md", "LICENSE", "PKG-INFO"),
        "MANIFEST.in",
    }


@pytest.fixture(params=["wheel", "editable"])
def installed(request, built, source, tmp_path):
    """Python of a fresh environment; what the package needs is read where it is installed here."""
    place = tmp_path / "environment"
    venv.create(place, symlinks=os.name != "nt")
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    told = ran(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
    # a path alone: what leads from there to the clone is not followed
    needed = {sysconfig.get_path(one) for one in ("purelib", "platlib")}
    Path(told.strip(), "needed.pth").write_text("\n".join(sorted(needed)))
    what = [built / WHEEL] if request.param == "wheel" else ["-e", source]
    # the pip of this environment serves that one: each copy of pip takes seconds to unpack
    pip = sys.executable, "-m", "pip", "--python", python
    ran(*pip, "install", "--quiet", "--no-deps", *what, cwd=tmp_path)
    return request.param, python


# commands of one process, as each of its own would load all anew; told of another version of each
# package that numba does not compile with
COMMANDS = """
import json
import sys

import numba
import numpy
import scipy

numpy.__version__ = scipy.__version__ = "2.98.0"
from streaming_moments.pipelines.command_line.entry import cli

for command in json.loads(sys.argv[1]):
    cli(command, standalone_mode=False)
"""
# compiled in the environment, where all other kernels come from the clone
COMPILED = "half_kernels"


def give_kernels(package):
    """Copy to an installed package what numba keeps in the clone for files of the same bytes.

    numba asks for their time, too. A clone that has compiled nothing gives nothing.
    """
    for top in ("streaming_moments", "storage", "pipelines"):
        inside = package if top == package.name else package / top
        for cached in (ROOT / top).rglob("*.nb[ci]"):
            source = cached.parent.with_name(cached.name.partition(".")[0] + ".py")
            copy = inside / source.relative_to(ROOT / top)
            if source.stem == COMPILED:
                continue
            assert copy.read_bytes() == source.read_bytes()
            shutil.copystat(source, copy)
            copy.with_name("__pycache__").mkdir(exist_ok=True)
            shutil.copy(cached, copy.with_name("__pycache__"))


def kernels_used(printed):
    """Files of kernels that a process read, and those that it wrote."""
    found = {"loaded from": set(), "saved to": set()}
    for how, path in re.findall(r"^\[cache\] data (loaded from|saved to) '(.*)'$", printed, re.M):
        found[how].add(Path(path))
    return tuple(found.values())


def commands_of_all_kinds(folder):
    """Arguments of commands that make, fill, fit and read stores of every kind."""
    lines = [f"{'sea ship sail' if n % 2 else 'law court judge'} {n % 7} wind" for n in range(300)]
    (folder / "a.txt").write_text("\n".join(lines))
    yield "create", "store", "a.txt", "--max-topics", "4", "--min-documents", "2"
    yield "update", "store", "a.txt"
    yield "refit", "store", "--topics", "2", "--alpha0", "0.5"
    yield "transform", "store", "a.txt", "--output", "proportions"
    (folder / "s.txt").write_text("abcab bcabc\ncabbc acbac\n" * 30)
    yield "create", "sequences", "s.txt", "--kind", "sequences"
    yield "update", "sequences", "s.txt"
    yield "refit", "sequences", "--model", "hmm", "--topics", "2", "--refine", "2"
    yield "transform", "sequences", "s.txt", "--output", "states"
    (folder / "rows.csv").write_text("a,b\n" + "0.5,1.5\n4.5,0.25\n" * 30)
    ends = "".join(f"{n},{m}\n" for m in range(12) for n in range(m))
    (folder / "ends.csv").write_text("source,target\n" + ends)
    for kind, shard, more in (
        ("vectors", "rows.csv", ("--columns", "a,b")),
        ("edges", "ends.csv", ()),
        ("edges", "ends.csv", ("--sketch-columns", "3")),
    ):
        store = f"{kind}{len(more)}"
        yield "create", store, shard, "--kind", kind, *more
        yield "update", store, shard


@pytest.mark.long
def test_it_installs_and_works_in_a_fresh_environment(installed, source, tmp_path):
    how, python = installed
    place = ran(python, "-c", PLACES, cwd=tmp_path).strip()
    assert Path(place).is_relative_to(source if how == "editable" else python.parent.parent)
    command = python.parent / "streaming-moments"
    assert "update" in ran(command, "--help", cwd=tmp_path)
    assert VERSION in ran(command, "--version", cwd=tmp_path)
    if how == "editable":
        return  # of the same files
    package = Path(place).parents[2]
    give_kernels(package)
    logged = {"NUMBA_DEBUG_CACHE": "1"}
    read, written = kernels_used(ran(command, "kernels", cwd=tmp_path, **logged))
    assert any(path.name.startswith(COMPILED) for path in written)
    ahead = read | written
    assert any(path.name.startswith("token_kernels") for path in ahead)
    assert all(path.is_relative_to(package) for path in ahead)
    page = (ROOT / "docs" / "start" / "installation.md").read_text()
    [said] = re.findall(r"takes .* CPU time and stores ([\d.]+) MB", page)
    # of kernels that others hold inside, 4 % of the bytes, none is read where those are
    beside = {path.with_name(re.sub(r"\d+\.nbc$", "nbi", path.name)) for path in ahead}
    left = sum(path.stat().st_size for path in ahead | beside)
    assert left / 1e6 == pytest.approx(float(said), rel=0.1)
    # an upgrade of all else: other versions of packages, and of all files without a kernel
    for path in package.rglob("*.py"):
        source = path.read_text()
        if "@kernel(" not in source:
            path.write_text(source + "\n# another version\n")
    commands = json.dumps(list(commands_of_all_kinds(tmp_path)))
    printed = ran(python, "-c", COMMANDS + ESTIMATOR, commands, cwd=tmp_path, **logged)
    assert printed.endswith("\n(500, 2)\n")
    read, _ = kernels_used(printed)
    assert read
    assert read <= ahead
    assert "saved to" not in printed, "what was compiled ahead is compiled no more"
    assert "300" in ran(command, "status", "store", cwd=tmp_path)
