"""A new installation: what a fit and commands compile, and the line that says so."""

import json
import os
import random
import subprocess
import sys
from collections import Counter

COMMANDS = """
import io, json, sys
from unittest.mock import patch

from numba.core import event
from streaming_moments import Basis, MomentStatistics, fit
from streaming_moments.compiling import say_compiling
from streaming_moments.pipelines.command_line.entry import cli
from streaming_moments.synthetic import lda_corpus

compiled = []


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Listener(event.Listener):
    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        if kernel.__module__.startswith("streaming_moments."):
            compiled.append(f"{kernel.__module__}.{kernel.__name__}")

    def on_end(self, event):
        pass


event.register("numba:compile", Listener())
sys.ps1 = ">>> "  # someone sits before it
batch = lda_corpus(300, n_words=60, n_topics=2).batch
model = fit(MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=4)), n_topics=2)
model.transform(batch)
fitted = len(compiled)
del sys.ps1
# as in another process, which reads the kernels above
say_compiling.cache_clear()
with patch.object(sys, "stderr", Terminal()) as terminal:
    for command in json.loads(sys.argv[1]):
        cli(command, standalone_mode=False)
print("\\n" + json.dumps([compiled[:fitted], compiled[fitted:], terminal.getvalue()]))
"""
SAID = "compiling kernels (once)"


def test_a_first_fit_and_first_commands_compile_each_kernel_once_and_say_so_once(tmp_path):
    draw = random.Random(0)
    parts = ["sea", "ship", "sail", "wind"], ["law", "court", "judge", "wind"]
    lines = [" ".join(draw.choices(parts[number % 2], k=20)) for number in range(300)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    commands = [
        ["create", "store", "a.txt", "--max-topics", "2"],
        ["update", "store", "a.txt"],
        ["refit", "store", "--topics", "2"],
        ["transform", "store", "a.txt", "--output", "proportions"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=tmp_path,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    by_fit, by_commands, shown = json.loads(done.stdout.splitlines()[-1])
    assert len(by_fit) > 10
    assert len(by_commands) > 2
    compiled = Counter(by_fit + by_commands)
    assert set(compiled.values()) == {1}, "of one kind of arguments each"
    assert done.stderr.count(SAID) == shown.count(SAID) == 1
