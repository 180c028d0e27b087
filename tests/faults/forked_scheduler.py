"""A scheduler of Dask in a process of its own, forked from one that has imported everything."""

import os
from contextlib import contextmanager

from distributed import LocalCluster
from forking import serving


@contextmanager
def running_scheduler(port):
    """One with a worker on a port, or on any if it is 0; gives its process and its address."""
    with serving(_serve, port) as (process, address):
        try:
            yield process, address
        finally:
            process.kill()


def _serve(port, lifeline, address):
    options = {"processes": False, "protocol": "tcp://", "dashboard_address": None}
    with LocalCluster(1, scheduler_port=port, memory_limit=0, **options) as cluster:
        with open(address.number, "w") as told:
            print(cluster.scheduler_address, file=told)
        os.read(lifeline.number, 1)  # until who has asked for it is gone
