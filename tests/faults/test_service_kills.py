"""Server and accumulator killed under load: each acknowledged document is counted once."""

import json
import random
import re
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
import requests
from forked_service import ForkedServer
from s3_server import s3_process, with_bucket
from unreliable_proxy import KINDS, Fault, UnreliableProxy

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import read_service
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

WORDS = ["law", "sea", "ship", "tax", "moon", "gold", "iron", "wood"]
CLIENTS = 3
# seconds of a client between two batches; the server of S3 is a process of Python
PACES = {"local": (0.1, 0.0), "cloud": (0.3, 0.1)}
VICTIMS = ("server", "accumulator", "both")
LOST = (  # of an answer all, or its rest
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)


class Served:
    """`streaming-moments serve` in a process of its own, which is forked."""

    def __init__(self, config, log, **clock):
        self.process = ForkedServer(config, log, **clock)
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, line
        self.url = f"http://127.0.0.1:{found[1]}"

    def kill(self, what):
        """The server, what accumulates, or both."""
        family = self.process.children()
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
            except LOST:
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


@dataclass
class Place:
    """A store, its inbox, and the service of them.

    Parameters
    ----------
    folder : Path
        On this machine, of configuration and log.
    store : str
        URL.
    options : dict
        Of the file system, without a proxy.
    proxy : UnreliableProxy or None
        Between the service and the storage.
    """

    folder: Path
    store: str
    options: dict
    proxy: UnreliableProxy | None = None

    @property
    def config(self):
        return self.folder / "service.toml"

    @property
    def log(self):
        return self.folder / "service.log"


def made(place):
    """The place, with an empty store and a configuration."""
    texts = [" ".join(random.Random(n).choices(WORDS, k=4)) for n in range(300)]
    (place.folder / "pilot.txt").write_text("\n".join(texts))
    with connect() as cluster:
        pilot = PilotOptions(vocabulary_size=8, core=8, max_topics=2, min_documents=2)
        listed = list_shards([str(place.folder / "pilot.txt")])
        run = Run(cluster, storage_options=place.options or None)
        create(place.store, listed, ShardFormat(), TokenPolicy(), pilot, run)
    empty = Folder.at(place.store, place.options or None)
    for path in empty.sizes(""):
        Folder.at(str(place.folder / "twin")).write(path, empty.read(path))
    options = dict(place.options)
    if place.proxy is not None:
        options["endpoint_url"] = place.proxy.url
    told = "".join(f'{name} = "{value}"\n' for name, value in options.items())
    # who counts is killed more often than it counts: what waits may be older than one would have it
    place.config.write_text(
        f'store = "{place.store}"\nwindow = "5ms"\nrefresh = "200ms"\n'
        '[listen]\nport = 0\n[limits]\ninbox_age = "1d"\n'
        '[accumulate]\nseal_after = "300ms"\nlock_expiry = "20s"\n'
        + (f"[storage_options]\n{told}" if told else "")
    )
    return place


@pytest.fixture
def local(tmp_path, few_blocks):
    return made(Place(tmp_path, str(tmp_path / "store"), {}))


@pytest.fixture
def cloud(tmp_path, few_blocks):
    """On an S3 server on loopback, behind a proxy that loses replies."""
    with s3_process() as (host, port):
        options = with_bucket(host, port, "cloud")
        proxy = UnreliableProxy(host, port)
        yield made(Place(tmp_path, "s3://cloud/store", options, proxy))
        proxy.stop()


@pytest.mark.long
@pytest.mark.parametrize("where", ["local", "cloud"])
def test_killed_under_load_each_acknowledged_document_is_counted_once(request, campaigns, where):
    place, rng = request.getfixturevalue(where), random.Random(campaigns.seed)
    rounds = campaigns.size([(2, 2)], [(2, 125), (4, 125)])  # instances, kills of them
    senders, losses, pace = [], 0, campaigns.size(*PACES[where])
    for instances, kills in rounds:
        with open(place.log, "a") as log:
            serving = [Served(place.config, log) for _ in range(instances)]
            names = [f"c{instances}{number}" for number in range(CLIENTS)]
            urls = [one.url for one in serving]
            working = [Sender(name, urls) for name in names]
            losses += killed(place, serving, working, kills, pace, rng, log)
            senders += working
            codes = [one.end() for one in serving]
        assert codes == [0] * instances, place.log.read_text()[-3000:]
        accumulated(place)
        problems = problems_of(place, senders)
        assert problems == [], place.log.read_text()[-3000:]
    kills = sum(kills for _, kills in rounds)
    documents = sum(len(texts) for one in senders for texts in one.acknowledged.values())
    counts = " and ".join(str(instances) for instances, _ in rounds)
    told = f"{documents} documents, {counts} instances, {losses} replies lost or refused"
    campaigns.record(f"service on {where}: server and accumulator killed", kills, kills, told)


def killed(place, serving, senders, kills, pace, rng, log):
    """Kill servers and what accumulates while documents come; gives replies that were lost."""
    over, losses, urls = [], 0, senders[0].urls

    def work(sender):
        number = 0
        while not over:
            sender.send(number)
            number += 1
            time.sleep(pace)

    with ThreadPoolExecutor(len(senders)) as threads:
        working = [threads.submit(work, sender) for sender in senders]
        try:
            for _ in range(kills):
                if place.proxy is not None:
                    fault = Fault(rng.choice(KINDS), rng.randrange(30), rng.randint(1, 3))
                    place.proxy.suffer(fault)
                time.sleep(rng.uniform(0.5, 4))
                assert not any(one.done() for one in working), "a client gave up"
                at, what = rng.randrange(len(serving)), rng.choice(VICTIMS)
                serving[at].kill(what)
                if place.proxy is not None:
                    losses += place.proxy.calm()
                if what != "accumulator":
                    serving[at] = Served(place.config, log)
                    urls[at] = serving[at].url
        finally:
            over.append(True)
        for one in working:
            one.result(300)
    return losses


def accumulated(place):
    """Count what is left."""
    with connect() as cluster:
        lines = []
        run = Run(cluster, storage_options=place.options or None)
        accumulator = Accumulator.of(read_service(place.config), run, lines.append)
        deadline = time.monotonic() + 1200
        # one whose server was killed may hold the lock yet, and be counting what it has sealed
        while accumulator.seals.inbox.backlog().batches or accumulator.lags:
            assert time.monotonic() < deadline
            if accumulator.look() is None:
                time.sleep(0.2)


def problems_of(place, senders):
    """What the store counts else than what was acknowledged, once."""
    wanted = Counter(
        text for one in senders for texts in one.acknowledged.values() for text in texts
    )
    folder = Folder.at(f"{place.store}-inbox", place.options or None)
    files = [f"sealed/{path}" for path in folder.sizes("sealed")]
    found = Counter(
        json.loads(line)["text"]
        for content in folder.read_all(files)
        for line in content.splitlines()
    )
    store = MomentStore.open(place.store, storage_options=place.options or None)
    problems = []
    if found != wanted:
        problems.append(f"{(wanted - found)} are lost, {(found - wanted)} are too many")
    if {f"{folder.url}/{file}" for file in files} != {record.url for record in store.ledger()}:
        problems.append("another ledger")
    if store.commit.documents != sum(wanted.values()):
        problems.append(f"{store.commit.documents} counted, {sum(wanted.values())} acknowledged")
    counts = Counter(word for text in wanted.elements() for word in text.split())
    statistics = store.load()
    if statistics.word_counts.tolist() != [counts[term] for term in store.vocabulary.terms]:
        problems.append("other counts")
    twin = twin_of(place, wanted)
    problems += [
        f"other {name}"
        for name in ("pair_counts", "triple_sketch")
        if not (getattr(statistics, name) == getattr(twin, name)).all()
    ]
    return problems + store.verify()


def twin_of(place, texts):
    """Statistics of documents that an update counts from a file, on the store as it was empty."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts.elements())
    (place.folder / "same.jsonl").write_text(lines)
    with connect() as cluster:
        listed = list_shards([str(place.folder / "same.jsonl")])
        return update(
            MomentStore.open(str(place.folder / "twin")), listed, Run(cluster)
        ).store.load()


def test_a_clock_that_is_off_neither_loses_nor_doubles_nor_keeps_anyone_waiting(local):
    """One server, with what accumulates, is a day ahead, another a day behind."""
    day = timedelta(days=1)
    with open(local.log, "w") as log:
        served = [Served(local.config, log, clock_off_by=off) for off in (day, -day)]
        sender = Sender("c", [one.url for one in served])
        for number in range(20):
            sender.send(number)
        status = requests.get(f"{served[0].url}/v1/status", timeout=20).json()
        assert status["inbox"]["seconds"] < 3600
        assert [one.end() for one in served] == [0, 0]
    accumulated(local)
    assert problems_of(local, [sender]) == []
    days = {path.split("/")[0] for path in Folder.at(f"{local.store}-inbox").sizes("sealed")}
    assert len(days) == 2


def test_sigterm_answers_what_is_open_and_ends(local):
    with open(local.log, "w") as log:
        served = Served(local.config, log)
        (child,) = served.process.children()
        answer = requests.post(f"{served.url}/v1/documents", json=[{"text": "law sea"}], timeout=20)
        assert answer.status_code == 202
        assert served.end() == 0
    # what accumulates ends with it
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running()
    lines = [json.loads(line) for line in local.log.read_text().splitlines() if line[:1] == "{"]
    assert any(line["event"] == "call" and line["status"] == 202 for line in lines)
