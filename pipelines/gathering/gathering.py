"""Gathering: where and how shards are read on the cluster and added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from distributed import Future

from streaming_moments.pipelines.cluster.memory import UpdatePlan, plan_update
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.parts import ReadingContext
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class Gathering:
    """Where and how shards are gathered. Make one with `begin`.

    Parameters
    ----------
    store : MomentStore
        Whose words and basis are counted with.
    run : Run
        Where to run, and what its steps are told.
    plan : UpdatePlan
        How memory is divided.
    context : Future
        Of the `ReadingContext` of the read tasks.
    keep_going : bool
        Whether shards that cannot be read are left out; else they are an error.
    names : mapping
        URL by which a shard is recorded, where it is read at another one.
    dates : mapping
        Days of the documents of a shard by its URL, where they are known; a group has one range.
    unique : mapping, optional
        As `Ledger.contents`: a shard of one of these contents is a bad one, and so is the second
        of the same content; None counts it like any other.
    """

    store: MomentStore
    run: Run
    plan: UpdatePlan
    context: Future[Any]
    keep_going: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, DateRange] = field(default_factory=dict)
    unique: Mapping[tuple[str, int], str] | None = None

    @classmethod
    def begin(cls, store: MomentStore, run: Run, plan: UpdatePlan | None = None) -> Gathering:
        """Plan the memory and send the cluster what all read tasks need.

        Raises
        ------
        BoundExceeded
            The memory budget cannot hold the work.
        """
        plan = plan or plan_of(store, run)
        bounds = replace(
            run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes
        )
        context = run.cluster.client.submit(
            ReadingContext.of, store, bounds, run.storage_options, pure=False
        )
        return cls(store, run, plan, context)


def plan_of(store: MomentStore, run: Run) -> UpdatePlan:
    """Memory plan of gathering shards for this store on this cluster."""
    cluster = run.cluster
    return plan_update(store.layout, cluster.threads, cluster.memory, run.limits, cluster.workers)
