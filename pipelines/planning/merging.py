"""Cost of a merge: the bytes, requests, seconds and memory of a first copy into a hub."""

from __future__ import annotations

from dataclasses import dataclass

from streaming_moments.pipelines.planning.job import Job
from streaming_moments.pipelines.planning.step_costs import StepCosts
from streaming_moments.pipelines.planning.update_cost import (
    COMMIT_SECONDS,
    NETWORK_BYTES,
    update_cost,
)
from streaming_moments.storage.merging.copying import bytes_held

# number of files of a segment beside its arrays: manifest, ledger, metadata, and two for totals
_FILES = 5
_REQUESTS = 20  # number of requests to open both stores and to commit


@dataclass(frozen=True)
class MergeCost:
    """Cost of the first merge of a store into a hub; later merges copy only new segments.

    Parameters
    ----------
    copied_bytes : float
        Bytes that are read at the store and written at the hub. If both are on one disk, none are
        written.
    requests : int
        Reads and writes of files. If a bucket is far away, they take most of the time.
    seconds : float
        Seconds with a disk like that of this machine, or through the network if that takes longer.
    memory : float
        Largest number of bytes of files in memory at the same time.
    """

    copied_bytes: float
    requests: int
    seconds: float
    memory: float


def merge_cost(
    job: Job, costs: StepCosts, budget: int, network: float = NETWORK_BYTES
) -> MergeCost:
    """Estimate what it costs to merge the store into a hub after the store's first update.

    Arguments and errors are as for `update_cost`.
    """
    segments = update_cost(job, costs, 1, budget).groups
    blocks = segments * job.row_blocks
    nbytes = blocks * costs.blocks.disk_bytes
    # each array has a file of metadata, too
    files = (blocks + segments) * costs.blocks.files + segments * _FILES
    seconds = max(blocks * costs.blocks.copy, nbytes / network) + COMMIT_SECONDS
    memory = bytes_held(nbytes, costs.blocks.disk_bytes)
    return MergeCost(nbytes, 2 * files + _REQUESTS, seconds, memory)
