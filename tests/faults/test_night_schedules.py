"""Nights that are stopped anywhere and go on after others: the later run's word is the last."""

import shutil
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count

import numpy as np
import pytest
from night_corpus import CREATE, REFIT, require_counted_once, shard
from stepping_clocks import set_clock

from streaming_moments.errors import StreamingMomentsError
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.locks import Lock, LockHeld
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.store.garbage import find_garbage
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
PATIENCE = 120
# not before files are read: what was read before a stop and used after it is the fault to provoke,
# and cached properties, which read, hold a lock of all threads in Python 3.11
OPERATIONS = ("names", "exists", "write", "create", "clock", "delete", "sync")
REAL = {name: getattr(Folder, name) for name in OPERATIONS}
# what there is to do for a night beside counting and fitting
DEEDS = {
    "compact": {"update": {"compact_after": 2, "compact_by": "all"}},
    "grow": {"growth": {"outside_above": 0.01, "words": 3}},
    "grow untold": {"growth": None},
    "rebase": {"rebase": {"max_outside_share": 0.01, "not_again_for": "0s"}},
    "reject": {"gates": {"min_documents": 10**6}},
}


@pytest.fixture(scope="module")
def cluster():
    with connect() as embedded:
        yield embedded


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, cluster):
    """Shards by night, and a store in which the first is counted and its model published."""
    place = tmp_path_factory.mktemp("nights")
    for number in range(4):
        (place / f"{number}.txt").write_bytes(shard(number))
    nightly(configured(place, place / "store", 1, "compact"), cluster, quiet)
    return place


def configured(corpus, store, shards, deed):
    return config_of(
        {
            "store": str(store),
            "shards": [str(corpus / f"{number}.txt") for number in range(shards)],
            "output": f"{store}-reports",
            "lock_expiry": "1h",
            "create": CREATE,
            "refit": REFIT,
            "growth": {"enabled": False},
            **DEEDS[deed],
        },
        "",
    )


def quiet(step):
    pass


@dataclass
class Schedule:
    """Two nights in threads, one of which goes on at a time, until it is to stop or ends.

    `stops` are the operations of the storage before which a night hands over, by its name;
    `passing` says whether its lock's time is over by then.
    """

    stops: dict
    passing: dict
    configs: dict
    cluster: object
    operations: dict = field(default_factory=lambda: defaultdict(list))
    steps: dict = field(default_factory=dict)
    ends: dict = field(default_factory=dict)
    acquired: list = field(default_factory=list)
    committed: dict = field(default_factory=dict)
    stopped: list = field(default_factory=list)
    ahead: timedelta = timedelta(0)
    turn: str = ""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def run(self):
        threads = [
            threading.Thread(target=self.night, args=(name,), name=name, daemon=True)
            for name in self.configs
        ]
        for thread in threads:
            thread.start()
        self.hand_to(next(iter(self.configs)))
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a night hangs"

    def night(self, name):
        self.wait_for(name)
        try:
            self.ends[name] = nightly(self.configs[name], self.cluster, self.told(name)).outcome
        except Exception as error:
            self.ends[name] = error
        self.hand_over(name)

    def told(self, name):
        return lambda step: self.steps.update({name: step.step})

    def before_operation(self, operation):
        name = threading.current_thread().name
        if name not in self.configs:
            return
        self.operations[name].append(operation)
        if len(self.operations[name]) in self.stops[name] and self.others(name):
            self.stopped.append(f"after {self.steps.get(name, 'nothing')}")
            if self.passing[name]:
                self.ahead += timedelta(hours=2)
            self.hand_over(name)
            self.wait_for(name)

    def others(self, name):
        return [other for other in self.configs if other != name and other not in self.ends]

    def hand_over(self, name):
        self.hand_to(next(iter(self.others(name)), ""))

    def hand_to(self, name):
        with self.changed:
            self.turn = name
            self.changed.notify_all()

    def wait_for(self, name):
        with self.changed:
            assert self.changed.wait_for(lambda: self.turn == name, PATIENCE)

    def watched(self, monkeypatch):
        """Stops at each operation; who took the lock when, and made which commit."""

        def stopping(operation):
            def stopped(folder, *arguments):
                self.before_operation(" ".join([operation, *map(str, arguments[:1])]))
                found = REAL[operation](folder, *arguments)
                return found + self.ahead if operation == "clock" else found

            return stopped

        for operation in OPERATIONS:
            monkeypatch.setattr(Folder, operation, stopping(operation))
        put, acquire = CommitLog.put, Lock.acquire

        def noted(log, commit):
            self.committed[commit.transaction] = threading.current_thread().name
            put(log, commit)

        def first(folder, expiry, patience):
            lock = acquire(folder, expiry, patience)
            self.acquired.append(threading.current_thread().name)
            return lock

        monkeypatch.setattr(CommitLog, "put", noted)
        monkeypatch.setattr(Lock, "acquire", first)

    def require_order(self, store):
        """No commit of a run after one of a later run, and no older run's model published."""
        log = [commit for commit in reversed(store.log()) if commit.transaction in self.committed]
        runs = [self.acquired.index(self.committed[commit.transaction]) for commit in log]
        assert runs == sorted(runs), "a commit of a run that was taken over"
        of_models = {}
        for commit, run in zip(log, runs, strict=True):
            of_models |= {name: run for name in commit.models if name not in of_models}
            if commit is log[0]:
                of_models |= dict.fromkeys(store.at(commit.version - 1).models, -1)
        published = [of_models[commit.tags["published"]] for commit in log]
        assert published == sorted(published), "the model of an older run is published again"


def outcome_of(deed):
    return "rejected" if deed == "reject" else "published"


def operations_of(corpus, deed, cluster, place):
    """Operations of the storage of a night that nobody disturbs, in order."""
    shutil.copytree(corpus / "store", place)
    configs = {"a": configured(corpus, place, 2, deed)}
    schedule = Schedule({"a": ()}, {"a": False}, configs, cluster)
    with pytest.MonkeyPatch.context() as patch:
        schedule.watched(patch)
        schedule.run()
    assert schedule.ends == {"a": outcome_of(deed)}
    return schedule.operations["a"]


@pytest.mark.long
def test_a_night_that_sleeps_anywhere_undoes_nothing_of_another(
    corpus, cluster, tmp_path, campaigns
):
    schedules = campaigns.size(8, 200)
    operations = {
        deed: operations_of(corpus, deed, cluster, tmp_path / f"alone-{deed}") for deed in DEEDS
    }
    ends, stopped, held = Counter(), Counter(), 0
    for number in range(schedules):
        rng = np.random.default_rng([campaigns.seed, number])
        deed = [*DEEDS][number % len(DEEDS)]
        store, most = tmp_path / str(number), len(operations[deed])
        stops = {"a": {int(rng.integers(1, most))}, "b": ()}
        passing = {"a": True, "b": rng.random() < 0.5}
        if number // len(DEEDS) % 2:
            # between the renewal of the lock and a commit, and the other night runs to its end
            named = enumerate(operations[deed], 1)
            commits = [at for at, one in named if one.startswith("create commits/")]
            stops["a"] = {int(rng.choice([*commits, commits[-1]]) - rng.integers(2))}
        else:
            # spread over all that a night does, and both may stop again
            stops["a"] |= {int((number + rng.random()) / schedules * most) + 1}
            stops["b"] = {int(rng.integers(1, most))} if rng.random() < 0.7 else ()
            passing["a"] = rng.random() < 0.85
        shutil.copytree(corpus / "store", store)
        configs = {name: configured(corpus, store, n, deed) for name, n in (("a", 2), ("b", 3))}
        schedule = Schedule(stops, passing, configs, cluster)
        try:
            with pytest.MonkeyPatch.context() as patch:
                schedule.watched(patch)
                schedule.run()
                for end in schedule.ends.values():
                    if isinstance(end, Exception):
                        assert isinstance(end, StreamingMomentsError), repr(end)
                schedule.require_order(MomentStore.open(str(store)))
                if campaigns.long or number % 3 == 0:
                    # the next night finds nothing that it cannot finish
                    last = nightly(configured(corpus, store, 4, deed), cluster, quiet)
                    assert (last.outcome, last.status.shards) == (outcome_of(deed), 4)
            require_counted_once(MomentStore.open(str(store)))
        except (AssertionError, StreamingMomentsError) as error:
            print(f"schedule {number} of SEED={campaigns.seed}, {deed}, {stops}: {error!r}")
        else:
            held += 1
        stopped.update(schedule.stopped)
        kinds = (
            "taken over" if isinstance(end, LockHeld) else type(end).__name__
            for end in schedule.ends.values()
            if isinstance(end, Exception)
        )
        ends.update(kinds)
        shutil.rmtree(store)
    counts = (*ends.most_common(), *stopped.most_common())
    note = ", ".join(f"{times} {what}" for what, times in counts)
    campaigns.record("schedules of nights that are stopped", schedules, held, note)


@pytest.mark.long
def test_a_night_during_which_the_clock_is_set_back_ends_as_any_other(
    corpus, cluster, tmp_path, campaigns
):
    nights, held, done = campaigns.size(2, 100), 0, Counter()
    deeds = [*DEEDS][:nights]
    operations = {
        deed: len(operations_of(corpus, deed, cluster, tmp_path / f"alone-{deed}"))
        for deed in deeds
    }
    for number in range(nights):
        rng = np.random.default_rng([campaigns.seed, 7, number])
        deed, store = deeds[number % len(deeds)], tmp_path / str(number)
        at, by = int(rng.integers(1, operations[deed])), int(rng.integers(1, 24))
        shutil.copytree(corpus / "store", store)
        passed = count(1)

        def setting(operation, at=at, by=by, store=store, passed=passed):
            def call(folder, *arguments):
                if next(passed) == at:
                    set_clock(timedelta(hours=-by), store, f"{store}-reports")
                return REAL[operation](folder, *arguments)

            return call

        try:
            with pytest.MonkeyPatch.context() as patch:
                for operation in OPERATIONS:
                    patch.setattr(Folder, operation, setting(operation))
                ended = nightly(configured(corpus, store, 3, deed), cluster, quiet)
            assert (ended.outcome, ended.status.shards) == (outcome_of(deed), 3)
            assert next(passed) > at
            opened = MomentStore.open(str(store))
            # what was written before is no older than it is, nor what came since
            assert find_garbage(opened.folder, timedelta(hours=1)) == []
            opened, _ = expire(opened, 3, timedelta(hours=1))
            # and once the clock is right again
            set_clock(timedelta(hours=by), store, f"{store}-reports")
            assert find_garbage(opened.folder, timedelta(days=2)) == []
            last = nightly(configured(corpus, store, 4, deed), cluster, quiet)
            assert (last.outcome, last.status.shards) == (outcome_of(deed), 4)
            require_counted_once(MomentStore.open(str(store)))
        except (AssertionError, StreamingMomentsError) as error:
            print(f"night {number} of SEED={campaigns.seed}, {deed}, {at}: {error!r}")
        else:
            held += 1
        done[deed] += 1
        shutil.rmtree(store)
    note = ", ".join(f"{times} {what}" for what, times in done.items())
    campaigns.record("nights during which the clock is set back", nights, held, note)
