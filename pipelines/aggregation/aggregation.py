"""Options and memory plan of a job that counts shards on the cluster."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from distributed import Client, Future
from distributed.comm.core import CommClosedError

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.aggregation.bundles import Bundle, bundled
from streaming_moments.pipelines.aggregation.freeze import keep_only_here, release_here
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.aggregation.sums import ProcessSums
from streaming_moments.pipelines.cluster.cluster import limit_for
from streaming_moments.pipelines.cluster.memory import UpdatePlan, plan_update
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import task_key
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost
from streaming_moments.pipelines.cluster.worker_rpc import ask_workers, give_plugin
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.segments.blocks import joining_bytes
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

_LEAST_SECONDS = 60.0
# A group of shards is read for at least this many times as long as it took to add up and write the
# last group.
_CLOSES = 20


@dataclass
class Pace:
    """Time after which a group closes, in seconds.

    `close` is how long it took to add up and write the last group, in all its passes.

    Examples
    --------
    >>> Pace(600.0).seconds, Pace(1.0).seconds, Pace(60.0, close=30.0).seconds
    (600.0, 60.0, 600.0)
    """

    commit_every: float
    close: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of reading before the next group closes."""
        return max(self.commit_every, _LEAST_SECONDS, _CLOSES * self.close)


@dataclass(frozen=True)
class Gathering:
    """What all steps of a job that counts shards share. Make one with `gathering_on`.

    store : defines the foundation of the counts
    context : future of the `ReadingContext` that the tasks share
    owner : name of the job that owns the sums on the workers: id of the client and a unique name
    numbers : iterator over the numbers that groups and tasks get
    keep_going : leave out unreadable shards; otherwise they are an error
    names : maps the URL from which a shard is read to the URL under which it is recorded, if the
        two differ
    dates : known days of the documents of a shard, by the URL of the shard. All shards of a group
        have the same days
    unique : contents that are already counted, as `Ledger.contents` returns them. A shard with one
        of these contents is bad, and so is the second shard with the same content. If None,
        duplicates are counted
    """

    store: MomentStore
    run: Run
    plan: UpdatePlan
    context: Future[Any]
    owner: str
    pace: Pace
    numbers: Iterator[int]
    keep_going: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, DateRange] = field(default_factory=dict)
    unique: Mapping[tuple[str, int], str] | None = None

    @property
    def slots(self) -> int:
        """Largest number of tasks that run or wait on the cluster at a time."""
        return self.run.cluster.workers * self.plan.reads_in_flight

    @property
    def least_limit(self) -> int:
        """Smallest memory limit, in bytes, with which a worker can do the job.

        Workers that join later need it as well.
        """
        return min(self.run.cluster.least_limit, limit_for(self.plan.peak_bytes))

    def bundles(self, shards: Sequence[Shard]) -> deque[Bundle]:
        """Group the shards into bundles, one for each task."""
        threads = self.run.cluster.workers * self.run.cluster.threads
        most = max(1, self.plan.group_shards // self.slots)
        return deque(bundled(shards, self.dates, threads, most))


@contextmanager
def gathering_on(
    store: MomentStore, run: Run, plan: UpdatePlan | None = None
) -> Iterator[Gathering]:
    """Plan the memory and send the shared context to the cluster; free all sums at the end.

    Raises BoundExceeded if the work does not fit into the memory budget.
    """
    plan = plan or plan_of(store, run)
    if plan.passes > 1:
        run.tell(plan.in_passes(store.layout))
    client = run.cluster.client
    give_plugin(client, ProcessSums())
    _give_up_those_of_the_dead(client)
    bounds = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    opening = task_key("opening the store")
    context = client.submit(
        ReadingContext.of, store, bounds, run.storage_options, pure=False, key=opening
    )
    owner = f"{client.id}/{uuid.uuid4().hex}"
    try:
        yield Gathering(store, run, plan, context, owner, Pace(run.commit_every), count())
    finally:
        if client.status == "running":
            # Ignore these errors: a dead scheduler has no workers left, and the next job reports
            # workers that do not answer.
            with suppress(CommClosedError, WorkersLost):
                ask_workers(client, release_here, owner)


def plan_of(store: MomentStore, run: Run) -> UpdatePlan:
    """Plan the memory for counting shards into this store on this cluster."""
    cluster = run.cluster
    joining = joining_bytes(store.commit.segments, store.layout)
    return plan_update(store.layout, cluster.threads, cluster.memory, run.limits, joining)


def _give_up_those_of_the_dead(client: Client) -> None:
    """Free the sums of jobs whose client was killed, because no one else frees them."""
    # cloudpickle sends a lambda by value, because the scheduler may lack this package
    clients: Any = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.clients))
    ask_workers(client, keep_only_here, frozenset(clients))


def refusal_of(bad: Sequence[ShardError]) -> InvalidInput | ShardError:
    """Return one error that names all unreadable shards of a group."""
    if len(bad) == 1:
        return ShardError(
            *bad[0].args,
            "no shard of its group was counted",
            "{update.skip_bad_shards} leaves this shard out",
        )
    lines = "; ".join(sorted(map(str, bad)))
    return InvalidInput(
        f"{of_number(len(bad), 'shard')} cannot be read, and no other shard of the group was "
        f"counted: {lines}.",
        "Repair or remove these shards, or leave them out by {update.skip_bad_shards}",
    )
