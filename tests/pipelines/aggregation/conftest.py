import logging
import shutil
from contextlib import contextmanager

import pytest
from distributed import LocalCluster

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory, shards, embedded):
    """An empty store, its shards, and what one process makes of them."""
    listed = list_shards([str(shards)])
    place = tmp_path_factory.mktemp("undisturbed") / "store"
    options = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
    policy = TokenPolicy(passage_words=25)
    store = create(str(place), listed, ShardFormat(), policy, options, Run(embedded))
    shutil.copytree(place, place.with_name("empty"))
    return place.with_name("empty"), listed, update(store, listed, Run(embedded)).store


@pytest.fixture
def store(tmp_path, undisturbed):
    """The empty store, for one test."""
    shutil.copytree(undisturbed[0], tmp_path / "store")
    return MomentStore.open(str(tmp_path / "store"))


@pytest.fixture(scope="session")
def workers_of_sums():
    """Starts workers that reach one another by TCP, each with sums of its own."""

    @contextmanager
    def started(number, threads=2):
        with (
            LocalCluster(
                n_workers=number,
                threads_per_worker=threads,
                processes=False,
                protocol="tcp",
                dashboard_address=":0",
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            ) as local,
            connect(local.scheduler_address, memory=1 << 30) as cluster,
        ):
            yield cluster

    return started
