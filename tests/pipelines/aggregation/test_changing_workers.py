"""Workers that come, go and die while a group is gathered, and workers that are not alike."""

import logging
import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from threading import Timer

import cloudpickle
import dask
import numpy as np
import psutil
import pytest
from dask.sizeof import sizeof
from distributed import LocalCluster, WorkerPlugin

from streaming_moments.errors import InvalidInput
from streaming_moments.models.passes.polishing import Reader
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.aggregation import group_runner, sums
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.aggregation.reduction import STEP
from streaming_moments.pipelines.cluster import silent_workers, worker_rpc
from streaming_moments.pipelines.cluster.cluster import budget_of, connect
from streaming_moments.pipelines.cluster.memory import LIMITS, MEBIBYTE
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import outcome_of
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputContext
from streaming_moments.pipelines.jobs.polish import PassContext
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting import reading
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.proportions import Provenance

PATIENCE = 120.0
PROVENANCE = Provenance(
    "", "", "first", "", "", None, "fixed-point", (), None, False, 0.2, 0, {}, "0"
)


class Gate(WorkerPlugin):
    """Reading the third shard and later ones waits for a file; each reader leaves a line."""

    def __init__(self, folder):
        self.folder = folder

    def setup(self, worker):
        read, folder, address = reading.read_indexed, Path(self.folder), worker.address

        def gated(shard, *arguments):
            with open(folder / "reads", "a") as log:
                log.write(f"{address} {os.getpid()}\n")
            deadline = time.monotonic() + PATIENCE
            while len((folder / "reads").read_text().splitlines()) > 2:
                if (folder / "open").exists() or time.monotonic() > deadline:
                    break
                time.sleep(0.01)
            return read(shard, *arguments)

        reading.read_indexed = gated


@contextmanager
def processes(number, memory_limit=0):
    with (
        LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=memory_limit,
            silence_logs=logging.CRITICAL,
        ) as local,
        connect(local.scheduler_address) as cluster,
    ):
        yield local, cluster


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def reads(folder):
    log = folder / "reads"
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


class Then:
    """Told of progress: once two shards are counted, something happens, and the gate opens."""

    def __init__(self, folder, happening):
        self.folder, self.happening, self.happened = folder, happening, False

    def advance(self, step, done, total):
        if step == "reading shards" and not self.happened:
            self.happened = True
            self.happening()
            (self.folder / "open").touch()


def join(local, cluster, folder):
    local.scale(len(local.workers) + 1)
    cluster.client.wait_for_workers(cluster.workers + 1, timeout=PATIENCE)


def retire(local, cluster, folder):
    cluster.client.retire_workers([reads(folder)[0][0]])


def kill(local, cluster, folder):
    os.kill(int(reads(folder)[0][1]), signal.SIGKILL)


@pytest.mark.parametrize("change", [join, retire, kill])
def test_a_worker_that_comes_or_goes_changes_no_bit(tmp_path, store, undisturbed, change):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    _, listed, expected = undisturbed
    with processes(2) as (local, cluster):
        cluster.client.register_plugin(Gate(str(tmp_path)))
        progress = Then(tmp_path, partial(change, local, cluster, tmp_path))
        result = update(store, listed, Run(cluster, progress))
        assert progress.happened
    assert result.counted == len(listed)
    assert result.store.load() == expected.load()
    assert set(result.store.ledger()) == set(expected.ledger())
    assert result.store.verify() == []


def test_workers_that_join_while_a_group_is_read_are_all_given_shards(
    tmp_path, store, undisturbed, monkeypatch
):
    _, listed, expected = undisturbed
    read, numbers = reading.read_indexed, count(1)
    # one worker of a thread has two tasks at a time
    together = threading.Barrier(3)

    def gated(shard, *arguments):
        if 2 < next(numbers) < 6:
            together.wait(PATIENCE)
        return read(shard, *arguments)

    monkeypatch.setattr(group_runner, "_LOOK", 0.0)
    monkeypatch.setattr(reading, "read_indexed", gated)
    with threads_of(0) as local, connect(local.scheduler_address) as cluster:

        def join():
            local.scale(4)
            cluster.client.wait_for_workers(4, timeout=PATIENCE)

        result = update(store, listed, Run(cluster, Then(tmp_path, join)))
    assert not together.broken
    assert result.counted == len(listed)
    assert result.store.load() == expected.load()


class DyingAtTheClose(WorkerPlugin):
    """The first worker that adds up a row block dies of it."""

    def __init__(self, folder):
        self.folder = folder

    def setup(self, worker):
        rows, died = sums.ProcessSums.rows, Path(self.folder) / "died"

        def dying(held, *asked):
            with suppress(FileExistsError):
                died.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            return rows(held, *asked)

        sums.ProcessSums.rows = dying


def test_the_only_worker_may_die_at_the_close(tmp_path, store, undisturbed):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    _, listed, expected = undisturbed
    with processes(1) as (_, cluster):
        cluster.client.register_plugin(DyingAtTheClose(str(tmp_path)))
        guard = Timer(PATIENCE, cluster.client.close)
        guard.start()
        result = update(store, listed, Run(cluster))
        guard.cancel()
    assert (tmp_path / "died").exists()
    assert result.counted == len(listed)
    assert result.store.load() == expected.load()
    assert result.store.verify() == []


class StoppedAfter:
    """Told of progress: at the end of each of some steps a worker stops without a word."""

    def __init__(self, cluster, *steps):
        self.cluster, self.steps, self.stopped = cluster, list(steps), []

    def advance(self, step, done, total):
        if step in self.steps and done == total:
            self.steps.remove(step)
            self.stopped.append(min(self.cluster.client.run(os.getpid).values()))
            os.kill(self.stopped[-1], signal.SIGSTOP)


def test_a_worker_that_hangs_is_not_waited_for_at_the_close(store, undisturbed, monkeypatch):
    monkeypatch.setattr(silent_workers, "ANSWER_SECONDS", 5.0)
    _, listed, expected = undisturbed
    with processes(2) as (_, cluster):
        # before the sums are frozen, and before they are given up
        progress = StoppedAfter(cluster, "reading shards", STEP)
        result = update(store, listed, Run(cluster, progress))
        assert len(progress.stopped) == 2
        # others take their places
        cluster.client.wait_for_workers(2, timeout=PATIENCE)
        assert not {*progress.stopped} & {*cluster.client.run(os.getpid).values()}
    assert result.counted == len(listed)
    assert result.store.load() == expected.load()
    assert result.store.verify() == []


def in_time(function, *arguments):
    """What a function gives before Dask itself takes for dead who hangs, after 5 minutes."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(function, *arguments).result(PATIENCE)


def connected(address):
    with connect(address) as cluster:
        return len(cluster.addresses())


class Idle(WorkerPlugin):
    name = "idle"
    idempotent = True


def test_a_worker_that_hangs_or_dies_is_not_waited_for_where_a_job_begins_or_reads(
    store, undisturbed, monkeypatch
):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    _, listed, expected = undisturbed
    with processes(2) as (local, cluster):
        client = cluster.client

        def stopped():
            client.wait_for_workers(2, timeout=PATIENCE)
            process = min(client.run(os.getpid).values())
            os.kill(process, signal.SIGSTOP)
            return process

        def known():
            return client.run_on_scheduler(
                lambda dask_scheduler: "idle" in dask_scheduler.worker_plugins
            )

        dying = stopped()
        with ThreadPoolExecutor(1) as aside:
            given = aside.submit(worker_rpc.give_plugin, client, Idle())
            until(known)
            os.kill(dying, signal.SIGKILL)
            given.result(PATIENCE)

        monkeypatch.setattr(silent_workers, "ANSWER_SECONDS", 3.0)
        client.wait_for_workers(2, timeout=PATIENCE)
        future = client.submit(os.getpid, pure=False)
        process = future.result()
        os.kill(process, signal.SIGSTOP)
        assert in_time(outcome_of, cluster, future) != process

        stopped()
        assert in_time(connected, local.scheduler_address) > 0

        stopped()
        result = in_time(update, store, listed, Run(cluster))
    assert result.store.load() == expected.load()


def test_which_worker_is_silent_is_told_by_the_clock_of_the_scheduler_set_back_or_not(monkeypatch):
    with processes(2) as (_, cluster):
        client, real = cluster.client, time.time
        before = {*client.run(os.getpid).values()}
        # a client whose clock is hours ahead takes nobody for dead
        monkeypatch.setattr(time, "time", lambda: real() + 3 * 3600)
        silent_workers.restart_silent(client)
        monkeypatch.undo()
        assert {*client.run(os.getpid).values()} == before

        # a worker that was heard of before the clock was set back, and hangs
        monkeypatch.setattr(silent_workers, "ANSWER_SECONDS", 5.0)
        workers = client.run(os.getpid)
        address, process = min(workers.items())
        os.kill(process, signal.SIGSTOP)

        def set_back(dask_scheduler):
            dask_scheduler.workers[address].last_seen += 3 * 3600

        client.run_on_scheduler(set_back)
        silent_workers.restart_silent(client)
        until(lambda: not psutil.pid_exists(process))
        client.wait_for_workers(2, timeout=PATIENCE)
        assert before - {process} < {*client.run(os.getpid).values()}


@contextmanager
def threads_of(limit, **memory):
    """A worker of this memory limit, whose memory Dask does not look at beyond what is said."""
    looked_at = {"target": False, "spill": False, "pause": False, **memory}
    settings = {f"distributed.worker.memory.{name}": value for name, value in looked_at.items()}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            dashboard_address=":0",
            memory_limit=limit,
            silence_logs=logging.CRITICAL,
        ) as local,
    ):
        yield local


def test_what_travels_is_as_large_as_it_says(undisturbed):
    _, _, expected = undisturbed
    context = ReadingContext.of(expected, LIMITS, None)
    topics = np.random.default_rng(1).dirichlet(np.ones(expected.basis.n_words), 50).T
    model = TopicModel.from_topics(topics, np.full(50, 0.02), alpha0=0.1)
    for one in (
        context,
        PassContext(context, Reader(model), None, 1, False),
        OutputContext(context, model, OutputFolder(Folder.at("out")), PROVENANCE),
    ):
        travels = len(pickle.dumps(one))
        assert 0.9 * travels <= sizeof(one) <= 1.1 * travels
    assert sizeof(context) > sum(map(len, expected.vocabulary.terms))
    statistics = expected.load()
    assert statistics.nbytes <= sizeof(statistics) <= 1.1 * statistics.nbytes


def with_one_of(local, limit):
    local.new_spec["options"]["memory_limit"] = limit
    local.scale(2)
    local.wait_for_workers(2, timeout=PATIENCE)


def test_with_fewer_workers_than_asked_for_the_bits_are_the_same(tmp_path, store, undisturbed):
    _, listed, expected = undisturbed
    with threads_of(4096 * MEBIBYTE) as local:
        local.scale(3)
        local.wait_for_workers(3, timeout=PATIENCE)
        with connect(local.scheduler_address) as cluster:
            # of five two never come, and two leave with what they have counted
            progress = Then(
                tmp_path, lambda: cluster.client.retire_workers(cluster.addresses()[:2])
            )
            result = update(store, listed, Run(replace(cluster, workers=5), progress))
            assert progress.happened
            assert len(cluster.addresses()) == 1
    assert result.counted == len(listed)
    assert result.store.load() == expected.load()
    assert result.store.verify() == []


def test_the_smallest_of_unlike_workers_plans():
    with threads_of(4096 * MEBIBYTE) as local:
        with_one_of(local, 2048 * MEBIBYTE)
        with connect(local.scheduler_address) as cluster:
            assert cluster.memory == budget_of(2048 * MEBIBYTE)
            assert cluster.least_limit == 2048 * MEBIBYTE


def test_a_worker_that_joins_with_less_memory_than_planned_counts_nothing(
    tmp_path, store, undisturbed
):
    _, listed, _ = undisturbed
    small = 300 * MEBIBYTE
    told = rf"a memory limit of {small:,} bytes, but the job was planned with [0-9,]+ bytes"
    with threads_of(4096 * MEBIBYTE) as local, connect(local.scheduler_address) as cluster:

        def swap():
            [large] = cluster.addresses()
            with_one_of(local, small)
            cluster.client.retire_workers([large])

        run = Run(cluster, Then(tmp_path, swap))
        with pytest.raises(InvalidInput, match=told):
            update(store, listed, run)
    assert store.latest().version == store.version
    assert store.latest().verify() == []


def test_without_room_for_spilling_nothing_is_lost(store, undisturbed, caplog):
    _, listed, expected = undisturbed
    # Dask takes a full disk and a full allowance the same way
    with (
        threads_of(4096 * MEBIBYTE, target=1e-9, **{"max-spill": "1 B"}) as local,
        connect(local.scheduler_address) as cluster,
        caplog.at_level(logging.WARNING, "distributed.spill"),
    ):
        found = update(store, listed, Run(cluster)).store
    assert "reached capacity; keeping data in memory" in caplog.text
    assert found.load() == expected.load()
