"""What a first use compiles, who is told of it, and how long it is kept."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
# another version of each package that numba does not compile with
FIRST_USE = """
import json, logging, sys
import numba, numpy, scipy

numpy.__version__ = scipy.__version__ = sys.argv[1]
if "watched" in sys.argv:
    sys.ps1 = ">>> "
if "logged" in sys.argv:
    logging.basicConfig(level=logging.INFO)
from streaming_moments import Basis, CountBatch, MomentStatistics, fit
from streaming_moments.synthetic import lda_corpus

compiled = []


class Listener(numba.core.event.Listener):
    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        if kernel.__module__.startswith("streaming_moments."):
            compiled.append(f"{kernel.__module__}.{kernel.__name__}")

    def on_end(self, event):
        pass


numba.core.event.register("numba:compile", Listener())
if "fitted" in sys.argv:
    batch = lda_corpus(300, n_words=60, n_topics=2).batch
    model = fit(MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=4)), n_topics=2)
    model.transform(batch)
assert CountBatch.from_rows([0, 2], [1, 0], None, 2).documents == 1
print(json.dumps(compiled))
"""
SAID = "compiling kernels (once)"


def first_use(site, kernels, *arguments):
    """Kernels that a process compiles, and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE, *arguments],
        cwd=site,
        env=os.environ | {"NUMBA_CACHE_DIR": str(kernels), "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return Counter(json.loads(done.stdout)), done.stderr


def test_a_first_use_compiles_each_kernel_once_says_so_and_it_is_kept(tmp_path):
    site, kernels = tmp_path / "site", tmp_path / "kernels"
    shutil.copytree(
        ROOT / "streaming_moments",
        site / "streaming_moments",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    compiled, said = first_use(site, kernels, "2.98.0", "watched", "fitted")
    assert len(compiled) > 10
    assert set(compiled.values()) == {1}, "of one kind of arguments each"
    assert said.count(SAID) == 1
    # an upgrade: other versions of packages, and of all files of this one without a kernel
    for path in site.rglob("*.py"):
        source = path.read_text()
        if "@kernel(" not in source:
            path.write_text(source + "\n# another version\n")
    files = {path: path.stat().st_mtime_ns for path in kernels.rglob("*") if path.is_file()}
    again, said = first_use(site, kernels, "2.99.0", "watched", "fitted")
    assert not again
    assert SAID not in said
    assert files == {path: path.stat().st_mtime_ns for path in kernels.rglob("*") if path.is_file()}


def test_what_is_compiled_is_logged_and_only_who_sits_before_it_is_told(tmp_path):
    compiled, said = first_use(ROOT, tmp_path / "first", "2.98.0", "logged", "watched")
    assert len(compiled) > 0
    assert said.count(f"INFO:streaming_moments.kernels:{SAID}") == said.count(SAID) == 1
    compiled, said = first_use(ROOT, tmp_path / "second", "2.98.0")
    assert len(compiled) > 0
    assert SAID not in said
