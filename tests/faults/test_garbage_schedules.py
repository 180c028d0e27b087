"""Random schedules of writers and garbage collections, on a disk whose files grow old."""

import dataclasses
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from small_store import create, model_of, segment, summed, total

from streaming_moments.errors import StoreError
from streaming_moments.storage.changes import Recount
from streaming_moments.storage.compaction import commit_compaction
from streaming_moments.storage.folders import Folder
from streaming_moments.storage.forgetting import commit_recount
from streaming_moments.storage.garbage import GRACE, OLDEST_COMMITTED, collect, find_garbage
from streaming_moments.storage.layout import MODELS, SEGMENTS
from streaming_moments.storage.store import MomentStore

HOUR = timedelta(hours=1)
STEPS = 22


@dataclass(frozen=True)
class Interrupted(Folder):
    """A folder whose writer is put to sleep once its files are written, before it commits."""

    meanwhile: Callable = field(default=None, compare=False)

    def sync(self, name):
        super().sync(name)
        self.meanwhile()


@dataclass
class Work:
    """What a writer has begun and is to commit, and what the shards are then, if it may."""

    folders: tuple
    commit: Callable
    shards_after: Callable
    begun: timedelta


@dataclass
class Schedule:
    """Steps of writers and collectors in an order drawn from a seed.

    Time passes by making every file older, so the storage's own clock tells the ages.
    """

    rng: np.random.Generator
    root: Path
    outcomes: Counter
    states: list = field(default_factory=lambda: [{}])
    models: int = 0
    works: list = field(default_factory=list)
    found: list = field(default_factory=list)
    asleep: int = 0
    now: timedelta = timedelta(0)

    @property
    def store(self):
        return MomentStore.open(str(self.root))

    @property
    def shards(self):
        return self.states[-1]

    def step(self):
        steps = [self.write, self.write, self.commit, self.commit, self.commit, self.pass_time]
        steps += [self.pass_time, self.find, self.find, self.collect, self.collect, self.die]
        steps += [] if self.asleep else [self.save_model]
        steps += [self.sum_up, self.take_away] if self.shards else []
        steps[self.rng.integers(len(steps))]()

    def write(self):
        seed = int(self.rng.integers(10**6))
        new = {f"s{seed}": seed}
        ready = segment(self.store, new)
        self.begin([ready], lambda: self.store.append(ready), lambda: {**self.shards, **new})

    def sum_up(self):
        store = self.store
        sources, ready = summed(store)
        sources = {(part.id, part.sign) for part in sources}

        def after():
            present = {(part.id, part.sign) for part in self.store.commit.segments}
            return self.shards if sources <= present else None

        def commit():
            return commit_compaction(self.store, store.commit.segments, ready)

        self.begin([ready], commit, after)

    def take_away(self):
        url = str(self.rng.choice(sorted(self.shards)))
        ready = segment(self.store, {url: self.shards[url]})
        recount = Recount("forget", "", removed=(ready,))

        def after():
            left = {shard: seed for shard, seed in self.shards.items() if shard != url}
            return left if url in self.shards else None

        self.begin([ready], lambda: commit_recount(self.store, recount), after)

    def begin(self, segments, commit, shards_after):
        folders = tuple(f"{SEGMENTS}/{part.reference.id}" for part in segments)
        self.works.append(Work(folders, commit, shards_after, self.now))

    def commit(self):
        if self.works:
            work = self.works.pop(self.rng.integers(len(self.works)))
            after = work.shards_after()
            gone = not all((self.root / folder).exists() for folder in work.folders)
            self.decided(work.commit, after, gone, self.now - work.begun)

    def decided(self, commit, after, gone, age):
        """Commit, and see that it is refused where it must be, and only there."""
        old = age > OLDEST_COMMITTED
        if gone or old or after is None:
            expected = "is gone, so" if gone else "too long to be committed" if old else None
            with pytest.raises(Exception, match=expected) as told:
                commit()
            assert isinstance(told.value, StoreError | ValueError)
            self.outcomes["collected" if gone else "too old" if old else "overtaken"] += 1
        else:
            commit()
            self.states.append(after)
            self.outcomes["committed"] += 1

    def save_model(self):
        """A writer that sleeps between the files of its model and its commit."""
        begun = self.now
        places = set(self.folders(MODELS))

        def meanwhile():
            self.asleep += 1
            for _ in range(self.rng.integers(6)):
                self.step()
            self.asleep -= 1

        store = self.store
        folder = Interrupted(store.folder.url, meanwhile=meanwhile)
        sleepy = dataclasses.replace(store, folder=folder)
        self.models += 1
        try:
            sleepy.save_model(f"m{self.models}", model_of(self.models))
        except StoreError as error:
            refusal = str(error)
        else:
            refusal = ""
        too_old = self.now - begun > OLDEST_COMMITTED
        assert bool(refusal) == too_old, refusal or "a model was committed that may be collected"
        if too_old:
            assert re.search("is gone, so|too long to be committed", refusal)
            self.outcomes["model refused"] += 1
        else:
            assert len(self.folders(MODELS) - places) == 1
            self.states.append(self.states[-1])
            self.outcomes["model committed"] += 1

    def die(self):
        if self.works:
            self.works.pop(self.rng.integers(len(self.works)))

    def pass_time(self):
        # half an hour keeps ages off the limits
        self.pass_by(HOUR * (0.5 + float(self.rng.choice([1, 12, 30, 60, 100, 200]))))

    def pass_by(self, time):
        self.now += time
        for path in self.root.rglob("*"):
            if path.is_file():
                written = path.stat().st_mtime_ns - time // timedelta(microseconds=1) * 1000
                os.utime(path, ns=(written, written))

    def find(self):
        nobody_writes = not self.works and not self.asleep
        graces = [timedelta(0), HOUR * 24] if nobody_writes else [GRACE, GRACE, GRACE * 1.5]
        grace = graces[self.rng.integers(len(graces))]
        self.found.append(find_garbage(self.store.folder, grace))

    def collect(self):
        if self.found:
            found = self.found.pop(self.rng.integers(len(self.found)))
            collect(self.store.folder, found)
            self.outcomes["heaps collected"] += len(found)
            if found:
                assert self.store.verify() == []

    def end(self):
        self.works.clear()
        self.pass_by(GRACE * 2)
        self.found.append(find_garbage(self.store.folder))
        while self.found:
            self.collect()
        store = self.store
        assert store.version == len(self.states) - 1
        named = {part.id for commit in store.log() for part in commit.segments}
        kept = {model.id for commit in store.log() for model in commit.models.values()}
        assert {Path(place).name for place in self.folders(SEGMENTS)} == named
        assert {Path(place).name for place in self.folders(MODELS)} == kept
        assert not list(self.root.rglob("*.partial"))
        for version, shards in enumerate(self.states):
            then = store.at(version)
            assert then.verify() == []
            assert then.load() == total(shards.values())

    def folders(self, kind):
        """Folders of segments or models with files in them."""
        depth = 2 if kind == SEGMENTS else 3
        files = (path.relative_to(self.root) for path in (self.root / kind).rglob("*"))
        return {"/".join(path.parts[:depth]) for path in files if len(path.parts) > depth}


def test_collectors_never_take_what_a_commit_names_and_leave_nothing_else(tmp_path, campaigns):
    schedules = campaigns.size(8, 200)
    outcomes, held = Counter(), 0
    for number in range(schedules):
        root = tmp_path / str(number)
        create(root)
        schedule = Schedule(np.random.default_rng([campaigns.seed, number]), root, outcomes)
        try:
            for _ in range(STEPS):
                schedule.step()
            schedule.end()
        except (AssertionError, StoreError, pytest.fail.Exception) as error:
            print(f"schedule {number} of SEED={campaigns.seed}: {error}")
        else:
            held += 1
    note = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
    campaigns.record("schedules of writers and collectors", schedules, held, note)
