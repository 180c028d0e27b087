"""The mathematics knows numpy, scipy and numba: no path, no clock, no network, no cluster.

Import-linter sees imports that are written as such; here are also those that are made by a name,
and what is loaded in a fresh process.
"""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from assembled import assemble

from streaming_moments.lazy_imports import exports_of

ROOT = Path(__file__).parent.parent
MAIN = ROOT / "streaming_moments"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
# of the standard library what neither asks the machine nor the hour; hashes, and forms of text
PURE = {
    *("__future__", "collections", "concurrent", "copy", "dataclasses", "functools", "hashlib"),
    *("html", "inspect", "itertools", "json", "math", "numbers", "operator", "statistics", "sys"),
    *("string", "types", "typing", "uuid", "warnings"),
}
NUMERIC = {"numpy", "scipy", "numba", "llvmlite", "streaming_moments"}
ROOMS = {
    **dict.fromkeys(("arguments", "deprecation", "errors"), PURE | NUMERIC),
    # it finds the known name that is near a wrong one
    "printing": PURE | NUMERIC | {"difflib"},
    # tables, frames and plots are made where someone asks for them
    "columns": PURE | NUMERIC | {"pandas", "pyarrow"},
    "plots": PURE | NUMERIC | {"matplotlib"},
    **dict.fromkeys(("numerics", "decompositions", "statistics", "models"), PURE | NUMERIC),
    **dict.fromkeys(("quality", "synthetic"), PURE | NUMERIC),
    "sklearn": PURE | NUMERIC | {"sklearn"},
    # it loads what it is told of this package
    "lazy_imports": PURE | NUMERIC | {"importlib", "re", "?"},
    # it says in the log what a new installation waits for
    "compiling": PURE | {"logging", "streaming_moments"},
    # it writes lines and seconds to the log
    "progress": PURE | {"logging", "time"},
    # it settles what a process does while it starts
    "startup": PURE | {"os", "signal", "threading"},
}
LOADERS = ("import_module", "__import__", "LazyModule", "find_spec", "exec", "eval", "open")
HEAVY = ("dask", "distributed", "zarr", "fsspec", "pyarrow", "pandas", "click", "pydantic")


def loaded_by(source):
    """Top-level names of all that a file imports, wherever it does; "?" where the name is made."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name.split(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "streaming_moments").split(".")[0]
        elif isinstance(node, ast.Call) and called(node.func) in LOADERS:
            if called(node.func) in ("exec", "eval", "open"):
                yield called(node.func)
                continue
            first = node.args[0] if node.args else None
            told = isinstance(first, ast.Constant) and isinstance(first.value, str)
            yield first.value.split(".")[0] if told else "?"
        elif isinstance(node, ast.Name) and node.id in LOADERS and node.id != "LazyModule":
            # under another name, such as `load = __import__`
            yield node.id if not is_called(node, source) else "streaming_moments"


def called(function):
    return getattr(function, "id", getattr(function, "attr", ""))


def is_called(name, source):
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(
        isinstance(call.func, ast.Name)
        and (call.func.lineno, call.func.col_offset) == (name.lineno, name.col_offset)
        for call in calls
    )


def room_of(path):
    return path.relative_to(MAIN).parts[0].removesuffix(".py")


def mathematics():
    files = (path for path in MAIN.rglob("*.py") if room_of(path) in ROOMS)
    return sorted(files)


def test_the_mathematics_loads_nothing_else():
    found = {
        str(path.relative_to(ROOT)): beyond
        for path in mathematics()
        if (beyond := set(loaded_by(path.read_text())) - ROOMS[room_of(path)])
    }
    assert found == {}
    assert len(mathematics()) > 100


def test_every_room_of_the_mathematics_has_its_rule():
    [contract] = [one for one in CONTRACTS["contracts"] if "clock" in one["name"]]
    named = {name.removeprefix("streaming_moments.") for name in contract["source_modules"]}
    assert named | {"compiling", "lazy_imports", "plots", "progress", "startup"} == set(ROOMS)


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("import pandas as pd", "pandas"),
        ("def f():\n    import time", "time"),
        ("from pathlib import Path", "pathlib"),
        ("import requests.adapters", "requests"),
        ("from datetime import datetime", "datetime"),
        ("if TYPE_CHECKING:\n    import dask", "dask"),
        ("import importlib", "importlib"),
        ("from importlib import import_module as load", "importlib"),
        ('import_module("dask.array")', "dask"),
        ('__import__("time")', "time"),
        ('lazy_imports.LazyModule("pyarrow.parquet")', "pyarrow"),
        ('load = __import__\nload("time")', "__import__"),
        ('importlib.import_module("da" + "sk")', "?"),
        ("import_module(name)", "?"),
        ('open("rows.txt")', "open"),
        ('exec("import time")', "exec"),
    ],
)
def test_a_planted_import_is_caught(line, caught):
    source = (MAIN / "statistics/counts/basis.py").read_text()
    assert set(loaded_by(source)) <= ROOMS["statistics"]
    assert set(loaded_by(f"{source}\n{line}\n")) - ROOMS["statistics"] >= {caught}


def test_planted_imports_break_the_contracts(tmp_path):
    """Each contract is a net that catches something."""
    assemble(tmp_path)
    planted = {
        "statistics/counts/basis.py": "import pandas, time, pathlib, requests",
        "quality/diversity.py": "import importlib",
        "models/base.py": "import streaming_moments.pipelines.exit_codes",
        "storage/files/urls.py": "import streaming_moments.storage.store.store",
        "pipelines/jobs/update.py": "import streaming_moments.pipelines.reports.page",
        "statistics/counts/batch.py": "import streaming_moments.statistics.edges",
        "models/fit.py": "def f():\n    import dask",
        "numerics/packing.py": "import streaming_moments.numerics.krylov",
        "numerics/krylov.py": "import streaming_moments.numerics.packing",
    }
    for path, line in planted.items():
        with (tmp_path / "streaming_moments" / path).open("a") as file:
            file.write(f"\n{line}\n")
    linted = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert linted.returncode == 1, linted.stdout + linted.stderr
    told = " ".join(linted.stdout.split())
    for contract in CONTRACTS["contracts"]:
        assert f"{contract['name']} BROKEN" in told, contract["name"]
    for module in ("pandas", "time", "pathlib", "requests", "importlib"):
        assert f"-> {module} " in told, module


LIGHT = """
import sys
import streaming_moments

def loaded():
    return {one.partition(".")[0] for one in sys.modules} & set(HEAVY)

for name in streaming_moments.__all__:
    if name not in OF_PIPELINES and name not in OF_SKLEARN:
        getattr(streaming_moments, name)
for room in ROOMS:
    package = __import__(f"streaming_moments.{room}", fromlist=["x"])
    for name in package.__all__:
        getattr(package, name)
found = loaded()
# which loads pandas of its own, and with it pyarrow
import sklearn.base
theirs = loaded() - found
for name in OF_SKLEARN:
    getattr(streaming_moments, name)
from streaming_moments.synthetic import lda_corpus
counts = lda_corpus(500, n_words=30, n_topics=2).batch.to_csr()
streaming_moments.MomentTopics(2).fit_transform(counts)
print(sorted(loaded() - theirs))
for name in OF_PIPELINES:
    getattr(streaming_moments, name)
print(sorted(loaded() - theirs))
"""
FACES = ("statistics", "statistics.counts", "models", "decompositions", "quality", "synthetic")
EXPORTS = exports_of("streaming_moments")
OF_PIPELINES = [name for name, place in EXPORTS.items() if ".pipelines." in place]
OF_SKLEARN = [name for name, place in EXPORTS.items() if ".sklearn." in place]


def test_the_faces_of_the_mathematics_load_no_cluster_and_no_storage():
    """In a fresh process, each public name, and an estimator that is fitted."""
    assert {"Store", "KindOptions"} <= set(OF_PIPELINES)
    assert len(OF_SKLEARN) == 8
    lists = f"{FACES}, {HEAVY}, {OF_PIPELINES}, {OF_SKLEARN}"
    told = f"ROOMS, HEAVY, OF_PIPELINES, OF_SKLEARN = {lists}\n{LIGHT}"
    ran = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr
    of_mathematics, of_all = map(ast.literal_eval, ran.stdout.splitlines())
    assert of_mathematics == []
    assert {"dask", "distributed", "fsspec"} <= set(of_all), "a heavy face would be seen"


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import streaming_moments
from streaming_moments import sklearn
from streaming_moments.synthetic import lda_corpus, mixtures
for name in sklearn.__all__:
    getattr(sklearn, name)
counts = lda_corpus(500, n_words=30, n_topics=2).batch.to_csr()
print(sklearn.MomentTopics(2).fit_transform(counts).shape)
rows = mixtures.mixture_rows(400, 3, 2, separation=6.0, variances="spherical", seed=1).rows
print(sklearn.MomentGaussianMixture(2).fit(rows).means_.shape)
try:
    streaming_moments.open_store("x")
except ModuleNotFoundError as error:
    print(error)
"""


def test_estimators_work_where_the_packages_of_the_product_are_absent():
    """Installed by --no-deps beside numpy, scipy, numba and scikit-learn."""
    product = {*HEAVY, "numcodecs", "google_crc32c", "rich", "structlog", "tenacity", "jinja2"}
    told = f"HEAVY = {product - {'pandas'}}\n{WITHOUT}"
    ran = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr
    topics, components, refusal = ran.stdout.splitlines()
    assert (topics, components) == ("(500, 2)", "(2, 3)")
    assert "needs the package" in refusal
    assert "run `pip install streaming-moments`, which installs all" in refusal
