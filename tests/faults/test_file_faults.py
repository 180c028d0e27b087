"""Faults of a local disk: after any of them the store is as before or as after, and goes on."""

import multiprocessing
import os
import random
import shutil
import signal
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from campaigns import CAMPAIGNS
from faulty_disk import FAULTS, KILL, FaultyDisk, carry_out, interposed
from user_actions import (
    COMPACT,
    CREATE,
    GC,
    SUM,
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
from streaming_moments.storage.store.garbage import find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import segment

ACTIONS = (
    CREATE,
    appending({"d": 4, "e": 5}),
    replacing({"a": 1}, {"a": 11}),
    forgetting({"b": 2}),
    saving("n", 7),
    tagging("next", "m"),
    rolling_back(1),
    # once more it finds nothing to do
    expiring(3),
    purging({"b"}),
    COMPACT,
    SUM,
    GC,
)
BEFORE = (
    CREATE,
    appending({"a": 1, "b": 2}),
    appending({"c": 3}),
    saving("m", 6),
    tagging("live", "m"),
)


class Trials:
    """Actions with faults, each on a copy of a store, and what comes of them undisturbed."""

    def __init__(self, folder):
        self.folder, self.numbers = folder, count()
        self.template = str(folder / "template")
        for action in BEFORE:
            action.act(self.template)
        # nobody committed it
        segment(MomentStore.open(self.template), {"orphan": 9})
        self.before = state(MomentStore.open(self.template))
        self.after, self.operations = {}, {}
        for action in ACTIONS:
            self.undisturbed(action)

    def copy(self, action):
        url = str(self.folder / str(next(self.numbers)) / "store")
        if action is not CREATE:
            # nothing in a store is ever written in place
            shutil.copytree(self.template, url, copy_function=os.link)
        return url

    def undisturbed(self, action):
        url, kinds = self.copy(action), []

        def noted(operation, apply):
            kinds.append(operation.kind)
            return apply(operation)

        with interposed(noted):
            action.act(url)
        self.after[action] = state(MomentStore.open(url))
        self.operations[action] = kinds

    def places(self, action, fault):
        """How many operations of the action the fault could strike."""
        return sum(kind in fault.kinds for kind in self.operations[action])

    def stand(self, action, fault, at):
        """Fail unless the store stands a fault."""
        url = self.copy(action)
        error = (killed if fault is KILL else failed)(action, fault, at, url)
        applied = self.require_sound(action, url, error)
        self.resume(action, url, applied)
        shutil.rmtree(Path(url).parent)

    def require_sound(self, action, url, error):
        """Whether the action was applied; the store is as before it or as after it."""
        try:
            store = MomentStore.open(url)
        except StoreError as refused:
            self.require_uncreated(action, error, str(refused))
            return False
        assert store.verify() == []
        # what no version names is collected in a commit of its own
        applied = action is CREATE or store.version >= len(BEFORE)
        assert applied or error is not None or action is GC
        assert state(store) == (self.after[action] if applied else self.before)
        return applied

    def require_uncreated(self, action, error, refused):
        assert action is CREATE
        assert error is not None
        assert "create" in refused

    def resume(self, action, url, applied):
        try:
            action.act(url)
        except action.already:
            assert applied
        GC.act(url)
        store = MomentStore.open(url)
        assert find_garbage(store.folder, timedelta(0)) == []
        assert store.verify() == []
        assert state(store) == self.after[action]
        action.require(url)


def failed(action, fault, at, url):
    """The error of the action, which is of one kind; None if it went on in spite of the fault."""
    disk = FaultyDisk(fault, at)
    try:
        with interposed(disk):
            action.act(url)
    except StoreError as error:
        return error
    finally:
        assert disk.struck
    return None


def killed(action, fault, at, url):
    """Do the action in a process that is killed."""

    def act():
        with interposed(FaultyDisk(fault, at)):
            action.act(url)

    process = multiprocessing.get_context("fork").Process(target=act)
    process.start()
    process.join(timeout=60)
    if process.is_alive():
        process.kill()
        process.join()
        raise AssertionError("the process hangs")
    assert process.exitcode == -signal.SIGKILL
    return "killed"


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    with interposed(carry_out):
        yield Trials(tmp_path_factory.mktemp("trials"))


def pytest_generate_tests(metafunc):
    """In the long form each fault of an action is a test of its own, of minutes."""
    if "fault" in metafunc.fixturenames:
        faults = FAULTS if metafunc.config.stash[CAMPAIGNS].long else [None]
        metafunc.parametrize("fault", faults, ids=lambda fault: fault.name if fault else "drawn")


def drawn(trials, campaigns, action, fault):
    """Faults, each with the place at which it strikes: all places of the one, or two faults."""
    if fault is not None:
        return [(fault, at) for at in range(trials.places(action, fault))]
    rng = random.Random(f"{campaigns.seed} {action.name}")
    faults = rng.sample([fault for fault in FAULTS if trials.places(action, fault)], 2)
    return [(fault, rng.randrange(trials.places(action, fault))) for fault in faults]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_an_action_stands_a_fault_at_any_operation(trials, campaigns, action, fault):
    broken, faults = [], drawn(trials, campaigns, action, fault)
    if not faults:
        pytest.skip(f"{action.name} does nothing that this could strike")
    for struck, at in faults:
        try:
            trials.stand(action, struck, at)
        except (AssertionError, StreamingMomentsError, OSError) as error:
            broken.append(f"{struck.name} at operation {at}: {error!r}")
    print("\n".join(broken))
    what = f"{fault.name} in" if fault else "faults in"
    campaigns.record(f"disk: {what} {action.name}", len(faults), len(faults) - len(broken))
