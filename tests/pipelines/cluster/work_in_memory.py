"""Work in a process of its own, and the bytes that it held and that were planned: as JSON.

One process does all of it, as each would compile the same kernels.
"""

import ctypes
import gc
import json
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
from planted_moments import Planted

from streaming_moments import Basis, CountBatch
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.aggregation.sums import Opening, ProcessSums, SumsAstray
from streaming_moments.pipelines.cluster import rows_on_cluster
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.memory import LIMITS, MEBIBYTE, plan_update
from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.transform import transform
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore


def many_topics(small):
    """Refit by tasks, or here where the store is small; give the plan."""
    rows_on_cluster.SMALL = small
    held, k = Planted(topics=160, row_blocks=80), 160
    with connect() as cluster:
        shape = cluster.workers, cluster.threads, cluster.memory
        options = TopicOptions(topics=k, method="svd", refine=0)
        refit(held, k, 0.0, Run(cluster), "svd")
    return plan_refit(held.layout, TopicModel, options, *shape)


def counting():
    foundation = CountsFoundation(Basis(np.eye(2000, 20, dtype=np.int8), 20_000), True)
    layout = SegmentLayout(foundation, 32)
    plan = plan_update(layout, 1, 1316 << 20, replace(LIMITS, row_group_bytes=4 << 20))
    [blocks] = plan.blocks(32)
    # sums held twice are above the plan, however little the process holds beside them
    assert 2 * layout.state_bytes > plan.peak_bytes
    batch = foundation.prepared(CountBatch.from_csr(np.eye(3, 20_000, dtype=np.int32) + 1))
    opening, held = Opening("client/job", 1, 0, blocks), ProcessSums()
    held.setup(SimpleNamespace(handlers={}))
    try:
        with held.counting(opening, layout, 1) as late:
            late.subtract([batch], plan.lump_bytes)
            # the next group begins, while a task of this one adds what nobody waits for
            with held.counting(replace(opening, group=2), layout, 2) as sums:
                sums.subtract([batch], plan.lump_bytes)
                late.subtract([batch], plan.lump_bytes)
    except SumsAstray:
        pass
    return plan


def shares_of_many_topics():
    n, k = 20_000, 400
    terms = tuple(f"w{number}" for number in range(n))
    policy = TokenPolicy()
    vocabulary = Vocabulary(terms, 50, policy.fingerprint)
    basis = Basis(np.eye(50, 5, dtype=np.int8), n, vocabulary.fingerprint)
    model = TopicModel.from_topics(np.full((n, k), 1 / n), np.full(k, 1 / k), alpha0=1.0)
    model = replace(model, vocabulary=vocabulary.fingerprint)
    limits = ReadLimits(1 * MEBIBYTE, row_group_bytes=1 * MEBIBYTE)
    with TemporaryDirectory() as folder, connect() as cluster:
        place = Path(folder, "a.txt")
        # a batch of short documents, then one that has every word
        place.write_text("w1 w2\n" * 40_000 + " ".join(terms) + "\n")
        store = MomentStore.create(folder + "/store", vocabulary, policy, basis, ShardFormat())
        run = Run(cluster, limits=limits)
        transform(store, model, list_shards([str(place)]), folder + "/shares", run)
        return plan_transform(n, k, 1, cluster.memory, limits)


WORK = {
    "many topics by tasks": lambda: many_topics(-1),
    "many topics": lambda small=rows_on_cluster.SMALL: many_topics(small),
    "counting": counting,
    "shares of many topics": shares_of_many_topics,
}


def measured(work):
    """Most bytes that the process held meanwhile, and those that were planned."""
    # what earlier work left goes, and the most is that of from now on
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    planned = work().peak_bytes
    held = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]
    return int(held) << 10, planned


if __name__ == "__main__":
    print(json.dumps({name: measured(work) for name, work in WORK.items()}))
