"""Writers and garbage collections, in random order and while writers sleep at any operation."""

import dataclasses
import os
import random
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from faulty_disk import SleepyDisk, interposed
from user_actions import (
    COMPACT,
    REBASE,
    SUM,
    appending,
    expiring,
    forgetting,
    growing,
    purging,
    replacing,
    require_swept,
    rolling_back,
    saving,
    state,
    tagging,
)

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.layout import MODELS, SEGMENTS
from streaming_moments.storage.operations.compaction import commit_compaction
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.garbage import GRACE, OLDEST_COMMITTED, collect, find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import append, create, model_of, segment, summed, total

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
            expected = "is missing, so" if gone else "too old to be committed" if old else None
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
            assert re.search("is missing, so|too old to be committed", refusal)
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
            # what was sealed is deleted after a commit that changes nothing
            self.states += [self.shards] * any(heap.is_sealed for heap in found)
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


ACTIONS = (
    appending({"d": 4, "e": 5}),
    replacing({"a": 1}, {"a": 11}),
    forgetting({"b": 2}),
    saving("n", 7),
    tagging("next", "m"),
    rolling_back(1),
    growing(["steam"]),
    expiring(3),
    purging({"b"}),
    COMPACT,
    SUM,
    REBASE,
)


def append_other(url):
    append(MomentStore.open(url), {"other": 9})


class Trials:
    """Actions whose writer sleeps, each on a copy of a store, and what comes of them awake."""

    def __init__(self, folder):
        self.folder, self.numbers = folder, count()
        self.template = folder / "template"
        store = append(append(create(self.template), {"a": 1, "b": 2}), {"c": 3})
        tag(store.save_model("m", model_of(6)), "live", "m")
        self.operations, self.before, self.after = {}, {}, {}
        for action in ACTIONS:
            with self.copied() as url, interposed(SleepyDisk({})) as disk:
                action.act(url)
                self.operations[action] = disk.seen

    def states(self, action, other):
        """States that are right before the action, and after it."""
        if (action, other) not in self.after:
            orders = [(append_other,), (append_other, action.act), (action.act, append_other)]
            orders = orders if other else [(), (action.act,)]
            found = [self.state_after(order) for order in orders]
            self.after[action, other] = found[:1], found[1:]
        return self.after[action, other]

    def state_after(self, acts):
        with self.copied() as url:
            for act in acts:
                act(url)
            return state(MomentStore.open(url))

    @contextmanager
    def copied(self):
        place = self.folder / str(next(self.numbers))
        # nothing in a store is ever written in place
        shutil.copytree(self.template, place, copy_function=os.link)
        try:
            yield str(place)
        finally:
            shutil.rmtree(place)

    def slept(self, action, at, rng):
        """What is wrong after a sleep at one of the operations; and how the action ended."""
        # the other writer knows the old words only
        other = action.name not in ("rebase", "grow") and rng.random() < 0.5
        with self.copied() as url:
            error, wrong = sleep_through(action, at, other, url, rng)
            if error is not None and not re.search(
                "run (this|the command|compact) again", str(error)
            ):
                wrong.append(f"names no remedy: {error!r}")
            before, after = self.states(action, other)
            store = MomentStore.open(url)
            wrong += store.verify()
            assert all(store.at(version) for version in kept_versions(store))
            if state(store) not in (after if error is None else before):
                wrong.append(f"another state after {error!r}")
            if error is not None and rng.random() < 0.3:
                action.act(url)
                if state(MomentStore.open(url)) not in after:
                    wrong.append("another state once it was run again")
            return wrong, "committed" if error is None else "refused"

    def expired(self, action, at):
        """What is wrong after all versions but two expire before an operation; how it ended."""
        with self.copied() as url:
            error, dropped = None, []

            def expire_others(disk):
                dropped.append(expire(MomentStore.open(url), 1, timedelta(0))[1])

            with interposed(SleepyDisk({at: expire_others})):
                try:
                    action.act(url)
                except StoreError as refused:
                    error = refused
            before, after = self.states(action, other=False)
            store = MomentStore.open(url)
            wrong = store.verify()
            assert dropped
            assert all(store.at(version) for version in kept_versions(store))
            # but for which versions are no longer kept
            if state(store)[:-1] not in [one[:-1] for one in (after if error is None else before)]:
                wrong.append(f"another state after {error!r}")
            expire(store, 2, timedelta(0))
            collect(store.folder, find_garbage(store.folder, timedelta(0)))
            require_swept(url)
            return wrong, "committed" if error is None else "refused"


def sleep_through(action, at, other, url, rng):
    """Do the action; before operation `at` its writer sleeps, while gc finds what it will delete.

    It deletes then, or while the writer goes on; another writer may commit at any operation.
    """
    folder, found, wrong = Folder.at(url), [], []

    def guarded(step):
        def run(disk):
            try:
                step(disk)
            except Exception as error:
                # it would be taken for an error of the writer's disk
                if not re.search("has been committed; run this again", str(error)):
                    wrong.append(repr(error))

        return run

    def sleep(disk):
        disk.slept += float(rng.choice([0.6, 1.1, 3.0])) * GRACE.total_seconds()
        found.extend(find_garbage(folder))

    def collect_found(disk):
        collect(folder, found)

    deletes = at + rng.choice([0, 0, 0, 1, 2, 5, 10, 20, 50])
    steps = [(at, sleep), (deletes, collect_found)]
    if other:
        steps.insert(rng.randrange(2), (rng.randrange(at + 20), lambda disk: append_other(url)))
    meanwhile = defaultdict(list)
    for place, step in steps:
        meanwhile[place].append(guarded(step))

    def run_all(steps):
        return lambda disk: [step(disk) for step in steps]

    disk = SleepyDisk({place: run_all(steps) for place, steps in meanwhile.items()})
    error = None
    with interposed(disk):
        try:
            action.act(url)
        except StoreError as refused:
            error = refused
        for place in sorted(disk.meanwhile):
            disk.awake = False
            disk.meanwhile[place](disk)
    return error, wrong


def kept_versions(store):
    return [version for version in range(store.version) if store.commit.keeps(version)]


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    return Trials(tmp_path_factory.mktemp("trials"))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_a_writer_may_sleep_at_any_operation(trials, campaigns, action):
    rng = random.Random(f"{campaigns.seed} {action.name}")
    # a commit that is tried anew has more of them
    places = range(trials.operations[action] + 20)
    outcomes, held = Counter(), 0
    chosen = places if campaigns.long else rng.sample(places, 5)
    for at in chosen:
        wrong, outcome = trials.slept(action, at, rng)
        outcomes[outcome] += 1
        held += not wrong
        if wrong:
            print(f"{action.name}, asleep at operation {at}: {'; '.join(wrong)}")
    note = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
    campaigns.record(f"writers asleep in {action.name}", len(chosen), held, note)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_a_writer_may_sleep_while_versions_expire(trials, campaigns, action):
    rng = random.Random(f"{campaigns.seed} {action.name}")
    places = range(trials.operations[action])
    outcomes, held = Counter(), 0
    chosen = places if campaigns.long else rng.sample(places, 3)
    for at in chosen:
        wrong, outcome = trials.expired(action, at)
        outcomes[outcome] += 1
        held += not wrong
        if wrong:
            print(f"{action.name}, versions expire at operation {at}: {'; '.join(wrong)}")
    note = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
    campaigns.record(f"versions that expire in {action.name}", len(chosen), held, note)
