"""Shards of odd shapes counted with little memory: no more than the budget is ever held."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

# its own high-water mark; what `wait4` tells has that of the process it was forked from
UPDATE = """
import re, sys
from pathlib import Path
from streaming_moments.pipelines.command_line.entry import main

try:
    main(["update", *sys.argv[1:], "--memory", "600MB"])
finally:
    print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
BUDGET = 600 * 10**6
POLICY = TokenPolicy()
TERMS = tuple(f"{a}{b}{c}" for a in "lmnrst" for b in "aeiou" for c in "abcdefghij")
DOCUMENT = " ".join(TERMS)


def text(path, *pieces):
    with open(path, "w") as file:
        file.writelines(pieces)


def repeated(path, rows, **options):
    """One row group of so many rows of one text."""
    column = pa.array([DOCUMENT * 3], pa.large_string()).take(pa.array(np.zeros(rows, np.int64)))
    table = pa.table({"text": column})
    pq.write_table(table, path, compression="zstd", row_group_size=rows, **options)


def wide(path, columns):
    numbers = {f"c{number}": pa.array([1], pa.int8()) for number in range(columns)}
    pq.write_table(pa.table({**numbers, "text": [DOCUMENT]}), path)


LONG_LINE, COUNTED = "line 1 is above", "counted 1 shards"
SHARDS = {
    "line.txt": (lambda path: text(path, *["law sea " * 1_000_000] * 25), LONG_LINE),
    "line.jsonl": (lambda path: text(path, '{"text": "', "a" * 200_000_000, '"}'), LONG_LINE),
    "columns.parquet": (lambda path: wide(path, 100_000), "the footer takes"),
    "lines.txt": (lambda path: text(path, DOCUMENT, "\n" * 10_000_000), COUNTED),
    "dictionary.parquet": (lambda path: repeated(path, 600_000), COUNTED),
    "plain.parquet": (lambda path: repeated(path, 600_000, use_dictionary=False), COUNTED),
    "page.parquet": (
        lambda path: repeated(path, 600_000, use_dictionary=False, data_page_size=1 << 30),
        "has pages of up to",
    ),
}
SHORT = ("line.txt",)


@pytest.fixture
def store(tmp_path):
    words = Vocabulary(TERMS, core=len(TERMS), policy=POLICY.fingerprint)
    columns = np.random.default_rng(3).integers(-127, 128, (len(TERMS), 8)).astype(np.int8)
    basis = Basis(columns, len(TERMS), words.fingerprint)
    return MomentStore.create(str(tmp_path / "store"), words, POLICY, basis, ShardFormat()).url


def one_thread():
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])


@pytest.mark.parametrize("name", SHARDS)
def test_no_shard_takes_more_than_the_budget(tmp_path, campaigns, store, name):
    if not campaigns.long and name not in SHORT:
        pytest.skip("in the long form")
    make, expected = SHARDS[name]
    make(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", UPDATE, store, str(tmp_path / name)],
        capture_output=True,
        text=True,
        preexec_fn=one_thread,
        timeout=600,
    )
    assert expected in done.stdout + done.stderr
    peak = int(done.stdout.split()[-1]) << 10
    campaigns.record("peak memory", 1, int(peak <= BUDGET), f"{name}: {peak / 1e6:.0f} MB of 600")
