"""Cost of an update: reading and adding on workers, and the exchange of sums between workers.

Each worker adds counts to sums of its own. At the close of a group of shards, one worker adds up
each row block: it receives the sums of all other workers, and writes the total. Row blocks that do
not divide evenly among the workers are added up in pieces, each by one worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from streaming_moments.pipelines.aggregation.aggregation import Pace
from streaming_moments.pipelines.aggregation.reduction import pieces_of
from streaming_moments.pipelines.cluster.memory import MEBIBYTE, plan_update
from streaming_moments.pipelines.cluster.run import COMMIT_EVERY
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER
from streaming_moments.pipelines.planning.job import Job
from streaming_moments.pipelines.planning.step_costs import StepCosts

# Bytes that a worker receives in a second: half of 10 Gbit/s, the most that Dask's event loop can
# pass on.
NETWORK_BYTES = 600 * MEBIBYTE
# Bytes that the event loop of a worker adds to its sums in a second; measured: 0.7 GB.
ADDED_BYTES = 700 * MEBIBYTE
# Seconds to connect to another worker and request rows from it; measured: 6 ms on loopback.
PEER_SECONDS = 0.01
# Seconds of the round trip of a Dask task; measured: 2 to 4 ms.
TASK_SECONDS = 0.004
# Seconds to seal, sync and commit a segment; measured: 0.05 to 0.15 s on a local disk.
COMMIT_SECONDS = 0.1
# CPU seconds that client and scheduler need for a task (measured: 1 to 2 ms), and for a shard
# (measured: 0.07 ms).
COORDINATED_TASK = 0.002
COORDINATED_SHARD = 0.0001
# Most bytes and most shards that a task reads, if there are enough for several tasks in each
# thread.
_TASK_BYTES = 32 * MEBIBYTE
_TASK_SHARDS = 10_000


@dataclass(frozen=True)
class UpdateCost:
    """Cost of an update on some number of workers.

    workers : processes
    seconds : seconds for the whole corpus
    groups : segments that an update of an empty store commits
    passes : how often the shards are read
    documents_per_second : rate with enough shards for all workers, including the time to close
        groups
    group_seconds : seconds between commits
    close_seconds : part of `group_seconds`, from the last shard to the commit
    received_bytes : largest number of bytes that a worker receives when a group is closed
    limit : step that takes most of the time of a group. It is "reading" or "adding" on the workers,
        or the "scheduler" if workers wait for it. When the group is closed, it is the "network",
        the "row blocks" that workers share unevenly, or "writing".
    """

    workers: int
    seconds: float
    groups: int
    passes: int
    documents_per_second: float
    group_seconds: float
    close_seconds: float
    received_bytes: float
    limit: str


def update_cost(
    job: Job, costs: StepCosts, workers: int, budget: int, network: float = NETWORK_BYTES
) -> UpdateCost:
    """Estimate an update on workers like the measured one, with `budget` bytes of memory each.

    `network` is the number of bytes that a worker may receive in a second. Raises BoundExceeded if
    the update does not fit into the budget.
    """
    corpus, reading = job.corpus, costs.reading
    plan = plan_update(job.layout, costs.threads, budget)
    passes, threads = plan.passes, workers * costs.threads
    close = _Close.of(job, costs, workers, network)
    # Seconds of a thread for each stored byte: `read` includes every pass over the shards, and
    # `add` includes every row block, because each adds the counts of the byte once.
    read = passes * (reading.read + corpus.shards * reading.open_shard / corpus.nbytes)
    add = reading.counts * costs.blocks.add * job.row_blocks
    working = (read + add) / threads
    each = corpus.nbytes / corpus.shards
    most = min(_TASK_SHARDS, max(1, plan.group_shards // (workers * plan.reads_in_flight)))
    task = max(each, min(_TASK_BYTES, most * each))
    coordinated = passes * (COORDINATED_TASK / task + COORDINATED_SHARD / each)
    byte = max(working, coordinated)
    pace = min(Pace(COMMIT_EVERY, close.seconds).seconds, plan.group_shards * each * byte)

    counted = corpus.nbytes * (read + add) / min(threads, corpus.shards)
    longest = corpus.largest * (passes * reading.read + add) + passes * reading.open_shard
    counting = max(counted, longest, corpus.nbytes * coordinated)
    groups = max(1, ceil(counting / pace))
    seconds = counting + groups * close.seconds + _compacting(job, costs, workers, groups)

    # threads wait at the end of a pass, half a task on average, because its last tasks do not end
    # at the same time
    barrier = task * (read + add) / 2
    group = pace + barrier + close.seconds
    busy = pace * working / byte
    parts = {
        "reading": busy * read / (read + add),
        "adding": busy * add / (read + add),
        "scheduler": pace if coordinated > working else 0.0,
        **close.parts,
    }
    return UpdateCost(
        workers,
        seconds,
        groups,
        passes,
        reading.passages * pace / byte / group,
        group,
        close.seconds,
        close.received,
        max(parts, key=lambda name: parts[name]),
    )


@dataclass(frozen=True)
class _Close:
    """Cost of closing a group of shards: bytes that one worker receives, and seconds by cause."""

    received: float
    parts: dict[str, float]

    @classmethod
    def of(cls, job: Job, costs: StepCosts, workers: int, network: float) -> _Close:
        layout = job.layout
        # Each worker adds up `whole` blocks. The `rest` of the blocks are cut into pieces, which
        # several workers add up; the worker that writes such a block collects its pieces.
        whole, rest = divmod(job.row_blocks, workers)
        pieces = pieces_of(job.row_blocks - 1, job.row_blocks, workers)
        most = ceil(rest * pieces / workers)  # largest number of pieces that a worker adds up
        collected = layout.block_bytes if pieces > 1 else 0
        received = (whole + most / pieces) * layout.block_bytes * (workers - 1) + collected
        # seconds for each byte: the event loop of a worker first receives it, and then adds it
        byte = 1 / min(network, NETWORK_BYTES) + 1 / ADDED_BYTES
        even = layout.state_bytes * (workers - 1) / workers * byte
        asked = (whole + most) * (workers - 1) + (pieces if pieces > 1 else 0)
        asking = asked * PEER_SECONDS
        uneven = max(0.0, received * byte - even)
        writing = ceil((whole + (rest > 0)) / costs.threads) * costs.blocks.write
        written = writing + TASK_SECONDS * job.row_blocks + COMMIT_SECONDS
        parts = {"network": even + asking, "row blocks": uneven, "writing": written}
        return cls(received, parts)

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())


def segments_after(groups: int) -> tuple[int, int]:
    """Return how many segments are left after compaction, and how many the compaction reads.

    Before compaction there are `groups` segments, all of the same day and size.

    Examples
    --------
    >>> [segments_after(groups) for groups in (7, 8, 100)]
    [(7, 0), (1, 8), (9, 104)]
    """
    left, read = 0, 0
    while groups >= COMPACT_AFTER:
        read += groups // COMPACT_AFTER * COMPACT_AFTER
        left += groups % COMPACT_AFTER
        groups //= COMPACT_AFTER
    return left + groups, read


def _compacting(job: Job, costs: StepCosts, workers: int, groups: int) -> float:
    _, read = segments_after(groups)
    merges = read // COMPACT_AFTER
    rounds = ceil(job.row_blocks / (workers * costs.threads))
    return rounds * (read * costs.blocks.load + merges * costs.blocks.write) + (
        COMMIT_SECONDS * merges
    )
