"""Clusters of this machine: what they do at their end."""

import asyncio
import logging
import time

from distributed import LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

from streaming_moments.pipelines.cluster import closed_in_time


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
