"""What a commit costs, and a ledger of many shards: figures to print, no speed is asserted."""

import dataclasses
import statistics
import time

import pytest

from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import BASIS, create, record, segment

SHARDS = 100_000


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
