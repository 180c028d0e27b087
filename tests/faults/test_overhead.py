"""What a commit costs, and a ledger of many shards: figures to print, no speed is asserted."""

import dataclasses
import hashlib
import statistics
import time
import uuid
from datetime import date

import psutil
import pytest
import requests
from command_runs import run_command
from measured_commands import measured
from test_service_kills import Served

from streaming_moments.pipelines.service.ingest_worker.counted import note_reached
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.owners import Owner
from streaming_moments.storage.inbox.seals import Seal, SealedShard, seal_file, shard_file
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import BASIS, create, record, segment

SHARDS = 100_000
VERSIONS = 10_000
DAY = date(2026, 11, 23)


@pytest.fixture(autouse=True)
def long_form(campaigns):
    if not campaigns.long:
        pytest.skip("figures of time are taken in the long form only")


def timed(act):
    start = time.perf_counter()
    result = act()
    return result, time.perf_counter() - start


def test_the_cost_of_a_commit(tmp_path, campaigns):
    store, times = create(tmp_path / "store"), []
    commits = 200
    for number in range(commits):
        # the arrays are written before the clock runs
        ready = segment(store, {f"s{number}": number})
        store, seconds = timed(lambda store=store, ready=ready: store.append(ready))
        times.append(seconds)
    note = (
        f"median {statistics.median(times) * 1e3:.1f} ms, "
        f"last ten {statistics.median(times[-10:]) * 1e3:.1f} ms"
    )
    campaigns.record("commits on a local disk, without their arrays", commits, store.version, note)


def test_the_cost_of_a_large_ledger(tmp_path, campaigns):
    store = create(tmp_path / "store")
    template = dataclasses.replace(record("x", 1), documents=0, tokens=0)
    many = [dataclasses.replace(template, url=f"s3://bucket/{i:06}.txt") for i in range(SHARDS)]
    ready = store.write_segment(MomentStatistics.zero(BASIS), many)
    store, appended = timed(lambda: store.append(ready))
    opened, opening = timed(lambda: MomentStore.open(store.url))
    ledger, reading = timed(opened.ledger)
    found, finding = timed(lambda: ledger.find(many[-1].url))
    assert found == many[-1]
    note = (
        f"append {appended:.2f} s, open {opening * 1e3:.0f} ms, ledger {reading * 1e3:.0f} ms, "
        f"first look-up {finding * 1e3:.0f} ms"
    )
    campaigns.record("shards of one ledger", SHARDS, len(ledger), note)


def files_written(root, contents):
    """Files as a service of years would have left them, without waiting for the disk each time."""
    for name, content in contents:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def sealed_shards(inbox):
    """A shard of one document for each seal, its seal, and the bytes of both by their names."""
    line = b'{"text":"law and sea"}\n'
    digest = hashlib.sha256(line).hexdigest()
    for number in range(1, SHARDS + 1):
        path = shard_file(number, DAY)
        shard = SealedShard(path, DAY, 1, len(line), digest)
        yield path, line
        yield seal_file(number), Seal(number, uuid.uuid4().hex, (), (shard,)).sealed()


def started(config, log):
    """A server, and the seconds until it is ready and its accumulator has looked at the inbox."""
    served, seconds = timed(lambda: Served(config, log))
    begun = time.perf_counter()
    while not (answer := requests.get(f"{served.url}/readyz", timeout=60)).ok:
        assert served.process.poll() is None, answer.text
    return served, seconds + time.perf_counter() - begun


def test_the_start_beside_a_long_history(tmp_path, campaigns):
    lines = "".join(f"law and sea {one % 7}\nship of gold {one % 5}\n" for one in range(99))
    (tmp_path / "pilot.txt").write_text(lines)
    given = ["--max-topics", "1", "--max-document-fraction", "1"]
    run_command("create", f"{tmp_path}/store", f"{tmp_path}/pilot.txt", *given)
    store = MomentStore.open(f"{tmp_path}/store")
    while store.version < VERSIONS - 1:
        # while there is no ledger to read: many commits of no other effect
        store = rollback(store, store.version)
    inbox = Inbox.open(f"{tmp_path}/store-inbox", owner=Owner.at(store.url))
    files_written(tmp_path / "store-inbox", sealed_shards(inbox))
    template = dataclasses.replace(record("x", 1), documents=0, tokens=0)
    records = [
        dataclasses.replace(template, url=inbox.folder.shard(shard_file(number, DAY)))
        for number in range(1, SHARDS + 1)
    ]
    store = store.append(store.write_segment(MomentStatistics.zero(store.basis), records))
    note_reached(inbox, SHARDS)
    status = measured("status", store.url)
    assert status.code == 0
    config = tmp_path / "service.toml"
    config.write_text(f'store = "{store.url}"\n[listen]\nport = 0\n')
    with open(tmp_path / "log", "w") as log:
        served, ready = started(config, log)
        body = [{"text": "law and sea"}]
        sent = requests.post(f"{served.url}/v1/documents", json=body, timeout=60)
        receipt = sent.json()["receipt"]
        _, counted = timed(lambda: wait_for_counted(served, receipt))
        own = psutil.Process(served.process.pid)
        held = sum(one.memory_info().rss for one in [own, *own.children()])
        assert served.end() == 0
    note = (
        f"status {status.seconds:.1f} CPU s, {status.peak / 1e6:.0f} MB; server ready in "
        f"{ready:.1f} s, its first document counted in {counted:.1f} s, {held / 1e6:.0f} MB with "
        "its accumulator"
    )
    campaigns.record(f"start, {SHARDS:,} sealed shards, {VERSIONS:,} versions", 1, 1, note)


def wait_for_counted(served, receipt):
    while True:
        told = requests.get(f"{served.url}/v1/receipts/{receipt}", timeout=60).json()
        if told["state"] == "counted":
            return
        assert served.process.poll() is None, told
        time.sleep(0.05)
