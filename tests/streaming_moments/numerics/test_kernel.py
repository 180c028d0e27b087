"""Who is told that a first use compiles."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FIRST_USE = """
import json, logging, sys
import numba

if "watched" in sys.argv:
    sys.ps1 = ">>> "
if "logged" in sys.argv:
    logging.basicConfig(level=logging.INFO)
from streaming_moments import CountBatch

compiled = []


class Listener(numba.core.event.Listener):
    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        if kernel.__module__.startswith("streaming_moments."):
            compiled.append(f"{kernel.__module__}.{kernel.__name__}")

    def on_end(self, event):
        pass


numba.core.event.register("numba:compile", Listener())
assert CountBatch.from_rows([0, 2], [1, 0], None, 2).documents == 1
print(json.dumps(compiled))
"""
SAID = "compiling kernels (once)"


def first_use(kernels, *arguments):
    """Kernels that a process compiles, and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE, *arguments],
        cwd=ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(kernels), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_what_is_compiled_is_logged_and_only_who_sits_before_it_is_told(tmp_path):
    compiled, said = first_use(tmp_path / "first", "logged", "watched")
    assert len(compiled) > 0
    assert said.count(f"INFO:streaming_moments.kernels:{SAID}") == said.count(SAID) == 1
    compiled, said = first_use(tmp_path / "second")
    assert len(compiled) > 0
    assert SAID not in said
