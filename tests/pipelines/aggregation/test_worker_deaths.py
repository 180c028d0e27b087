"""Workers that die of shards, or of what all tasks need: who is to blame, what is read again."""

import logging
import os
import shutil
import signal
import sys
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import cloudpickle
import pytest
from distributed import LocalCluster, WorkerPlugin

from streaming_moments.pipelines.aggregation.aggregation import gathering_on, plan_of
from streaming_moments.pipelines.aggregation.bundles import Bundle
from streaming_moments.pipelines.aggregation.group_runner import gather_group
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.grow import grow
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting import reading
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)


@contextmanager
def one_process():
    """A worker process that begins anew when it dies, each death blamed on what it was doing."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as local,
        connect(local.scheduler_address) as cluster,
    ):
        cluster.client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0)
        )
        yield cluster


@pytest.fixture
def store(tmp_path, shards, embedded):
    listed = list_shards([str(shards)])
    place = str(tmp_path / "store")
    return create(place, listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded))


class DyingLater(WorkerPlugin):
    """The worker dies of the shard named "second" whenever that was read before."""

    def __init__(self, folder):
        self.folder = folder

    def setup(self, worker):
        read, before = reading.read_indexed, Path(self.folder) / "before"

        def dying(shard, *arguments):
            if "second" in shard.url:
                if before.exists():
                    os.kill(os.getpid(), signal.SIGKILL)
                before.touch()
            return read(shard, *arguments)

        reading.read_indexed = dying


def test_of_several_shards_read_alone_the_one_that_kills_later_is_found(tmp_path, store, planted):
    for name, first in (("first", 0), ("second", 100)):
        (tmp_path / f"{name}.txt").write_text("\n".join(planted[first : first + 100]))
    both = tuple(list_shards([str(tmp_path / "*.txt")]))
    with one_process() as cluster:
        cluster.client.register_plugin(DyingLater(str(tmp_path)))
        run = Run(cluster)
        # the shards are read twice, and in between they are known to have been counted
        with gathering_on(store, run, replace(plan_of(store, run), passes=2)) as gathering:
            gathering = replace(gathering, keep_going=True)
            waiting = deque([Bundle(both, alone=True)])
            good = gather_group(gathering, waiting, 0, 2)
            assert list(waiting) == [Bundle(both[1:], alone=True)]
    assert (good.shards, good.bad) == (both[:1], ())


class DyingOnce(WorkerPlugin):
    """The first worker that makes what all tasks need dies of it."""

    def __init__(self, folder):
        self.folder = folder

    def setup(self, worker):
        of, died = ReadingContext.of.__func__, Path(self.folder) / "died"

        def dying(cls, *arguments):
            with suppress(FileExistsError):
                died.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            return of(cls, *arguments)

        ReadingContext.of = classmethod(dying)


def test_shards_of_an_era_take_no_blame_for_what_all_tasks_need(
    tmp_path, store, shards, embedded, planted
):
    listed = list_shards([str(shards)])
    store = update(store, listed, Run(embedded)).store
    (tmp_path / "new.txt").write_text("\n".join(f"{text} mars rover" for text in planted[:100]))
    store = grow(store, list_shards([str(tmp_path / "new.txt")]), Run(embedded)).store
    assert store.commit.lineage.eras
    shutil.copytree(tmp_path / "store", tmp_path / "twin")
    with one_process() as cluster:
        cluster.client.register_plugin(DyingOnce(str(tmp_path)))
        found = forget(store, listed[:2], Run(cluster))
        assert (tmp_path / "died").exists()
    twin = MomentStore.open(str(tmp_path / "twin"))
    assert found.load() == forget(twin, listed[:2], Run(embedded)).load()
    assert found.verify() == []
