"""Server and accumulator killed under load: each acknowledged document is counted once."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
import requests

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.service.accumulator import Accumulator
from streaming_moments.pipelines.service.config import read_service
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

WORDS = ["law", "sea", "ship", "tax", "moon", "gold", "iron", "wood"]
CLIENTS = 3


class Served:
    """`streaming-moments serve` in a process of its own."""

    def __init__(self, config, log):
        command = [sys.executable, "-m", "streaming_moments", "serve", str(config)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, line
        self.url = f"http://127.0.0.1:{found[1]}"

    def kill(self, what):
        """The server, what accumulates, or both."""
        family = psutil.Process(self.process.pid).children()
        if what != "server":
            for child in family:
                child.kill()
        if what != "accumulator":
            self.process.kill()
            self.process.wait()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


class Sender:
    """A client that sends each of its documents until it is acknowledged, under one key."""

    def __init__(self, name, urls):
        self.name, self.urls, self.acknowledged = name, urls, {}
        self.rng = random.Random(name)

    def send(self, number):
        texts = [
            f"{' '.join(self.rng.choices(WORDS, k=5))} {spelled(self.name, number, one)}"
            for one in range(self.rng.randint(1, 4))
        ]
        key = f"{self.name}-{number}"
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            try:
                answer = requests.post(
                    f"{self.rng.choice(self.urls)}/v1/documents",
                    json=[{"text": text} for text in texts],
                    headers={"Idempotency-Key": key},
                    timeout=20,
                )
            except (requests.ConnectionError, requests.Timeout):
                time.sleep(0.05)
                continue
            if answer.status_code == 202:
                self.acknowledged[answer.json()["receipt"]] = texts
                return
            assert answer.status_code in (429, 503), answer.text
            time.sleep(0.05)
        raise AssertionError("it was never acknowledged")


def spelled(*parts):
    """A word of letters for a document alone: the tokeniser knows no digits."""
    return "q" + "".join(
        "abcdefghij-"[int(c)] if c.isdigit() else "x" for c in "-".join(map(str, parts))
    )


@pytest.fixture
def place(tmp_path):
    texts = [" ".join(random.Random(n).choices(WORDS, k=4)) for n in range(300)]
    (tmp_path / "pilot.txt").write_text("\n".join(texts))
    with connect() as cluster:
        pilot = PilotOptions(vocabulary_size=8, core=8, max_topics=2, min_documents=2)
        listed = list_shards([str(tmp_path / "pilot.txt")])
        create(str(tmp_path / "store"), listed, ShardFormat(), TokenPolicy(), pilot, Run(cluster))
    (tmp_path / "service.toml").write_text(
        f'store = "{tmp_path}/store"\nwindow = "5ms"\nrefresh = "200ms"\n'
        '[listen]\nport = 0\n[accumulate]\nseal_after = "300ms"\nlock_expiry = "20s"\n'
    )
    return tmp_path


def test_killed_under_load_each_acknowledged_document_is_counted_once(place, campaigns):
    kills, rng = campaigns.size(3, 100), random.Random(campaigns.seed)
    config, over = place / "service.toml", []
    log = open(place / "service.log", "w")  # noqa: SIM115
    served = [Served(config, log), Served(config, log)]
    urls = [one.url for one in served]
    senders = [Sender(f"c{number}", urls) for number in range(CLIENTS)]

    def work(sender):
        number = 0
        while not over:
            sender.send(number)
            number += 1

    with ThreadPoolExecutor(CLIENTS) as threads:
        working = [threads.submit(work, sender) for sender in senders]
        try:
            for _ in range(kills):
                time.sleep(rng.uniform(0.5, 4))
                place_of = rng.randrange(len(served))
                what = rng.choice(["server", "accumulator", "both"])
                served[place_of].kill(what)
                if what != "accumulator":
                    served[place_of] = Served(config, log)
                    urls[place_of] = served[place_of].url
        finally:
            over.append(True)
        for one in working:
            one.result(300)
    codes = [one.end() for one in served]
    assert codes == [0, 0], (place / "service.log").read_text()[-3000:]
    accumulated(config)
    problems = problems_of(place, config, senders)
    assert problems == [], (place / "service.log").read_text()[-3000:]
    documents = sum(len(texts) for one in senders for texts in one.acknowledged.values())
    campaigns.record(
        "service: server and accumulator killed", kills, kills, f"{documents} documents"
    )


def accumulated(config):
    """Count what is left."""
    with connect() as cluster:
        lines = []
        accumulator = Accumulator.of(read_service(config), Run(cluster), lines.append)
        deadline = time.monotonic() + 60
        while accumulator.seals.inbox.backlog().batches or accumulator.look() is not None:
            assert time.monotonic() < deadline
            accumulator.look()


def problems_of(place, config, senders):
    """What the store counts else than what was acknowledged, once."""
    wanted = Counter(
        text for one in senders for texts in one.acknowledged.values() for text in texts
    )
    inbox = place / "store-inbox"
    shards = list_shards([f"{inbox}/sealed/**/*.jsonl"])
    found = Counter(
        json.loads(line)["text"]
        for shard in shards
        for line in open(shard.url)  # noqa: SIM115
    )
    store = MomentStore.open(str(place / "store"))
    problems = []
    if found != wanted:
        problems.append(f"{(wanted - found)} are lost, {(found - wanted)} are too many")
    if {shard.url for shard in shards} != {record.url for record in store.ledger()}:
        problems.append("another ledger")
    if store.commit.documents != sum(wanted.values()):
        problems.append(f"{store.commit.documents} counted, {sum(wanted.values())} acknowledged")
    counts = Counter(word for text in wanted.elements() for word in text.split())
    terms = store.vocabulary.terms
    if store.load().word_counts.tolist() != [counts[term] for term in terms]:
        problems.append("other counts")
    return problems + store.verify()


def test_sigterm_answers_what_is_open_and_ends(place):
    log = open(place / "service.log", "w")  # noqa: SIM115
    served = Served(place / "service.toml", log)
    (child,) = psutil.Process(served.process.pid).children()
    answer = requests.post(f"{served.url}/v1/documents", json=[{"text": "law sea"}], timeout=20)
    assert answer.status_code == 202
    assert served.end() == 0
    # what accumulates ends with it
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running()
    assert os.path.exists(place / "store-inbox" / "inbox.json")
    lines = [
        json.loads(line)
        for line in (place / "service.log").read_text().splitlines()
        if line.startswith("{")
    ]
    assert any(line["event"] == "call" and line["status"] == 202 for line in lines)
