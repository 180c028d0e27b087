"""Gathering: where and how shards are read on the cluster and added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from distributed import Future

from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.memory import LIMITS, StateSize, UpdatePlan, plan_update
from streaming_moments.pipelines.parts import ReadingContext
from streaming_moments.pipelines.progress import StepProgress
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.store import MomentStore


@dataclass(frozen=True)
class Gathering:
    """Where and how shards are gathered. Make one with `begin`.

    Parameters
    ----------
    store : MomentStore
        Whose words and basis are counted with.
    cluster : Cluster
        Where to run.
    plan : UpdatePlan
        How memory is divided.
    context : Future
        Of the `ReadingContext` of the read tasks.
    progress : StepProgress
        Told of each shard and row block.
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
    cluster: Cluster
    plan: UpdatePlan
    context: Future[Any]
    progress: StepProgress
    keep_going: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    dates: Mapping[str, DateRange] = field(default_factory=dict)
    unique: Mapping[tuple[str, int], str] | None = None

    @classmethod
    def begin(
        cls,
        store: MomentStore,
        cluster: Cluster,
        progress: StepProgress,
        limits: ReadLimits | None = None,
        storage_options: Mapping[str, object] | None = None,
        plan: UpdatePlan | None = None,
    ) -> Gathering:
        """Plan the memory and send the cluster what all read tasks need.

        Raises
        ------
        BoundExceeded
            The memory budget cannot hold the work.
        """
        limits = limits or LIMITS
        plan = plan or plan_of(store, cluster, limits)
        bounds = replace(limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
        context = cluster.client.submit(
            ReadingContext.of, store, bounds, storage_options, pure=False
        )
        return cls(store, cluster, plan, context, progress)


def plan_of(store: MomentStore, cluster: Cluster, limits: ReadLimits = LIMITS) -> UpdatePlan:
    """Memory plan of gathering shards for this store on this cluster."""
    size = StateSize(store.basis, store.row_blocks, store.codocuments)
    return plan_update(size, cluster.threads, cluster.memory, limits, cluster.workers)
