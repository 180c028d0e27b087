"""Load on the service: documents acknowledged and texts answered, at a rate, and how late.

`python tests/benchmarks/load.py` makes a store, serves it in a process of its own and prints a
table. Requests are due at fixed times, and the time of each is from when it was due: a server that
stands still makes all that wait for it late.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

WORDS, TOPICS, LENGTH = 10_000, 32, 150
LETTERS = "abcdefghij"


@dataclass(frozen=True)
class Found:
    """What came of a load.

    Parameters
    ----------
    seconds : float
        From the first that was due to the last answer.
    late : (requests,) float64
        Seconds from when each was due to its answer.
    refused : int
        Answers other than 200 and 202.
    """

    seconds: float
    late: np.ndarray
    refused: int


def texts(number: int, seed: int, length: int = LENGTH) -> list[str]:
    """Documents of a planted mixture, of words of letters."""
    rng = np.random.default_rng(seed)
    words = np.array(["w" + "".join(LETTERS[int(d)] for d in f"{n:05d}") for n in range(WORDS)])
    own = rng.dirichlet(np.full(WORDS, 0.02), TOPICS)
    topics = rng.integers(0, TOPICS, number)
    return [" ".join(rng.choice(words, length, p=own[topic])) for topic in topics]


def make_store(place: Path) -> None:
    """A store with a model of 32 topics."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts(4000, 0))
    (place / "pilot.jsonl").write_text(lines)
    with connect() as cluster:
        run, listed = Run(cluster), list_shards([str(place / "pilot.jsonl")])
        pilot = PilotOptions(vocabulary_size=WORDS, max_topics=TOPICS, min_documents=2)
        store = create(str(place / "store"), listed, ShardFormat(), TokenPolicy(), pilot, run)
        store = update(store, listed, run).store
        store.save_model("first", refit(store, TOPICS, 0.3, run))


def offered(
    port: int, path: str, bodies: list[bytes], rate: float, seconds: float, clients: int = 16
) -> Found:
    """Requests at a rate, by several connections that take turns."""
    total = max(1, int(rate * seconds))
    late, numbers = np.zeros(total), iter(range(total))
    refused, begun, lock = [0], time.monotonic() + 0.2, threading.Lock()

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            due = begun + number / rate
            time.sleep(max(0.0, due - time.monotonic()))
            connection.request(
                "POST", path, bodies[number % len(bodies)], {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            answer.read()
            late[number] = time.monotonic() - due
            if answer.status not in (200, 202):
                refused[0] += 1

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Found(time.monotonic() - begun, late, refused[0])


def row(name: str, found: Found, each: int) -> str:
    """A line of the table."""
    p50, p99 = np.percentile(found.late * 1000, [50, 99])
    rate = each * found.late.size / found.seconds
    return (
        f"| {name} | {rate:,.0f} | {p50:.1f} | {p99:.1f} | {found.late.max() * 1000:.0f} | "
        f"{found.refused} |"
    )


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--documents", type=float, nargs="*", default=[2500, 5000])
    parser.add_argument("--texts", type=float, nargs="*", default=[250, 500])
    parser.add_argument("--accumulate", action="store_true", help="count meanwhile")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make_store(place)
        (place / "service.toml").write_text(f'store = "{place}/store"\n[listen]\nport = 0\n')
        command = [sys.executable, "-m", "streaming_moments", "serve", str(place / "service.toml")]
        command += [] if given.accumulate else ["--no-accumulate"]
        server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            match = re.search(r":(\d+)$", server.stdout.readline().strip())
            measure(given, int(match[1]), psutil.Process(server.pid))
        finally:
            server.terminate()
            server.wait(60)


def measure(given: argparse.Namespace, port: int, process: psutil.Process) -> None:
    """Each load in turn, and the memory of the server after it."""
    some = texts(2000, 1)
    batches = [
        json.dumps([{"text": text} for text in random.sample(some, 100)]).encode()
        for _ in range(40)
    ]
    single = [json.dumps({"texts": [text]}).encode() for text in texts(500, 2, 200)]
    offered(port, "/v1/transform", single, 50, 2)
    print("| load | a second | p50 ms | p99 ms | worst ms | refused |")
    print("| --- | --- | --- | --- | --- | --- |")
    loads: list[tuple[str, Callable[[], Found], int]] = [
        *(
            (
                f"documents, {rate:,.0f} a second in batches of 100",
                lambda rate=rate: offered(
                    port, "/v1/documents", batches, rate / 100, given.seconds
                ),
                100,
            )
            for rate in given.documents
        ),
        *(
            (
                f"texts of 200 words, {rate:,.0f} a second",
                lambda rate=rate: offered(port, "/v1/transform", single, rate, given.seconds),
                1,
            )
            for rate in given.texts
        ),
    ]
    for name, load, each in loads:
        print(row(name, load(), each), flush=True)
        print(f"  server: {process.memory_info().rss >> 20} MiB", file=sys.stderr)


if __name__ == "__main__":
    main()
