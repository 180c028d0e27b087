"""A refit of many daily commits beside one of a single commit of the same documents.

`python tests/benchmarks/commits.py [--commits 1000]` makes a store of a commit a day, one whose
segments are merged, and one of a single commit, and fits each in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from streaming_moments import Basis, MomentStatistics
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.corpora import lda_corpus

A_DAY, WORDS, CORE, TOPICS, RUNS = 40, 1_000, 500, 10, 3
FIRST = date(2024, 1, 1)


def counted(url: str, batch: CountBatch, basis: Basis, words: Vocabulary, days: int) -> MomentStore:
    """A store of all documents of a batch, so many days in a commit."""
    store = MomentStore.create(url, words, None, basis, ShardFormat())
    for start in range(0, batch.documents, A_DAY * days):
        part = batch.select(start, min(start + A_DAY * days, batch.documents))
        statistics, first = MomentStatistics.of(part, basis), FIRST + timedelta(start // A_DAY)
        shard = ShardRecord(f"{start}", 1, f"sha256:{start}", part.documents, part.tokens)
        dates = DateRange(first, first + timedelta(part.documents // A_DAY - 1))
        store = store.append(store.write_segment(statistics, [shard], dates))
    return store


def refit(url: str, number: int) -> tuple[float, float]:
    """Wall clock and processor seconds of a refit in a process of its own."""
    asked = ("refit", url, "--topics", str(TOPICS), "--alpha0", "0.1", "--name", f"m{number}")
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "streaming_moments", *asked], check=True, capture_output=True
    )
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return ended - began, used


def main(commits: int, place: Path) -> None:
    """Make the stores, fit each several times in turn, and print a line of JSON for each."""
    corpus = lda_corpus(A_DAY * commits, WORDS, TOPICS, mean_length=60, seed=1)
    words = Vocabulary(tuple(f"w{number:04}" for number in range(WORDS)), CORE)
    batch = replace(corpus.batch, vocabulary=words.fingerprint)
    basis = Basis.from_pilot(batch.select(0, min(4_000, batch.documents)), 16, core=CORE)
    basis = replace(basis, vocabulary=words.fingerprint)
    began = time.perf_counter()
    plain = counted(f"{place}/plain", batch, basis, words, 1)
    print(f"{commits} commits in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    shutil.copytree(plain.url, place / "merged")
    began = time.perf_counter()
    with connect() as cluster:
        opened = MomentStore.open(f"{place}/merged")
        merged = compact_when_many(opened, COMPACT_AFTER, Run(cluster))
    merging = time.perf_counter() - began
    one = counted(f"{place}/one", batch, basis, words, commits)
    seconds: dict[str, list[tuple[float, float]]] = {"one": [], "merged": [], "plain": []}
    for number in range(RUNS):
        for name, own in seconds.items():
            if name != "plain" or not number:
                own.append(refit(f"{place}/{name}", number))
    stores = {"one": one, "merged": merged, "plain": plain}
    topics = [store.latest().load_model("m0").topics for store in stores.values()]
    assert all(np.array_equal(topics[0], other) for other in topics)
    for name, store in stores.items():
        wall, used = np.median(seconds[name], axis=0)
        files = [path.stat().st_size for path in Path(store.url).rglob("*") if path.is_file()]
        told = {
            "store": name,
            "segments": len(store.commit.segments),
            "segments_read": len(store.parts),
            "seconds": round(wall, 2),
            "cpu_seconds": round(used, 2),
            "mebibytes": round(sum(files) / 2**20),
            **({"merging_seconds": round(merging, 1)} if name == "merged" else {}),
        }
        print(json.dumps(told))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=1_000)
    arguments = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        main(arguments.commits, Path(folder))
