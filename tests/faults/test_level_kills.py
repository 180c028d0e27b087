"""Updates that merge segments by levels: killed anywhere, beside readers and beside one another.

On a disk and on a real S3 server: whatever was killed, a store reads, is sound, and counts each day
once or not at all; the same call goes on where it was.
"""

import random
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import count
from multiprocessing.connection import wait

import pytest
from forking import PATIENCE, forking
from killable_cluster import die_after, watch
from s3_server import s3_process, with_bucket

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact_when_many
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log import layout
from streaming_moments.storage.log.covering import without_whole
from streaming_moments.storage.log.ledger import ShardsAlreadyCounted
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.windows import Window, WindowedStore
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import BASIS, VOCABULARY, record, total

# two shards a day, so that segments are replaced and sums stand beside others
A_DAY, AFTER = 2, 2
# three days on one level are more than half of four, so that one sum of them is written
WHOLE = 4
FIRST = date(2026, 1, 1)
# on S3 the files of a segment are written by no `write`
MORE_STEPS = (Folder, "sync"), (Folder, "write_all")
SHARDS = {f"{number:02}": number for number in range(8 * A_DAY)}


@pytest.fixture(scope="module")
def bucket():
    """Options of a bucket of a real S3 server, in a process of its own."""
    with s3_process() as (host, port):
        yield with_bucket(host, port, "levels")


@dataclass(frozen=True)
class Place:
    """Where stores lie, the options of the storage, and how many days of shards are counted.

    `kills` and `rounds` are of the short and the long form. Segments are merged `after` so many.
    """

    url: str
    options: dict | None
    days: int
    after: int = AFTER
    kills: tuple = (4, 200)
    rounds: tuple = (1, 20)

    @property
    def kind(self):
        if self.after == WHOLE:
            return "disk, with sums of all days but the latest"
        return "disk" if self.options is None else "S3"

    @property
    def names(self):
        return tuple(SHARDS)[: self.days * A_DAY]


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("whole", "s3")]


@pytest.fixture(params=["disk", *LONG])
def place(request, tmp_path, campaigns, monkeypatch):
    if request.param == "disk":
        return Place(str(tmp_path), None, 6)
    if request.param == "whole":
        return Place(str(tmp_path), None, 8, WHOLE, (4, 50), (1, 5))
    # where a file takes a hundred times as long: one for each array
    monkeypatch.setattr(layout, "FEWEST_BLOCKS", campaigns.size(1, layout.FEWEST_BLOCKS))
    options = request.getfixturevalue("bucket")
    days = campaigns.size(3, 4)
    return Place(f"s3://levels/{tmp_path.name}", options, days, kills=(2, 40), rounds=(1, 4))


def created(url, options):
    return MomentStore.create(
        url, VOCABULARY, None, BASIS, ShardFormat(), storage_options=options
    ).version


def ingest(url, options, mine=tuple(SHARDS), after=AFTER):
    """Count the shards that are not counted, one by one, and merge after each, as updates do."""
    store = MomentStore.open(url, storage_options=options)
    with connect() as cluster:
        for name in mine:
            if store.ledger().find(name) is None:
                store = compact_when_many(counted(store, name), after, Run(cluster))
        # also where the last one was counted by one that died, or by another
        compact_when_many(store.latest(), after, Run(cluster))


def counted(store, name):
    """The store with a shard, which another writer may have counted first."""
    seed = SHARDS[name]
    day = FIRST + timedelta(days=seed // A_DAY)
    ready = store.write_segment(total([seed]), [record(name, seed)], DateRange(day, day))
    try:
        return store.append(ready)
    except ShardsAlreadyCounted:
        return store.latest()


def ingest_until(steps, *arguments):
    """`ingest`, killed after so many steps of what it writes."""
    die_after(steps, *MORE_STEPS)
    ingest(*arguments)


def steps_of(told, *arguments):
    """`ingest`, which tells how many steps it took."""
    taken = count()
    watch(lambda: next(taken), (Folder, "write"), (Folder, "create"), *MORE_STEPS)
    ingest(*arguments)
    told.put(next(taken))


def require(store):
    """The store counts each of its shards once, whichever way it is read; gives their number."""
    seeds = [SHARDS[one.url] for one in store.ledger()]
    assert len({*seeds}) == len(seeds)
    assert store.load() == total(seeds)
    assert store.totals() == total(seeds).totals
    assert store.verify() == []
    if seeds:
        parts = WindowedStore.of(store, Window(FIRST, FIRST + timedelta(days=len(SHARDS))))
        assert parts.totals() == total(seeds).totals
    return len(seeds)


def run_one(work, *arguments):
    process = forking().Process(target=work, args=arguments)
    process.start()
    process.join(PATIENCE)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode


def test_ingests_that_are_killed_while_they_merge_go_on(campaigns, place):
    rng, told = random.Random(campaigns.seed), forking().Queue()
    # where the stores are: on S3 an ingest takes fewer steps than on a disk
    given = f"{place.url}/all", place.options
    created(*given)
    assert run_one(steps_of, told, *given, place.names, place.after) == 0
    most = told.get(timeout=PATIENCE)
    kills, held, stores = campaigns.size(*place.kills), 0, 0
    while held < kills:
        store = f"{place.url}/{stores}"
        stores += 1
        created(store, place.options)
        while True:
            steps = rng.randrange(most) if held < kills else 10 * most
            given = store, place.options, place.names, place.after
            ended = run_one(ingest_until, steps, *given)
            found = MomentStore.open(store, storage_options=place.options)
            there = require(found)
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
            held += 1
        assert there == len(place.names)
        # those of the latest day wait until there are enough
        waiting = A_DAY - 1 if place.after == WHOLE else 0
        assert len(found.commit.segments) == place.days + waiting
        assert len(found.parts) < place.days
        whole = len(found.commit.sums) - len(without_whole(found.commit.sums))
        assert whole == (place.after == WHOLE)
        # what only earlier versions hold goes, and nothing else does
        expire(found, 1, timedelta(0))
        found = MomentStore.open(store, storage_options=place.options)
        assert require(found) == len(place.names)
    campaigns.record(f"ingests killed while they merge, {place.kind}", kills, kills)


@contextmanager
def processes(*works):
    started = [forking().Process(target=work, args=arguments) for work, *arguments in works]
    for process in started:
        process.start()
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.join(PATIENCE)


def test_two_updaters_and_their_readers_at_once(campaigns, place):
    rounds, names = campaigns.size(*place.rounds), place.names
    for number in range(rounds):
        store = f"{place.url}/both{number}"
        created(store, place.options)
        told = store, place.options
        works = [(ingest, *told, names[own::2] + names, place.after) for own in (0, 1)]
        deadline = time.monotonic() + PATIENCE
        opened = [MomentStore.open(store, storage_options=place.options)]
        with processes(*works) as both:
            while any(process.exitcode is None for process in both):
                assert time.monotonic() < deadline, "they hang"
                latest = opened[-1].latest()
                if latest.version == opened[-1].version:
                    # as fast as it can it would take the time of those that write
                    wait([process.sentinel for process in both], timeout=0.02)
                    continue
                opened.append(latest)
                # the newest, and one that was opened before what has been merged since
                for one in (opened[-1], opened[len(opened) // 2]):
                    assert one.load() == total([SHARDS[shard.url] for shard in one.ledger()])
            assert [process.exitcode for process in both] == [0, 0]
        found = MomentStore.open(store, storage_options=place.options)
        assert require(found) == len(names)
        # those of the latest day wait until there are enough
        waiting = A_DAY - 1 if place.after == WHOLE else 0
        assert len(found.commit.segments) == place.days + waiting
        for version in range(1, found.version, 1 if place.options is None else 5):
            earlier = found.at(version)
            assert earlier.load() == total([SHARDS[shard.url] for shard in earlier.ledger()])
    campaigns.record(f"two updaters that merge at once, {place.kind}", rounds, rounds)


def test_a_reader_of_an_expired_version_is_told_and_the_latest_reads(tmp_path):
    store = str(tmp_path / "store")
    created(store, None)
    ingest(store, None)
    found = MomentStore.open(store)
    old = found.at(1)
    expire(found, 1, timedelta(0))
    assert require(MomentStore.open(store)) == len(SHARDS)
    # its segment was replaced since
    with pytest.raises(StoreError, match="is missing"):
        old.load()
