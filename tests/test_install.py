"""What is built installs without the clone, and works where nothing else of it is."""

import os
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


def ran(*command, cwd):
    done = subprocess.run(
        [str(one) for one in command],
        cwd=cwd,
        env=without_the_clone(),
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
    """The folder of both files: the wheel is built of the sdist."""
    place = tmp_path_factory.mktemp("dist")
    ran(sys.executable, "-m", "build", "--outdir", place, source, cwd=place)
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


@pytest.fixture(params=["wheel", "sdist", "editable"])
def installed(request, built, source, tmp_path):
    """Python of a fresh environment; what the package needs is read where it is installed here."""
    place = tmp_path / "environment"
    venv.create(place, symlinks=os.name != "nt")
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    told = ran(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
    # a path alone: what leads from there to the clone is not followed
    needed = {sysconfig.get_path(one) for one in ("purelib", "platlib")}
    Path(told.strip(), "needed.pth").write_text("\n".join(sorted(needed)))
    what = {"wheel": [built / WHEEL], "sdist": [built / SDIST], "editable": ["-e", source]}
    # the pip of this environment serves that one: each copy of pip takes seconds to unpack
    pip = sys.executable, "-m", "pip", "--python", python
    ran(*pip, "install", "--quiet", "--no-deps", *what[request.param], cwd=tmp_path)
    return request.param, python


@pytest.mark.long
def test_it_installs_and_works_in_a_fresh_environment(installed, source, tmp_path):
    how, python = installed
    place = ran(python, "-c", PLACES, cwd=tmp_path).strip()
    assert Path(place).is_relative_to(source if how == "editable" else python.parent.parent)
    command = python.parent / "streaming-moments"
    assert "update" in ran(command, "--help", cwd=tmp_path)
    assert VERSION in ran(command, "--version", cwd=tmp_path)
    if how != "wheel":
        return  # of the same files; each environment compiles its kernels anew
    assert ran(python, "-c", ESTIMATOR, cwd=tmp_path) == "(500, 2)\n"
    lines = [f"{'sea ship sail' if n % 2 else 'law court judge'} {n % 7} wind" for n in range(300)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    ran(command, "create", "store", "a.txt", "--max-topics", "2", cwd=tmp_path)
    ran(command, "update", "store", "a.txt", cwd=tmp_path)
    assert "300" in ran(command, "status", "store", cwd=tmp_path)
