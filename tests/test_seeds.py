"""The tests draw the same examples each time, and others where a seed asks for them."""

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
DRAWS = """
from campaigns import CAMPAIGNS
from hypothesis import given, settings, strategies as st

DRAWN = []

@settings(max_examples=20)
@given(st.integers())
def test_drawn(number):
    DRAWN.append(number)

def test_told(request):
    print(request.config.stash[CAMPAIGNS].seed, DRAWN)
"""
# Runs these tests once for each seed, each in a fork that has loaded what all need and no more:
# conftest.py reads the seed.
RUNS = """
import os, random, sys
import hypothesis.strategies, lighter_memory, lighter_s3, pytest

for seed in sys.argv[1:]:
    forked = os.fork()
    if not forked:
        os.environ.update({} if seed == "unset" else {"SEED": seed})
        random.seed()
        code = pytest.main(["-sq", "-p", "conftest", "-p", "no:cacheprovider"])
        sys.stdout.flush()
        os._exit(code)
    assert os.waitpid(forked, 0)[1] == 0
"""


def drawn(folder, *seeds):
    """The seed and the examples of each run.

    The processes of each call have another hash of texts.
    """
    path = os.pathsep.join([str(TESTS), str(TESTS / "faults")])
    kept = ("SEED", "STREAMING_MOMENTS_FAULTS", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS")
    environment = {name: text for name, text in os.environ.items() if name not in kept}
    ran = subprocess.run(
        [sys.executable, "-c", RUNS, *seeds],
        cwd=folder,
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = [line for line in ran.stdout.splitlines() if "[" in line and "%" not in line]
    return [(int(seed), json.loads(rest)) for seed, rest in map(parted, told)]


def parted(line):
    return line.lstrip(".").split(" ", 1)


def test_examples_are_the_same_each_time_and_others_by_a_seed(tmp_path):
    (tmp_path / "test_draws.py").write_text(DRAWS)
    usual, seventh, eighth = drawn(tmp_path, "unset", "7", "8")
    unasked, again, (seed, _) = drawn(tmp_path, "", "7", "random")
    assert (usual, seventh) == (unasked, again)
    assert seventh[0] == 7
    assert len({tuple(examples) for _, examples in (usual, seventh, eighth)}) == 3
    assert seed != usual[0]
