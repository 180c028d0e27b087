"""Processes of commands that are killed, or stopped, and run again: nothing is lost or doubled."""

import json
import os
import random
import shutil
import signal
import time
from datetime import timedelta

import pytest
from killable_cluster import PATIENCE, wait_for
from night_corpus import CREATE, REFIT, command, require_counted_once, shard
from user_actions import require_swept

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.nightly.config import read_config
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import Lock, LockHeld
from streaming_moments.storage.store.store import MomentStore

SHARDS = 4


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, few_blocks):
    """Shards and stores: of a night that has counted the first, and with all counted."""
    place = tmp_path_factory.mktemp("commands")
    (place / "0.txt").write_bytes(shard(0))
    with connect() as cluster:
        nightly(read_config(configured(place, place / "night")), cluster, lambda step: None)
        shutil.copytree(place / "night", place / "counted")
        for number in range(1, SHARDS):
            (place / f"{number}.txt").write_bytes(shard(number))
        listed = list_shards([str(place / "*.txt")])
        update(MomentStore.open(str(place / "counted")), listed, Run(cluster))
    # the first process waits for what all are forked from
    command("status", place / "counted").join(PATIENCE)
    return place


def configured(corpus, store):
    path = store.with_suffix(".toml")
    sections = "".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        for name, keys in (("create", CREATE), ("refit", REFIT))
    )
    path.write_text(
        f'store = "{store}"\nshards = "{corpus}/*.txt"\noutput = "{store}-reports"\n'
        f'lock_expiry = "1s"\n{sections}'
    )
    return str(path)


def begun(name, corpus, store):
    """A process of a command, as soon as the lock of a night that was killed has expired."""

    def is_free():
        try:
            Lock.acquire(Folder.at(str(store)), timedelta(seconds=1)).release()
        except LockHeld:
            return False
        return True

    wait_for(is_free)
    given = ("nightly", configured(corpus, store)) if name == "nightly" else (name, store)
    return command(*given)


def finished(name, corpus, store):
    """Run a command to its end, and see what the store is then; gives seconds."""
    start, process = time.monotonic(), begun(name, corpus, store)
    process.join(PATIENCE)
    seconds = time.monotonic() - start
    assert process.exitcode in ((0, 10) if name == "nightly" else (0,))
    done = MomentStore.open(str(store))
    assert require_counted_once(done) == SHARDS
    if name == "nightly":
        fitted = done.at(done.models[done.commit.tags["published"]].version)
        assert len(fitted.ledger()) == SHARDS
    else:
        assert {"moon", "rover"} <= set(done.vocabulary.terms)
    return seconds


@pytest.mark.long
@pytest.mark.parametrize("name", ["rebase", "grow", "nightly"])
def test_commands_that_are_killed(campaigns, corpus, tmp_path, name):
    rng = random.Random(campaigns.seed)
    most, base = campaigns.size(2, 100), corpus / ("night" if name == "nightly" else "counted")
    shutil.copytree(base, tmp_path / "undisturbed")
    seconds = finished(name, corpus, tmp_path / "undisturbed")
    kills, held, trials = 0, 0, 0
    while kills < most:
        store = tmp_path / str(trials)
        shutil.copytree(base, store)
        for _ in range(min(2, most - kills)):
            process = begun(name, corpus, store)
            process.join(rng.uniform(0, seconds))
            process.kill()
            process.join()
            require_counted_once(MomentStore.open(str(store)))
            # it may have ended before
            kills += process.exitcode == -signal.SIGKILL
            held += process.exitcode == -signal.SIGKILL
        finished(name, corpus, store)
        trials += 1
    campaigns.record(f"{name} killed", kills, held, f"{trials} stores")


def gone(name, corpus, store):
    """Run `expire` or `purge` to its end, at once after a kill; all is gone then; gives seconds."""
    start, process = time.monotonic(), command(*GOING[name](corpus, store))
    process.join(PATIENCE)
    seconds = time.monotonic() - start
    # what was purged before the kill, files and all, is no shard of the store any more
    assert process.exitcode in ((0, 2) if name == "purge" else (0,))
    require_swept(str(store))
    require_swept(str(store))
    if name == "purge":
        proof = command("verify", store, "--purged", corpus / "1.txt")
        proof.join(PATIENCE)
        assert proof.exitcode == 0
    left = require_counted_once(MomentStore.open(str(store)))
    assert left == SHARDS - (name == "purge")
    return seconds


GOING = {
    "expire": lambda corpus, store: ("expire", store, "--keep", 1, "--older-than", "0s"),
    "purge": lambda corpus, store: ("purge", store, corpus / "1.txt"),
}


@pytest.mark.parametrize("name", GOING)
def test_what_lets_go_is_killed_and_run_again(campaigns, corpus, tmp_path, name):
    rng = random.Random(campaigns.seed)
    most, base = campaigns.size(2, 100), corpus / "counted"
    shutil.copytree(base, tmp_path / "undisturbed")
    seconds = gone(name, corpus, tmp_path / "undisturbed")
    kills, trials = 0, 0
    while kills < most:
        store = tmp_path / str(trials)
        shutil.copytree(base, store)
        for _ in range(min(2, most - kills)):
            process = command(*GOING[name](corpus, store))
            process.join(rng.uniform(0, seconds))
            process.kill()
            process.join()
            # it may have ended before
            kills += process.exitcode == -signal.SIGKILL
            left = require_counted_once(MomentStore.open(str(store)))
            assert left in (SHARDS, SHARDS - (name == "purge"))
        gone(name, corpus, store)
        trials += 1
    campaigns.record(f"{name} killed", kills, kills, f"{trials} stores")


def test_nights_that_are_stopped_until_another_has_ended(campaigns, corpus, tmp_path):
    rng = random.Random(campaigns.seed)
    nights, held, codes = campaigns.size(1, 50), 0, []
    shutil.copytree(corpus / "night", tmp_path / "undisturbed")
    seconds = finished("nightly", corpus, tmp_path / "undisturbed")
    for number in range(nights):
        store = tmp_path / str(number)
        shutil.copytree(corpus / "night", store)
        asleep = begun("nightly", corpus, store)
        asleep.join(rng.uniform(0, seconds))
        if asleep.exitcode is None:
            os.kill(asleep.pid, signal.SIGSTOP)
        finished("nightly", corpus, store)
        before = MomentStore.open(str(store))
        if asleep.exitcode is None:
            os.kill(asleep.pid, signal.SIGCONT)
        asleep.join(PATIENCE)
        codes.append(int(asleep.exitcode))
        # what it has still done is nothing, or a night of its own
        after = MomentStore.open(str(store))
        require_counted_once(after)
        held += asleep.exitcode in (0, 2, 10) and after.commit == before.commit
    campaigns.record("nights stopped", nights, held, f"exit codes {codes}")
