"""A scheduler of Dask in a process of its own, forked from one that has imported everything."""

import os
from contextlib import contextmanager

from distributed import LocalCluster
from forking import Descriptor, forking


@contextmanager
def running_scheduler(port):
    """One with a worker on a port, or on any if it is 0; gives its process and its address."""
    lifeline, ours = os.pipe()
    address, theirs = os.pipe()
    given = (port, Descriptor(lifeline), Descriptor(theirs))
    process = forking().Process(target=_serve, args=given)
    process.start()
    os.close(lifeline)
    os.close(theirs)
    try:
        with open(address) as told:
            yield process, told.readline().strip()
    finally:
        process.kill()
        process.join()
        os.close(ours)


def _serve(port, lifeline, address):
    options = {"processes": False, "protocol": "tcp://", "dashboard_address": None}
    with LocalCluster(1, scheduler_port=port, memory_limit=0, **options) as cluster:
        with open(address.number, "w") as told:
            print(cluster.scheduler_address, file=told)
        os.read(lifeline.number, 1)  # until who has asked for it is gone
