"""Shards of odd shapes counted with little memory: no more than the budget is ever held."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measured_commands import BUDGET, bounded

from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

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


LONG_LINE, COUNTED = "line 1 exceeds", "counted 1 shard"
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


@pytest.mark.parametrize("name", SHARDS)
def test_no_shard_takes_more_than_the_budget(tmp_path, campaigns, store, name):
    if not campaigns.long and name not in SHORT:
        pytest.skip("in the long form")
    make, expected = SHARDS[name]
    make(tmp_path / name)
    done = bounded("update", store, tmp_path / name)
    assert expected in done.output
    note = f"{name}: {done.peak / 1e6:.0f} MB of 600"
    campaigns.record("peak memory", 1, int(done.peak <= BUDGET), note)
