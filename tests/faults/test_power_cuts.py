"""Power cuts: what was reported as done is there in full, and the work goes on."""

import random
import shutil
from dataclasses import dataclass
from functools import partial
from itertools import count

import pytest
from faulty_disk import WRITING, carry_out, interposed
from power_cuts import CutDisk
from user_actions import (
    COMPACT,
    CREATE,
    GC,
    SUM,
    Action,
    appending,
    expiring,
    forgetting,
    purging,
    replacing,
    rolling_back,
    saving,
    state,
    tagging,
)

from streaming_moments.errors import StoreError, StreamingMomentsError
from streaming_moments.storage.log.layout import COMMITS, SEGMENTS
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import segment

# the folders above the store are new as well
PLACE = "made/on/the/way/store"
ORPHAN = Action("orphan", lambda url: segment(MomentStore.open(url), {"orphan": 9}))
ACTIONS = (
    CREATE,
    appending({"a": 1, "b": 2}),
    saving("m", 6),
    tagging("live", "m"),
    appending({"c": 3}),
    ORPHAN,
    GC,
    forgetting({"b": 2}),
    replacing({"a": 1}, {"a": 11}),
    rolling_back(4),
    COMPACT,
    appending({"d": 4}),
    SUM,
    GC,
    saving("n", 7),
    expiring(3),
    purging({"c"}),
)


@dataclass(frozen=True)
class Record:
    """A run without a cut: its operations, and for each action what there is when it is done.

    Parameters
    ----------
    root : str
        Folder in which all of it happened.
    operations : list of Operation
        In order.
    ends : list of int
        Operations before the report that the action is done.
    versions : list of int
        Latest version at that report.
    states : list
        State by version.
    """

    root: str
    operations: list
    ends: list
    versions: list
    states: list


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    root = tmp_path_factory.mktemp("record")
    url, operations, ends, versions, states = str(root / PLACE), [], [], [], []

    def noted(operation, apply):
        result = apply(operation)
        if operation.kind in WRITING:
            operations.append(operation)
        return result

    for action in ACTIONS:
        with interposed(noted):
            action.act(url)
        ends.append(len(operations))
        store = MomentStore.open(url)
        versions.append(store.version)
        states.extend([state(store)] * (store.version == len(states)))
    return Record(str(root), operations, ends, versions, states)


def cut(record, at, dropped, folder, rng):
    """A fresh folder with what a cut before operation `at` leaves of all but what is dropped."""
    disk = CutDisk(record.root)
    for operation in record.operations[:at]:
        if not dropped(operation):
            disk.apply(operation)
    disk.materialise(folder, rng, loss=rng.choice([0.0, 0.5, 1.0]))
    return str(folder / PLACE)


def require_sound(record, url, done, rng):
    """Number of actions that have an effect; fails unless these are all that were reported."""
    try:
        store = MomentStore.open(url)
    except StoreError as refused:
        require_uncreated(done, str(refused))
        return 0
    reported = record.versions[done - 1] if done else -1
    assert store.version in (reported, record.versions[min(done, len(ACTIONS) - 1)])
    assert store.verify() == []
    assert state(store) == record.states[store.version]
    version = rng.randint(0, store.version)
    if rng.random() < 0.2 and store.commit.keeps(version):
        earlier = store.at(version)
        assert earlier.verify() == []
        assert state(earlier) == record.states[earlier.version]
    if done == len(ACTIONS):
        ACTIONS[-1].require(url)
    return done + (store.version > reported)


def require_uncreated(done, refused):
    assert done == 0, refused
    assert "create" in refused


def require_resumed(record, url, applied, last):
    """Go on with the actions that had no effect up to one of them."""
    for action in ACTIONS[applied : last + 1]:
        action.act(url)
    store = MomentStore.open(url)
    assert store.verify() == []
    # with what the cut has left, a purge collects garbage in a commit of its own
    collected = last == len(ACTIONS) - 1 and store.commit.operation == "gc"
    version = record.versions[max(applied - 1, last)]
    assert store.version == version + collected
    assert state(store) == record.states[version]
    if applied <= last:
        ACTIONS[last].require(url)


def broken(record, folder, rng, at, dropped=lambda operation: False):
    """What a cut before operation `at` breaks; empty if nothing."""
    done = sum(end <= at for end in record.ends)
    try:
        url = cut(record, at, dropped, folder, rng)
        applied = require_sound(record, url, done, rng)
        # mostly the action that was cut off, sometimes all that is left
        last = len(ACTIONS) - 1 if rng.random() < 0.05 else min(done, len(ACTIONS) - 1)
        require_resumed(record, url, applied, last)
    except (AssertionError, StreamingMomentsError, OSError) as error:
        return f"cut before operation {at}: {error!r}"[:2000]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


def places(record, rng, size):
    """Operations to cut before: each once where there are enough cuts, then more at random."""
    every = list(range(len(record.operations) + 1))
    rng.shuffle(every)
    return [*every, *rng.choices(every, k=max(0, size - len(every)))][:size]


def test_what_was_reported_outlasts_a_power_cut(record, tmp_path, campaigns):
    rng, folders = random.Random(campaigns.seed), (tmp_path / str(n) for n in count())
    cuts = places(record, rng, campaigns.size(16, 600))
    with interposed(carry_out):
        found = [broken(record, next(folders), rng, at) for at in cuts]
    losses = [message for message in found if message]
    print("\n".join(losses))
    note = f"{len(record.operations)} operations"
    campaigns.record("disk: power cuts", len(cuts), len(cuts) - len(losses), note)


def syncs(kind, folder, operation):
    return operation.kind == kind and f"/store/{folder}" in operation.path


LEFT_OUT = (
    ("sync file", COMMITS),
    ("sync folder", COMMITS),
    ("sync file", SEGMENTS),
    ("sync folder", SEGMENTS),
)


@pytest.mark.parametrize(("kind", "folder"), LEFT_OUT)
def test_a_sync_that_is_left_out_is_found(record, tmp_path, campaigns, kind, folder):
    rng, folders = random.Random(campaigns.seed), (tmp_path / str(n) for n in count())
    left_out = partial(syncs, kind, folder)
    ends = rng.choices(record.ends, k=50)
    with interposed(carry_out):
        assert any(broken(record, next(folders), rng, at, left_out) for at in ends)


def test_what_was_purged_does_not_come_back(record, tmp_path, campaigns):
    rng, folders = random.Random(campaigns.seed), (tmp_path / str(n) for n in count())
    cuts = campaigns.size(4, 100)
    with interposed(carry_out):
        found = [broken(record, next(folders), rng, len(record.operations)) for _ in range(cuts)]
    losses = [message for message in found if message]
    print("\n".join(losses))
    campaigns.record("disk: power cuts after a purge", cuts, cuts - len(losses))
