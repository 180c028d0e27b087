"""Updates of which workers, coordinators or both are killed: no shard is lost, none is doubled."""

import random
import shutil
import signal
import time
from collections import Counter
from dataclasses import astuple, dataclass, replace

import numpy as np
import pytest
from killable_cluster import (
    PATIENCE,
    coordinate,
    coordinate_until,
    coordinator,
    wait_for,
)

from streaming_moments import MomentStatistics
from streaming_moments.pipelines.aggregation import reduction
from streaming_moments.pipelines.cluster.memory import UpdatePlan
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

SHARDS, DOCUMENTS = 24, 6
GROUP = 4  # shards to a commit
WORKERS_STEPS, COORDINATORS_STEPS = 120, 60  # of some two closes, before and after each call
POLICY = TokenPolicy()
VOCABULARY = Vocabulary(("law", "sea", "ship", "tax"), core=3, policy=POLICY.fingerprint)
BASIS = Basis(
    np.random.default_rng(3).integers(-127, 128, (3, 2)).astype(np.int8),
    len(VOCABULARY.terms),
    VOCABULARY.fingerprint,
)


def new_store(url):
    return MomentStore.create(str(url), VOCABULARY, POLICY, BASIS, ShardFormat())


@dataclass(frozen=True)
class Corpus:
    """Shards, how they are grouped, and what an undisturbed update makes of them."""

    shards: str
    plan: UpdatePlan
    group: int
    statistics: MomentStatistics
    documents: dict[str, int]
    seconds: float

    @property
    def lost(self):
        """Reads that a death costs at most: each shard of a group for each share of the rows."""
        return self.group * self.plan.passes


@dataclass(frozen=True)
class Disturbed:
    """What came of some updates that were disturbed by kills."""

    kills: int = 0
    held: int = 0
    faults: int = 0
    updates: int = 0
    commits: int = 0
    repeated: int = 0

    def __add__(self, other):
        return Disturbed(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def note(self):
        return (
            f"{self.updates} updates, {self.commits} commits; {self.faults} shards lost or "
            f"doubled, {self.repeated / self.kills:.1f} read again a kill"
        )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, cluster):
    base = tmp_path_factory.mktemp("corpus")
    folder, rng = base / "shards", np.random.default_rng(5)
    folder.mkdir()
    for number in range(SHARDS):
        lines = [" ".join(rng.choice(VOCABULARY.terms, 9)) for _ in range(DOCUMENTS)]
        (folder / f"{number:02}.txt").write_text("\n".join(lines))
    store = new_store(base / "undisturbed")
    listed = list_shards([str(folder / "*.txt")])
    plan = UpdatePlan(
        lump_bytes=4096,
        batch_bytes=4096,
        reads_in_flight=2,
        peak_bytes=0,
        group_shards=GROUP,
    )
    # one after the other: the first warms the cluster, the second is timed
    for name in ("warm", "undisturbed"):
        store, begun = new_store(base / f"{name}-store"), time.monotonic()
        finish(coordinator(cluster.address, store.url, str(folder / "*.txt"), plan))
        seconds = time.monotonic() - begun
    done = store.latest()
    assert done.version > 4, "many commits"
    documents = {shard.url: DOCUMENTS for shard in listed}
    return Corpus(str(folder / "*.txt"), plan, GROUP, done.load(), documents, seconds)


def finish(process):
    process.join(PATIENCE)
    assert process.exitcode == 0


def lost_or_doubled(store, corpus):
    """Shards of a version that its statistics do not hold exactly once."""
    histogram, records = store.length_histogram(), list(store.ledger())
    times = Counter(record.url for record in records)
    doubled = sum(times.values()) - len(times)
    wrong = sum(record.documents != corpus.documents.get(record.url) for record in records)
    differ = sum(record.documents for record in records) != histogram.n_documents
    differ |= sum(record.tokens for record in records) != histogram.C1
    return doubled + wrong + differ


def disturbed_update(cluster, corpus, url, most, rng, strike):
    """One update, struck at random moments and begun again where it died, to its end."""
    store, begun = new_store(url), len(cluster.reads())
    arguments = (cluster.address, store.url, corpus.shards, corpus.plan)
    kills, faults, settled, mark = 0, 0, set(), begun
    process = coordinator(*arguments)
    while True:
        process.join(rng.uniform(0, corpus.seconds) if kills < most else PATIENCE)
        if process.exitcode is None:
            assert kills < most, "the update hangs"
            strike(process)
        ended = process.exitcode
        if ended == 0:
            break
        kills += 1
        store, reads = store.latest(), cluster.reads()
        faults += lost_or_doubled(store, corpus)
        if ended is None:
            continue
        assert ended == -signal.SIGKILL
        if strike is kill_coordinator:
            assert settled.isdisjoint(reads[mark:]), "a committed group was read again"
        settled, mark = {record.url for record in store.ledger()}, len(reads)
        wait_for(cluster.workers)
        process = coordinator(*arguments)
    if strike is kill_coordinator:
        assert settled.isdisjoint(cluster.reads()[mark:]), "a committed group was read again"
    return judged(cluster, corpus, store.latest(), kills, faults, begun)


def judged(cluster, corpus, store, kills, faults, begun):
    """What came of an update that is done, and how often it read shards again."""
    faults += lost_or_doubled(store, corpus) + abs(len(store.ledger()) - SHARDS)
    sound = store.verify() == [] and store.load() == corpus.statistics
    repeated = len(cluster.reads()) - begun - corpus.plan.passes * SHARDS
    held = kills if sound and not faults else 0
    return Disturbed(kills, held, faults, 1, store.version, repeated)


def disturbed_updates(cluster, corpus, folder, kills, rng, strike):
    """Updates until there were so many kills."""
    total = Disturbed()
    while total.kills < kills:
        url = folder / str(total.updates)
        total += disturbed_update(cluster, corpus, url, kills - total.kills, rng, strike)
        shutil.rmtree(url)
    return total


def kill_coordinator(process):
    process.kill()
    process.join()


def test_updates_whose_workers_are_killed(campaigns, cluster, corpus, tmp_path):
    rng = random.Random(campaigns.seed)
    kills = campaigns.size(4, 350)

    def strike(_):
        cluster.kill_worker(rng)

    done = disturbed_updates(cluster, corpus, tmp_path, kills, rng, strike)
    assert done.repeated <= done.kills * corpus.lost
    campaigns.record("worker killed", done.kills, done.held, done.note())


def test_updates_whose_coordinators_are_killed(campaigns, cluster, corpus, tmp_path):
    rng = random.Random(campaigns.seed)
    kills = campaigns.size(6, 450)
    done = disturbed_updates(cluster, corpus, tmp_path, kills, rng, kill_coordinator)
    assert done.repeated <= done.kills * corpus.lost
    campaigns.record("coordinator killed", done.kills, done.held, done.note())


def test_updates_whose_coordinators_and_workers_are_killed(campaigns, cluster, corpus, tmp_path):
    rng = random.Random(campaigns.seed)
    kills = campaigns.size(2, 200)

    def strike(process):
        blows = [lambda: cluster.kill_worker(rng), lambda: kill_coordinator(process)]
        for blow in rng.sample(blows, 2):
            blow()

    done = disturbed_updates(cluster, corpus, tmp_path, kills, rng, strike)
    # a group is lost with the coordinator, and one with what the worker held
    assert done.repeated <= 2 * done.kills * corpus.lost
    campaigns.record("both killed", done.kills, done.held, done.note())


def closed_update(cluster, corpus, url, most, rng):
    """One update, whose workers die at drawn steps of its closes."""
    store, begun, kills, faults = new_store(url), len(cluster.reads()), 0, 0
    wait_for(cluster.workers)
    cluster.order_death(rng.randrange(WORKERS_STEPS))
    process = coordinator(cluster.address, store.url, corpus.shards, corpus.plan)
    deadline = time.monotonic() + PATIENCE
    while process.exitcode is None:
        assert time.monotonic() < deadline, "the update hangs"
        process.join(0.005)
        if cluster.died():
            kills, deadline = kills + 1, time.monotonic() + PATIENCE
            faults += lost_or_doubled(store.latest(), corpus)
            if kills < most:
                cluster.order_death(rng.randrange(WORKERS_STEPS))
    cluster.call_off()
    kills += cluster.died()  # of the last step
    assert process.exitcode == 0
    return judged(cluster, corpus, store.latest(), kills, faults, begun)


def test_updates_whose_workers_are_killed_in_the_close(campaigns, cluster, corpus, tmp_path):
    rng, kills, total = random.Random(campaigns.seed), campaigns.size(4, 350), Disturbed()
    while total.kills < kills:
        url = tmp_path / str(total.updates)
        total += closed_update(cluster, corpus, url, kills - total.kills, rng)
        shutil.rmtree(url)
    assert total.repeated <= total.kills * corpus.lost
    campaigns.record("worker killed in the close", total.kills, total.held, total.note())


def test_a_row_block_that_kills_whoever_writes_it_ends_the_update(
    cluster, corpus, tmp_path, monkeypatch
):
    store, arguments = new_store(tmp_path / "store"), (corpus.shards, corpus.plan)
    # eleven deaths take as long as they say no more than three
    monkeypatch.setattr(reduction, "_LOSSES", 2)
    wait_for(cluster.workers)
    cluster.make_deadly(2)
    try:
        with pytest.raises(WorkersLost, match="died 3 times .* because of row block 2. Give"):
            coordinate(cluster.address, store.url, *arguments)
    finally:
        cluster.call_off()
    assert cluster.died() >= 3
    assert store.latest().version == store.version
    finish(coordinator(cluster.address, store.url, *arguments))
    assert store.latest().load() == corpus.statistics


def test_updates_whose_coordinators_are_killed_in_the_close(campaigns, cluster, corpus, tmp_path):
    rng, wanted, total = random.Random(campaigns.seed), campaigns.size(4, 450), Disturbed()
    while total.kills < wanted:
        url = tmp_path / str(total.updates)
        store, begun, kills, faults = new_store(url), len(cluster.reads()), 0, 0
        arguments = (cluster.address, store.url, corpus.shards, corpus.plan)
        while True:
            more = total.kills + kills < wanted
            steps = (rng.randrange(COORDINATORS_STEPS),) if more else ()
            work = {"work": coordinate_until} if more else {}
            process = coordinator(*steps, *arguments, **work)
            process.join(PATIENCE)
            if process.exitcode == 0:
                break
            assert process.exitcode == -signal.SIGKILL
            kills, faults = kills + 1, faults + lost_or_doubled(store.latest(), corpus)
        total += judged(cluster, corpus, store.latest(), kills, faults, begun)
        shutil.rmtree(url)
    assert total.repeated <= total.kills * corpus.lost
    campaigns.record("coordinator killed in the close", total.kills, total.held, total.note())


def test_updates_in_row_shares_whose_workers_or_coordinators_are_killed(
    campaigns, cluster, corpus, tmp_path
):
    rng, most, total = random.Random(campaigns.seed), campaigns.size(3, 300), Disturbed()
    shared = replace(corpus, plan=replace(corpus.plan, passes=2), seconds=1.5 * corpus.seconds)
    while total.kills < most:
        url, left = tmp_path / str(total.updates), most - total.kills
        blows = [lambda _: cluster.kill_worker(rng), kill_coordinator]
        if turn := total.updates % 3:
            total += disturbed_update(cluster, shared, url, min(left, 4), rng, blows[turn - 1])
        else:
            total += closed_update(cluster, shared, url, min(left, 4), rng)
        shutil.rmtree(url)
    assert total.repeated <= total.kills * shared.lost
    campaigns.record("killed with row shares", total.kills, total.held, total.note())
