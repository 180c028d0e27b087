"""Random histories of two writers against a dictionary: the same state, bit for bit.

`STREAMING_MOMENTS_HISTORIES` is the number of histories; `make faults` sets it.
"""

import multiprocessing
import os
import shutil
import signal
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from faulty_disk import KILL, FaultyDisk, interposed
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.log.covering import reference_of
from streaming_moments.storage.log.forgotten import ShardsForgotten
from streaming_moments.storage.log.ledger import ShardsAlreadyCounted
from streaming_moments.storage.operations.compaction import commit_compaction
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.history import difference, rollback, tag
from streaming_moments.storage.operations.purges.traces import traces_of
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.garbage import collect, find_garbage, unswept
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    append,
    create,
    forget,
    model_of,
    purge,
    record,
    replace,
    segment,
    sum_beside,
    summed,
    total,
)

HISTORIES = int(os.environ.get("STREAMING_MOMENTS_HISTORIES", "6"))
WRITERS = st.integers(0, 1)
SHARDS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9), min_size=1, max_size=3)
TAGS = st.sampled_from(["live", "next"])
SIGNS = (1, -1)
# memory where there is some, as thousands of files are synced
PLACE = "/dev/shm" if Path("/dev/shm").is_dir() else None


def keys(parts):
    return {(reference_of(part).id, reference_of(part).sign) for part in parts}


def of_one_sign(store, sign):
    """The first parts of a version that are added, or subtracted; empty if there is only one."""
    parts = [part for part in store.parts if reference_of(part).sign == sign]
    return parts[:3] if len(parts) > 1 else []


class TwoWriters(RuleBasedStateMachine):
    """Each writer keeps the snapshot of its own last action, so most actions are rebased.

    `versions` holds what each version must be: seeds by shard, seeds by model, models by tag.
    """

    compactions = Bundle("compactions")

    def __init__(self):
        super().__init__()
        self.place = Path(tempfile.mkdtemp(dir=PLACE))
        store = create(self.place / "store")
        self.writers = [store, store]
        self.versions = [({}, {}, {})]
        self.gone = set()
        self.listed = [set()]  # of each version the names that must not be counted again
        self.purged = set()
        self.models = 0
        self.lost = set()

    @property
    def now(self):
        return self.versions[-1]

    def committed(self, writer, store, shards=None, models=None, tags=None, listed=None):
        old = self.now
        self.listed.append(self.listed[-1] if listed is None else listed)
        self.writers[writer] = store
        self.versions.append(
            (
                old[0] if shards is None else shards,
                old[1] if models is None else models,
                old[2] if tags is None else tags,
            )
        )

    def counted(self, data):
        """Choose some of the shards that are counted now."""
        names = data.draw(st.sets(st.sampled_from(sorted(self.now[0])), min_size=1))
        return {url: self.now[0][url] for url in sorted(names)}

    @rule(writer=WRITERS, shards=SHARDS)
    def ingest(self, writer, shards):
        store, known = self.writers[writer], self.now[0]
        already = known.keys() & shards.keys()
        if already:
            with pytest.raises(ShardsAlreadyCounted) as told:
                append(store, shards)
            assert set(told.value.urls) == already
        elif kept_away := (self.listed[-1] | self.purged) & shards.keys():
            with pytest.raises(ShardsForgotten) as told:
                append(store, shards)
            assert set(told.value.urls) == kept_away
        else:
            self.committed(writer, append(store, shards), {**known, **shards})

    def ingest_two(self, writer):
        """Count two allowed shards, each in a separate segment."""
        away = self.now[0].keys() | self.listed[-1] | self.purged
        for seed, name in enumerate(sorted({*"abcdef"} - away)[:2]):
            after = append(self.writers[writer], {name: seed})
            self.committed(writer, after, {**self.now[0], name: seed})

    @rule(writer=WRITERS, shards=SHARDS)
    def ingest_what_was_forgotten(self, writer, shards):
        store, known = self.writers[writer], self.now[0]
        fresh = {url: seed for url, seed in shards.items() if url not in known}
        if fresh:
            after = store.append(segment(store, fresh), again=True)
            self.purged -= fresh.keys()
            listed = self.listed[-1] - fresh.keys()
            self.committed(writer, after, {**known, **fresh}, listed=listed)

    @rule(writer=WRITERS, shards=SHARDS, at=st.integers(0, 90))
    def killed(self, writer, shards, at):
        store, known = self.writers[writer], self.now[0]
        away = known.keys() | self.listed[-1] | self.purged
        fresh = {url: seed for url, seed in shards.items() if url not in away}

        if not fresh:
            return
        ended = self.interrupted(at, lambda: append(store, fresh))
        after = MomentStore.open(store.url)
        if after.version == len(self.versions):
            self.committed(writer, after, {**known, **fresh})
        else:
            assert not ended, "it was killed before its commit"
            self.writers[writer] = after

    def interrupted(self, at, act):
        """Act in a process that is killed at a disk operation; returns whether it finished."""

        def mortal():
            with interposed(FaultyDisk(KILL, at)):
                act()

        process = multiprocessing.get_context("fork").Process(target=mortal)
        process.start()
        process.join(timeout=60)
        assert process.exitcode in (0, -signal.SIGKILL)
        return not process.exitcode

    @precondition(lambda self: self.now[0])
    @rule(writer=WRITERS, data=st.data(), lists=st.booleans())
    def forget(self, writer, data, lists):
        gone, store = self.counted(data), self.writers[writer]
        left = {url: seed for url, seed in self.now[0].items() if url not in gone}
        away = Recount("forget", "", removed=(segment(store, gone),), lists=lists)
        listed = self.listed[-1] | (gone.keys() if lists else set())
        self.committed(writer, commit_recount(store, away), left, listed=listed)

    @precondition(lambda self: self.now[0])
    @rule(writer=WRITERS, data=st.data(), other=st.integers(10, 19))
    def modified(self, writer, data, other):
        old = self.counted(data)
        # what replaced it before is not another content
        new = dict.fromkeys(old, other + 10 * (other in old.values()))
        with pytest.raises(InvalidInput):
            forget(self.writers[writer], new)
        with pytest.raises(ShardsAlreadyCounted):
            append(self.writers[writer], new)
        self.committed(writer, replace(self.writers[writer], old, new), {**self.now[0], **new})

    @rule(writer=WRITERS, data=st.data())
    def rollback(self, writer, data):
        version = data.draw(st.integers(0, len(self.versions) - 1))
        if version in self.gone:
            with pytest.raises(StoreError, match="has expired"):
                rollback(self.writers[writer], version)
        else:
            was = self.versions[version]
            listed = (self.listed[-1] | self.listed[version]) - was[0].keys()
            self.committed(writer, rollback(self.writers[writer], version), *was, listed)

    @rule(writer=WRITERS, keep=st.integers(1, 6), models=st.booleans())
    def expire(self, writer, keep, models):
        store, dropped = expire(self.writers[writer], keep, timedelta(0), models)
        if dropped.versions or dropped.models:
            left = {name: seed for name, seed in self.now[1].items() if name not in dropped.models}
            self.committed(writer, store, models=left)
            self.expired(store, dropped.versions)
        assert unswept(store.folder, store.latest().commit) == []

    @precondition(lambda self: self.now[0])
    @rule(writer=WRITERS, data=st.data())
    def purge(self, writer, data):
        gone = self.counted(data).keys()
        store = purge(self.writers[writer], gone)
        shards = {url: seed for url, seed in self.now[0].items() if url not in gone}
        models = {name: seed for name, seed in self.now[1].items() if name in store.models}
        tags = {name: model for name, model in self.now[2].items() if model in models}
        self.purged |= gone
        while store.version >= len(self.versions):
            self.committed(writer, store, shards, models, tags)
        before = range(len(self.versions) - 1)
        self.expired(store, {one for one in before if not store.commit.keeps(one)} - self.gone)
        for version in set(before) - self.gone:
            assert gone.isdisjoint(self.versions[version][0])
        assert all(store.commit.keeps(model.version) for model in store.models.values())
        assert traces_of(store.folder, gone) == ()

    def expired(self, store, versions):
        """Versions expire, and writers with an expired version open the latest one."""
        self.gone |= set(versions)
        self.writers = [
            one if store.commit.keeps(one.version) else store.latest() for one in self.writers
        ]

    @rule(writer=WRITERS)
    def fit(self, writer):
        name, store = f"m{self.models}", self.writers[writer]
        kept = store.save_model(name, model_of(self.models))
        self.committed(writer, kept, models={**self.now[1], name: self.models})
        self.models += 1

    @precondition(lambda self: self.now[1])
    @rule(writer=WRITERS, name=TAGS, data=st.data())
    def tag(self, writer, name, data):
        model = data.draw(st.sampled_from(sorted(self.now[1])))
        store = tag(self.writers[writer], name, model)
        self.committed(writer, store, tags={**self.now[2], name: model})

    @rule(target=compactions, writer=WRITERS)
    def sum_up(self, writer):
        return summed(self.writers[writer])

    @rule(writer=WRITERS, compaction=consumes(compactions))
    def compact(self, writer, compaction):
        sources, ready = compaction
        store = self.writers[writer]
        present = {part.id for part in store.latest().commit.segments}
        alive = ready is None or store.folder.files(f"segments/{ready.reference.id}")
        if sources and alive and present.issuperset(part.id for part in sources):
            self.committed(writer, commit_compaction(store, sources, ready))
        else:
            with pytest.raises(StoreError):
                commit_compaction(store, sources, ready)

    @rule(writer=WRITERS, planner=WRITERS, data=st.data(), at=st.none() | st.integers(0, 90))
    def sum_beside(self, writer, planner, data, at):
        """Merge parts of a snapshot that may be old; the state must not change."""
        found = [of_one_sign(self.writers[planner], sign) for sign in SIGNS]
        if not any(found):
            self.ingest_two(planner)
            found = [of_one_sign(self.writers[planner], sign) for sign in SIGNS]
        store = self.writers[writer].latest()
        parts = data.draw(st.sampled_from([one for one in found if one] or [()]))
        if not parts:
            return
        if not keys(parts) <= keys(store.parts):
            with pytest.raises(StoreError):
                sum_beside(store, parts)
        elif at is None:
            after = sum_beside(self.writers[writer], parts)
            assert len(after.parts) == len(store.parts) - len(parts) + 1
            self.committed(writer, after)
        else:
            self.interrupted(at, lambda: sum_beside(store, parts))
            after = MomentStore.open(store.url)
            if after.version == len(self.versions):
                self.committed(writer, after)

    @precondition(lambda self: self.writers[0].latest().commit.live_sums)
    @rule(data=st.data())
    def lose_a_sum(self, data):
        """Collect garbage as a version without sums does."""
        store = self.writers[0].latest()
        lost = data.draw(st.sampled_from([one.id for one in store.commit.live_sums]))
        shutil.rmtree(self.place / "store/segments" / lost, ignore_errors=True)
        self.lost.add(lost)

    @rule(writer=WRITERS, orphan=st.booleans())
    def collect_garbage(self, writer, orphan):
        store = self.writers[writer]
        if orphan:
            segment(store, {"z": 1})
        found = find_garbage(store.folder, timedelta(0))
        assert len(found) >= orphan
        collect(store.folder, found)
        # what was sealed is deleted after a commit that changes nothing
        committed = any(heap.is_sealed for heap in found)
        self.versions += [self.now] * committed
        self.listed += [self.listed[-1]] * committed
        assert find_garbage(store.folder, timedelta(0)) == []

    @rule(writer=WRITERS)
    def reopen(self, writer):
        self.writers[writer] = MomentStore.open(self.writers[writer].url)

    @invariant()
    def the_latest_version_is_what_it_must_be(self):
        self.require(self.writers[0].latest(), len(self.versions) - 1)

    def teardown(self):
        store = MomentStore.open(self.writers[0].url)
        problems = store.verify()
        assert all(any(one in line for one in self.lost) for line in problems), problems
        kept = [version for version in range(len(self.versions)) if version not in self.gone]
        for version in kept:
            self.require(store.at(version), version)
        first = self.versions[kept[0]][0]
        found = difference(store, kept[0], kept[-1])
        assert {shard.url for shard in found.added} >= self.now[0].keys() - first.keys()
        shutil.rmtree(self.place)

    def require(self, store, version):
        shards, models, tags = self.versions[version]
        assert store.version == version
        assert store.load() == total(shards.values())
        assert set(store.ledger()) == {record(url, seed) for url, seed in shards.items()}
        assert store.commit.shards == len(shards)
        assert [*store.models] == [*models]
        assert store.commit.tags == tags
        assert set(store.commit.forgotten.names) == self.listed[version]
        for name, seed in models.items():
            assert store.load_model(name).topics.tolist() == model_of(seed).topics.tolist()


TestTwoWriters = TwoWriters.TestCase
TestTwoWriters.settings = settings(
    max_examples=HISTORIES,
    stateful_step_count=14,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    print_blob=True,
)
