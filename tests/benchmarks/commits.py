"""Refits and updates of stores of many daily commits beside those of a single commit.

`python tests/benchmarks/commits.py [--commits 1000] [--s3]` counts documents in a commit a day,
merges the segments of copies as updates do, counts the same documents in one commit, and times a
refit of each, updates by the next days and a refit after them, in processes of their own: on a
disk, and on an S3 server of moto, which runs in a process beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import islice, product
from pathlib import Path
from typing import Any

import fsspec
import numpy as np

from streaming_moments import Basis, MomentStatistics
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.corpora import lda_corpus

A_DAY, WORDS, CORE, TOPICS, RUNS = 40, 1_000, 500, 10, 3
FIRST = date(2024, 1, 1)
POLICY = TokenPolicy()


@dataclass(frozen=True)
class Corpus:
    """Documents by day, and what they are counted with."""

    batch: CountBatch
    basis: Basis
    words: Vocabulary

    @classmethod
    def drawn(cls, days: int) -> Corpus:
        """Documents of so many days."""
        batch = lda_corpus(A_DAY * days, WORDS, TOPICS, mean_length=60, seed=1).batch
        named = islice(product(string.ascii_lowercase, repeat=3), WORDS)
        words = Vocabulary(tuple("word" + "".join(one) for one in named), CORE, POLICY.fingerprint)
        batch = replace(batch, vocabulary=words.fingerprint)
        pilot = batch.select(0, min(4_000, batch.documents))
        basis = replace(Basis.from_pilot(pilot, 16, core=CORE), vocabulary=words.fingerprint)
        return cls(batch, basis, words)

    def days(self, first: int, number: int) -> CountBatch:
        """Documents of some days."""
        return self.batch.select(first * A_DAY, (first + number) * A_DAY)

    def text(self, day: int) -> str:
        """Documents of a day, a line each."""
        batch, terms = self.days(day, 1), self.words.terms
        ends = zip(batch.indptr[:-1], batch.indptr[1:], strict=True)
        return "".join(
            " ".join(
                terms[word]
                for word, count in zip(batch.words[a:b], batch.counts[a:b], strict=True)
                for _ in range(count)
            )
            + "\n"
            for a, b in ends
        )


def created(url: str, corpus: Corpus) -> MomentStore:
    """An empty store."""
    return MomentStore.create(url, corpus.words, POLICY, corpus.basis, ShardFormat())


def counted(store: MomentStore, corpus: Corpus, first: int, number: int) -> MomentStore:
    """The store with some more days, in one commit."""
    part, day = corpus.days(first, number), FIRST + timedelta(first)
    shard = ShardRecord(f"day-{first}", 1, f"sha256:{first}", part.documents, part.tokens)
    dates = DateRange(day, day + timedelta(number - 1))
    statistics = MomentStatistics.of(part, corpus.basis)
    return store.append(store.write_segment(statistics, [shard], dates))


def stores(corpus: Corpus, commits: int, place: Path) -> Iterator[str]:
    """Names of the stores that are made in a folder."""
    counted(created(f"{place}/one", corpus), corpus, 0, commits)
    yield "one"
    store = created(f"{place}/plain", corpus)
    for day in range(commits):
        store = counted(store, corpus, day, 1)
        if day + 1 in {commits, *(10**power for power in range(1, 9))}:
            name, began = f"merged-{day + 1}", time.perf_counter()
            shutil.copytree(place / "plain", place / name)
            with connect() as cluster:
                compact_when_many(MomentStore.open(f"{place}/{name}"), COMPACT_AFTER, Run(cluster))
            said = f"merging {day + 1} commits takes {time.perf_counter() - began:.1f} s"
            print(said, file=sys.stderr)
            yield name
    yield "plain"


def ran(*asked: str) -> tuple[float, float]:
    """Wall clock and processor seconds of a command in a process of its own."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "streaming_moments", *asked]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return ended - began, used


def measured(name: str, url: str, days: int, corpus: Corpus, options: Mapping[str, Any]) -> None:
    """Time refits of a store and updates by a day; print a line of JSON."""
    store = MomentStore.open(url, storage_options=options)
    told: dict[str, Any] = {
        "store": name,
        "where": "S3" if options else "disk",
        "segments": len(store.commit.segments),
        "segments_read": len(store.parts),
    }
    given = ["--storage-options", json.dumps(options)] if options else []
    seconds: dict[str, list[tuple[float, float]]] = {"refit": [], "update": [], "later_refit": []}
    # the first of each also warms what the system keeps of files
    refits = range(1 if name == "plain" else RUNS)
    asked = (url, "--topics", str(TOPICS), "--alpha0", "0.1", "--name")
    for run in refits:
        seconds["refit"].append(ran("refit", *asked, f"m{run}", *given))
    with tempfile.TemporaryDirectory() as folder:
        for run in range(RUNS):
            day = FIRST + timedelta(days + run)
            shard = Path(folder) / f"{day}.txt"
            shard.write_text(corpus.text(days + run))
            seconds["update"].append(ran("update", url, str(shard), *given))
    # as many segments are left as a refit ever reads besides the sum of all days
    told["segments_read_later"] = len(store.latest().parts)
    for run in refits:
        seconds["later_refit"].append(ran("refit", *asked, f"n{run}", *given))
    for step, runs in seconds.items():
        wall, used = np.median(runs, axis=0)
        told |= {f"{step}_seconds": round(wall, 2), f"{step}_cpu_seconds": round(used, 2)}
    print(json.dumps(told), flush=True)


@contextmanager
def bucket(asked: bool) -> Iterator[dict[str, Any]]:
    """Options of a bucket `commits` of an S3 server, if asked for."""
    if not asked:
        yield {}
        return
    tests = Path(__file__).parents[1]
    sys.path += [str(tests / "storage"), str(tests / "faults")]
    from s3_server import s3_process, with_bucket

    with s3_process() as (host, port):
        yield with_bucket(host, port, "commits")


def main(commits: int, on_s3: bool, without_plain: bool, place: Path) -> None:
    """Make the stores and measure each, on S3 first, as updates of a disk change what is copied."""
    corpus, models = Corpus.drawn(commits + RUNS), []
    with bucket(on_s3) as options:
        for name in stores(corpus, commits, place):
            if name == "plain" and without_plain:
                continue
            days = int(name.partition("-")[2] or commits)
            if options:
                url = f"s3://commits/{name}"
                fsspec.filesystem("s3", **options).put(f"{place}/{name}", url, recursive=True)
                measured(name, url, days, corpus, options)
            measured(name, f"{place}/{name}", days, corpus, {})
            if days == commits:
                models.append(MomentStore.open(f"{place}/{name}").load_model("m0").topics)
    assert all(np.array_equal(models[0], other) for other in models)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=1_000)
    parser.add_argument("--s3", action="store_true", help="also on an S3 server of moto")
    parser.add_argument("--without-plain", action="store_true", help="not the one never merged")
    arguments = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        main(arguments.commits, arguments.s3, arguments.without_plain, Path(folder))
