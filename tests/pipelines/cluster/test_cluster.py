"""Clusters: what they do without workers, and at their end."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import version

import dask
import pytest
from distributed import Client, LocalCluster
from distributed.comm.core import CommClosedError
from distributed.diagnostics.plugin import SchedulerPlugin

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster import cluster as clusters
from streaming_moments.pipelines.cluster.cluster import (
    SchedulerLost,
    closed_in_time,
    connect,
    connect_by,
)
from streaming_moments.pipelines.cluster.tasks import result_of


class Lingering(SchedulerPlugin):
    """Keeps the scheduler from closing."""

    async def close(self):
        await asyncio.sleep(3600)


def test_a_cluster_that_does_not_close_holds_nobody_up():
    local = LocalCluster(
        n_workers=1,
        processes=False,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )
    local.scheduler.add_plugin(Lingering())
    begun = time.monotonic()
    with closed_in_time(local, seconds=0.5):
        pass
    assert time.monotonic() - begun < 60
    assert local.status.name != "closed"


@contextmanager
def empty():
    """A cluster without workers."""
    with LocalCluster(
        n_workers=0,
        threads_per_worker=3,
        processes=False,
        protocol="tcp",
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as local:
        yield local


def test_the_first_worker_is_waited_for():
    told = []
    with empty() as local:

        def start(line):
            told.append(line)
            local.scale(1)

        with connect(local.scheduler_address, worker_timeout=60, on_wait=start) as cluster:
            assert (cluster.workers, cluster.threads, cluster.worker_timeout) == (1, 3, 60)
    assert told == [f"no worker at {local.scheduler_address} yet; waiting up to 60 seconds"]


def test_a_cluster_that_scales_from_zero_is_asked_for_a_worker():
    with empty() as local:
        local.adapt(minimum=0, maximum=1, interval="50ms")
        with connect(local.scheduler_address, worker_timeout=60) as cluster:
            assert result_of(cluster, cluster.client.submit(sum, [3, 4]), "sum") == 7


def test_a_cluster_without_workers_is_refused_in_the_end():
    with (
        empty() as local,
        pytest.raises(InvalidInput, match="no workers for 0.1 seconds; start some with"),
        connect(local.scheduler_address, worker_timeout=0.1),
    ):
        pass


def test_a_silent_scheduler_is_reported_before_it_is_given_up(monkeypatch):
    monkeypatch.setattr(clusters, "SAID_AFTER", 0.05)
    monkeypatch.setattr(clusters, "_FIRST_ANSWER", 0.5)
    told = []
    with socket.socket() as held:
        # a port at which no one listens, and no one else can
        held.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{held.getsockname()[1]}"
        with (
            pytest.raises(InvalidInput, match=f"no scheduler answers at {address}"),
            connect(address, on_wait=told.append),
        ):
            pass
    assert told == [f"no answer yet from {address}; trying for up to 0.5 s"]


def test_the_workers_are_known_at_any_time():
    # Dask's client forgets them each time that it asks how many there are
    with dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}), connect() as one:
        assert all(len(one.addresses()) == 1 for _ in range(300))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError(), ZeroDivisionError),
        # of what was asked of a scheduler that died, while its successor answers already
        (CommClosedError("Stream is closed"), SchedulerLost),
    ],
)
def test_an_error_of_a_job_is_no_lost_scheduler_but_a_lost_connection_is(error, told):
    with (
        LocalCluster(
            n_workers=1,
            processes=False,
            protocol="tcp",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as local,
        pytest.raises(told),
        connect(local.scheduler_address),
    ):
        raise error


WORKER = """
import asyncio, sys
from distributed import Worker

async def serve():
    async with Worker(sys.argv[1], nthreads=1) as worker:
        await worker.finished()

asyncio.run(serve())
"""


def test_a_worker_of_another_version_is_refused_with_both_named(tmp_path):
    # as an older installation would lie there
    metadata = tmp_path / "streaming_moments-0.0.9.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: streaming-moments\nVersion: 0.0.9\n")
    with empty() as local:
        command = [sys.executable, "-c", WORKER, local.scheduler_address]
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        # a checkout holds metadata of its own, which come first where a process begins in it
        there = {**os.environ, "PYTHONPATH": path}
        with subprocess.Popen(command, env=there, cwd=tmp_path) as worker:
            try:
                local.wait_for_workers(1, timeout=100)
                with (
                    pytest.raises(InvalidInput, match=r"1 of 1 workers .* has 0\.0\.9, this") as no,
                    connect(local.scheduler_address),
                ):
                    pass
            finally:
                worker.kill()
    assert f"this command is {version('streaming-moments')}; install the same" in str(no.value)


class Forgetful(Client):
    """Looks at its scheduler, as by its own clock, just after somebody has asked for workers."""

    async def _update_scheduler_info(self, n_workers=0):
        await super()._update_scheduler_info(n_workers)
        if n_workers:
            await super()._update_scheduler_info()


def test_a_client_whose_own_look_forgets_the_workers_has_them_nonetheless():
    with (
        LocalCluster(1, processes=False, dashboard_address=None) as local,
        Forgetful(local) as client,
    ):
        assert client.scheduler_info(n_workers=-1)["workers"] == {}
        with connect_by(client, worker_timeout=2) as cluster:
            assert cluster.workers == 1
        assert client.status == "running"


@pytest.mark.parametrize("client", [None, "tcp://127.0.0.1:1", 3])
def test_what_is_no_client_is_refused(client):
    with pytest.raises(InvalidInput, match="give a distributed.Client"), connect_by(client):
        pass
