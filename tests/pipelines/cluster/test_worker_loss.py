"""Workers that are gone or killed: an error or a bad shard, never a hang."""

import asyncio
import gc
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import cloudpickle
import dask
import distributed
import numpy as np
import pytest
from distributed import KilledWorker, LocalCluster, WorkerPlugin
from distributed.core import Status
from forked_scheduler import running_scheduler

from streaming_moments.errors import ShardError
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.aggregation import sums
from streaming_moments.pipelines.cluster import tasks
from streaming_moments.pipelines.cluster.cluster import connect, identity_of
from streaming_moments.pipelines.cluster.memory import UpdatePlan
from streaming_moments.pipelines.cluster.progress import Silent
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import outcome_of, result_of, run_bounded
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.outputs.transform import transform
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting import reading
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)


class Deadly(WorkerPlugin):
    """Reading a shard named "deadly" kills the worker; one named "late" does at its 2nd batch."""

    def setup(self, worker):
        read = reading.read_indexed

        def deadly(shard, *arguments):
            if "deadly" in shard.url:
                os.kill(os.getpid(), signal.SIGKILL)
            for number, batch in enumerate(read(shard, *arguments)):
                if "late" in shard.url and number:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield batch

        reading.read_indexed = deadly


def test_no_workers_is_an_error_and_no_hang():
    with connect() as cluster:
        cluster.client.retire_workers()
        impatient = replace(cluster, worker_timeout=0.3)
        with pytest.raises(WorkersLost, match=r"no workers for 0\.3 seconds\. Start some"):
            run_bounded(impatient, str, [(1,)], 1, Silent(), "waiting")


def test_no_workers_is_an_error_wherever_a_job_waits(tmp_path, shards):
    listed = list_shards([str(shards)])
    with connect() as cluster:
        store = create(
            str(tmp_path / "store"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(cluster)
        )
        model = model_of(store)
        assert result_of(cluster, cluster.client.submit(str, 1), "waiting") == "1"
        # a worker that holds the only copy of a result stays until that is released
        while cluster.client.scheduler_info(n_workers=-1)["workers"]:
            cluster.client.retire_workers()
        impatient = replace(cluster, worker_timeout=0.3)
        with pytest.raises(WorkersLost, match="no workers"):
            result_of(impatient, cluster.client.submit(str, 2), "waiting")
        with pytest.raises(WorkersLost, match="no workers"):
            update(store, listed, Run(impatient))
        with pytest.raises(WorkersLost, match="no workers"):
            transform(store, model, listed, str(tmp_path / "out"), Run(impatient))


@contextmanager
def threads_of_this_process(number, **memory):
    """Workers of one thread each; `memory` says when Dask pauses them."""
    never = {"target": False, "spill": False, "pause": False, **memory}
    with (
        dask.config.set({f"distributed.worker.memory.{name}": at for name, at in never.items()}),
        LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            dashboard_address=":0",
            memory_limit="4GiB",
            silence_logs=logging.CRITICAL,
        ) as local,
        connect(local.scheduler_address) as cluster,
    ):
        yield cluster


def workers_of(cluster):
    return identity_of(cluster.client)["workers"]


def until(condition):
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_workers_that_dask_has_paused_are_an_error_and_no_hang(tmp_path, shards):
    listed = list_shards([str(shards)])
    with connect() as cluster:
        place = str(tmp_path / "store")
        store = create(place, listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(cluster))
    # every process is above a share of nothing
    with threads_of_this_process(2, pause=1e-9) as cluster:
        until(lambda: {one["status"] for one in workers_of(cluster).values()} == {"paused"})
        impatient = replace(cluster, worker_timeout=0.3)
        with pytest.raises(
            WorkersLost, match=r"paused 2 of 2 workers.* for 0\.3 seconds\. Use a smaller"
        ):
            update(store, listed, Run(impatient))
    assert store.latest().version == 0


def paused(dask_worker):
    dask_worker.status = Status.paused


def waiting_for(path):
    until(path.exists)
    return path.name


def test_a_paused_worker_ends_what_it_has_begun(tmp_path, monkeypatch):
    look, looks = tasks._Patience.look, []

    def looking(patience):
        looks.append(1)
        if len(looks) == 3:
            (tmp_path / "open").touch()
        look(patience)

    monkeypatch.setattr(tasks._Patience, "look", looking)
    with threads_of_this_process(1) as cluster:
        impatient = replace(cluster, worker_timeout=0.1)
        future = cluster.client.submit(waiting_for, tmp_path / "open")
        [one] = cluster.addresses()
        until(lambda: workers_of(cluster)[one]["metrics"]["task_counts"].get("executing"))
        cluster.client.run(paused)
        until(lambda: workers_of(cluster)[one]["status"] == "paused")
        assert result_of(impatient, future, "waiting") == "open"
    assert len(looks) >= 3


def test_what_one_paused_worker_does_not_begin_is_waited_for_in_vain(tmp_path):
    def sent_to(worker, name):
        path = tmp_path / name
        return cluster.client.submit(
            waiting_for, path, pure=False, workers=worker, allow_other_workers=True
        )

    def counts(worker):
        return workers_of(cluster)[worker]["metrics"]["task_counts"]

    with threads_of_this_process(2) as cluster:
        one, other = cluster.addresses()
        futures = [sent_to(one, "a"), sent_to(other, "b")]
        until(lambda: counts(one) == counts(other) == {"executing": 1})
        futures.append(sent_to(one, "c"))
        until(lambda: counts(one) == {"executing": 1, "ready": 1})
        cluster.client.run(paused, workers=[one])
        for name in ("a", "b", "c"):
            (tmp_path / name).touch()
        impatient = replace(cluster, worker_timeout=1.0)
        assert result_of(impatient, futures[0], "waiting") == "a"
        assert result_of(impatient, futures[1], "waiting") == "b"
        with pytest.raises(WorkersLost, match=r"paused 1 of 2 workers"):
            result_of(impatient, futures[2], "waiting")


def test_a_worker_that_is_slow_to_come_back_is_waited_for():
    # Dask closes for good what has not come back by then, which may have begun to work meanwhile
    hurried = dask.config.set({"distributed.deploy.lost-worker-timeout": "50ms"})
    with hurried, connect(workers=1) as cluster:
        [pid] = cluster.client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not workers_of(cluster))
        future = cluster.client.submit(os.getpid, pure=False)
        assert result_of(replace(cluster, worker_timeout=30.0), future, "waiting") != pid


def test_what_was_placed_on_workers_that_died_runs_on_those_that_take_their_place():
    with connect(workers=1) as cluster:
        [(address, pid)] = cluster.client.run(os.getpid).items()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not workers_of(cluster))
        future = cluster.client.submit(os.getpid, workers=address, allow_other_workers=True)
        guard = threading.Timer(100, future.cancel)
        guard.start()
        assert result_of(cluster, future, "waiting") != pid
        guard.cancel()


def model_of(store):
    topics = np.full((store.basis.n_words, 2), 1 / store.basis.n_words)
    return TopicModel.from_topics(topics, np.array([0.5, 0.5]), alpha0=0.1)


def test_only_the_shard_that_kills_its_workers_is_left_out(tmp_path, shards, capsys):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    folder = tmp_path / "shards"
    shutil.copytree(shards, folder)
    # the first, so that it dies with others beside it
    shutil.copy(folder / "1.jsonl", folder / "0-deadly.jsonl")
    listed = list_shards([str(folder)])
    with connect(workers=2) as cluster:
        place = str(tmp_path / "store")
        store = create(place, listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(cluster))
        cluster.client.register_plugin(Deadly())
        # ten deaths would take a minute, and now one is blamed on all
        cluster.client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0)
        )
        command = ["update", place, str(folder), "--scheduler", cluster.address]
        with pytest.raises(SystemExit) as ended:
            main([*command, "--skip-bad-shards", "--json"])
        printed = capsys.readouterr()
        assert ended.value.code == 3, printed.err
        assert json.loads(printed.out)["counted"] == 6
        assert "0-deadly.jsonl: every worker that read it died" in printed.err
        left = store.latest()
        with pytest.raises(ShardError, match=r"deadly\.jsonl: every worker that read it died"):
            update(left, listed, Run(cluster))
        assert left.latest().version == left.version

        # in parts, so that some of it and of its neighbours is added up when it turns deadly
        more = tmp_path / "more"
        more.mkdir()
        for name in ("a.jsonl", "b-late.jsonl", "c.jsonl"):
            shutil.copy(folder / "1.jsonl", more / name)
        plan = UpdatePlan(10_000, batch_bytes=8_000, reads_in_flight=2, peak_bytes=0)
        others = list_shards([str(more)])
        result = update(left, others, Run(cluster), skip_bad_shards=True, plan=plan)
        assert [error.url for error in result.bad] == [others[1].url]
        assert "every worker that read it died" in str(result.bad)
        assert result.counted == 2
    [(url, reason)] = [skipped for commit in left.log() for skipped in commit.skipped]
    assert url.endswith("0-deadly.jsonl")
    assert "every worker that read it died" in reason
    assert len(left.ledger()) == 6
    assert left.verify() == []
    with connect() as embedded:
        twin = create(
            str(tmp_path / "twin"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded)
        )
        good = [shard for shard in listed if "deadly" not in shard.url]
        twin = update(twin, good, Run(embedded)).store
        assert twin.load() == left.load()
        twin = update(twin, [others[0], others[2]], Run(embedded)).store
        assert twin.load() == result.store.load()


class DyingOnce(WorkerPlugin):
    """The first worker that is asked for rows of its sums dies of it."""

    def __init__(self, folder):
        self.folder = folder

    def setup(self, worker):
        read, take = reading.read_indexed, sums.ProcessSums.take

        def logged(shard, *arguments):
            with open(self.folder / "reads", "a") as log:
                log.write(f"{shard.url}\n")
            return read(shard, *arguments)

        async def dying(held, **asked):
            with suppress(FileExistsError):
                (self.folder / "died").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            return await take(held, **asked)

        reading.read_indexed, sums.ProcessSums.take = logged, dying


def test_a_worker_killed_while_row_blocks_are_added_up_costs_its_own_shards(tmp_path, shards):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    listed = list_shards([str(shards)])
    with connect(workers=2) as cluster:
        store = create(
            str(tmp_path / "store"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(cluster)
        )
        shutil.copytree(tmp_path / "store", tmp_path / "twin")
        cluster.client.register_plugin(DyingOnce(tmp_path))
        found = update(store, listed, Run(cluster)).store
    reads = (tmp_path / "reads").read_text().splitlines()
    assert (tmp_path / "died").exists()
    assert len(listed) < len(reads) < 2 * len(listed), "only what the dead one had counted"
    assert found.verify() == []
    with connect() as embedded:
        twin = MomentStore.open(str(tmp_path / "twin"))
        assert update(twin, listed, Run(embedded)).store.load() == found.load()


class Stuck(WorkerPlugin):
    """Who reads a shard says so by a file, and never goes on."""

    def __init__(self, path):
        self.path = path

    def setup(self, worker):
        def stuck(*_):
            self.path.touch()
            threading.Event().wait()

        reading.read_indexed = stuck


def test_the_death_of_the_scheduler_is_one_line_and_code_2(tmp_path, shards):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    place, listed, begun = str(tmp_path / "store"), list_shards([str(shards)]), tmp_path / "begun"
    with connect() as cluster:
        store = create(place, listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(cluster))
    pipe = subprocess.PIPE
    with running_scheduler(0) as (scheduler, address):
        with connect(address) as cluster:
            cluster.client.register_plugin(Stuck(begun))
        command = ["update", place, str(shards), "--scheduler", address]
        with subprocess.Popen(
            [sys.executable, "-m", "streaming_moments", *command],
            stdout=pipe,
            stderr=pipe,
            text=True,
        ) as job:
            until(begun.exists)
            scheduler.kill()
            out, err = job.communicate(timeout=100)
    assert (job.returncode, out) == (2, ""), err
    assert err == (
        f"error: the scheduler at {address} died or restarted while the job ran. Start the "
        "scheduler and run the job again; all commits so far are stored\n"
    )
    assert store.latest().verify() == []


@pytest.fixture(scope="module")
def halfway(tmp_path_factory, shards):
    """A folder with a store of two shards and a long one to come, and what all make undisturbed."""
    folder = tmp_path_factory.mktemp("halfway")
    place, long, listed = folder / "store", folder / "long.txt", list_shards([str(shards)])
    with connect() as cluster:
        store = create(str(place), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(cluster))
        long.write_text("\n".join([" ".join(store.vocabulary.terms[:100])] * 40_000))
        update(store, listed[:2], Run(cluster))
        shutil.copytree(place, folder / "undisturbed")
        twin = MomentStore.open(str(folder / "undisturbed"))
        both = list_shards([str(shards), str(long)])
        return folder, update(twin, both, Run(cluster)).store.load()


@pytest.mark.parametrize("workers", ["0", "1"])
def test_ctrl_c_in_the_middle_keeps_every_commit_and_the_same_command_goes_on(
    tmp_path, shards, workers, reading, halfway, run
):
    folder, undisturbed = halfway
    place, long = tmp_path / "store", folder / "long.txt"
    shutil.copytree(folder / "store", place)
    before = MomentStore.open(str(place))
    command = ["update", str(place), str(shards), str(long), "--workers", workers]
    with subprocess.Popen(
        [sys.executable, "-m", "streaming_moments", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell that runs the tests in the background has it ignored
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    ) as job:
        while not reading(job.pid, long):
            assert job.poll() is None, "it ended too soon"
            time.sleep(0.02)
        # as a terminal does: to the children too
        os.killpg(job.pid, signal.SIGINT)
        out, err = job.communicate(timeout=100)
    assert (job.returncode, out) == (130, ""), err
    # after the ^C that a terminal shows comes a new line
    assert err.strip() == (
        "interrupted: all commits so far are stored; run the same command again to continue"
    )
    left = MomentStore.open(str(place))
    assert left.version == before.version
    assert left.verify() == []
    assert run(*command)[0] == 0
    assert left.latest().load() == undisturbed


def once(path, then):
    """A task that ends the first time alone, whose worker dies with what it gave."""
    if path.exists():
        then()
    path.touch()
    return path.name


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    raise FileNotFoundError("gone meanwhile")


@pytest.mark.parametrize(("then", "outcome"), [(die, KilledWorker), (fail, FileNotFoundError)])
def test_a_result_that_goes_with_its_workers_is_what_comes_of_making_it_again(
    tmp_path, monkeypatch, then, outcome
):
    asked = tasks._asked

    def unlucky(cluster, ask, seconds):
        # it is known to have ended
        if ask == future.result and not killed:
            killed.append(cluster.client.run(os.getpid).popitem()[1])
            os.kill(killed[0], signal.SIGKILL)
            until(lambda: future.status != "finished")
        return asked(cluster, ask, seconds)

    killed = []
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as local,
        connect(local.scheduler_address) as cluster,
    ):
        future = cluster.client.submit(once, tmp_path / "begun", then)
        until(future.done)
        monkeypatch.setattr(tasks, "_asked", unlucky)
        monkeypatch.setattr(tasks._Patience, "step", 100.0)
        assert isinstance(outcome_of(cluster, future), outcome)
        # Dask fails to close a nanny that is just starting another worker
        until(lambda: cluster.client.scheduler_info()["workers"])


def test_ctrl_c_before_dask_waits_for_an_answer_leaves_no_warning(embedded, monkeypatch):
    future = embedded.client.submit(int, pure=False)
    until(future.done)

    def cancelled(awaitable):
        task = asyncio.ensure_future(awaitable)
        task.cancel()
        return task

    loop = SimpleNamespace(**{**vars(asyncio), "ensure_future": cancelled})
    monkeypatch.setattr(distributed.utils, "asyncio", loop)
    gc.collect()  # files that earlier tests left open warn when they go
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        # Dask has no result to give then
        with suppress(NameError):
            outcome_of(embedded, future)
        gc.collect()
    assert [str(one.message) for one in told] == []
