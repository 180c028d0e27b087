"""Workers that are gone or killed: an error or a bad shard, never a hang."""

import os
import shutil
import signal
import sys
from dataclasses import replace

import cloudpickle
import pytest
from distributed import WorkerPlugin

from streaming_moments.errors import ShardError
from streaming_moments.pipelines import parts
from streaming_moments.pipelines.cluster import connect
from streaming_moments.pipelines.create import PilotOptions, create
from streaming_moments.pipelines.progress import Silent
from streaming_moments.pipelines.tasks import WorkersLost, run_bounded
from streaming_moments.pipelines.update import update
from streaming_moments.storage.shards import ShardFormat, list_shards
from streaming_moments.storage.tokens import TokenPolicy


class Deadly(WorkerPlugin):
    """Reading a shard named "deadly" kills the worker."""

    def setup(self, worker):
        read = parts.read_shard

        def deadly(shard, *arguments):
            if "deadly" in shard.url:
                os.kill(os.getpid(), signal.SIGKILL)
            return read(shard, *arguments)

        parts.read_shard = deadly


def test_no_workers_is_an_error_and_no_hang():
    with connect() as cluster:
        cluster.client.retire_workers()
        impatient = replace(cluster, worker_timeout=0.3)
        with pytest.raises(WorkersLost, match=r"no workers for 0\.3 seconds; start some"):
            run_bounded(impatient, str, [(1,)], 1, Silent(), "waiting")


def test_a_shard_that_kills_its_worker_is_left_out(tmp_path, shards):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    folder = tmp_path / "shards"
    shutil.copytree(shards, folder)
    shutil.copy(folder / "1.jsonl", folder / "deadly.jsonl")
    listed = list_shards([str(folder)])
    with connect(workers=1) as cluster:
        options = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
        place = str(tmp_path / "store")
        store = create(place, listed, ShardFormat(), TokenPolicy(), options, cluster)
        counted = update(store, [shard for shard in listed if "deadly" not in shard.url], cluster)
        cluster.client.register_plugin(Deadly())
        # ten deaths would take a minute
        cluster.client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0)
        )
        with pytest.raises(ShardError, match=r"deadly\.jsonl: killed every worker that read it"):
            update(counted.store, listed, cluster)
        result = update(counted.store, listed, cluster, skip_bad_shards=True)
    [error] = result.bad
    assert error.url.endswith("deadly.jsonl")
    assert (result.counted, result.already) == (0, 6)
    assert result.store.commit.skipped == ((error.url, error.reason),)
    assert result.store.verify() == []
