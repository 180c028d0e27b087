"""Processes that start together compile into one cache, which later ones read."""

import json
import os
import subprocess
import sys

PROCESS = """
import json, sys
import numpy as np
from streaming_moments.statistics.counts.kernels import wide_pairs as kernels

print("ready", flush=True)
sys.stdin.readline()
# two words, which one document has both
runs, documents, words = np.array([0, 1, 2]), np.zeros(2, np.int32), np.arange(2, dtype=np.int32)
together = np.zeros((2, 2), dtype=np.int64)
kernels.add_codocuments(0, 1, runs, documents, np.array([0, 2]), words, together)
stats = kernels.add_codocuments.stats
counts = sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
print(json.dumps([together.tolist(), *counts]))
"""


def test_processes_that_start_together_share_one_cache(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def start():
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-c", PROCESS], stdin=pipe, stdout=pipe, text=True, env=environment
        )

    together = [start() for _ in range(4)]
    assert [process.stdout.readline() for process in together] == ["ready\n"] * 4
    for process in together:
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [json.loads(process.communicate(timeout=100)[0]) for process in together]
    assert [sums for sums, _, _ in found] == [[[1, 1], [1, 1]]] * 4
    assert any(misses for _, _, misses in found)
    assert list(tmp_path.rglob("*.nbc"))
    assert not list(tmp_path.rglob("*.tmp*"))
    [later, _] = start().communicate("go\n", timeout=100)
    assert json.loads(later.splitlines()[1]) == [[[1, 1], [1, 1]], 1, 0]
