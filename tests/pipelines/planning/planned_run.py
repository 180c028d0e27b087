"""A real create, update and refit in a process of its own, and then the plan of it: as JSON.

Real first: what it holds at most is not to be what planning held.
"""

import json
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from distributed import LocalCluster

from streaming_moments import Basis, CountBatch, MomentStatistics
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import coherence, refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.planning.cost import (
    cluster_cost,
    memory_need,
    store_bytes,
)
from streaming_moments.pipelines.planning.trial import Reading, try_out
from streaming_moments.pipelines.planning.update_cost import update_cost
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.reading import count_texts
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

THREADS = 2


@contextmanager
def clocked(seconds, name):
    """Seconds as on a machine that has nothing else to do: Linux says how long threads queued."""
    start, before = time.perf_counter(), ran_and_queued()
    yield
    passed, after = time.perf_counter() - start, ran_and_queued()
    ran, queued = after[0] - before[0], after[1] - before[1]
    seconds[name] = passed * ran / (ran + queued)
    seconds[f"{name} by the clock"] = passed


def ran_and_queued():
    ran = queued = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        one, other, _ = path.read_text().split()
        ran, queued = ran + int(one), queued + int(other)
    return ran * 1e-9, queued * 1e-9


def peak_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) << 10


def warm():
    """What a worker does once in its life."""
    policy = TokenPolicy()
    count_texts(["law and sea"], Vocabulary(("law",), 1, policy.fingerprint), policy)
    batch = CountBatch.from_csr([[2, 1, 0], [0, 1, 1]])
    MomentStatistics.of(batch, Basis.from_pilot(batch, 1))


@contextmanager
def one_thread(memory):
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            dashboard_address=":0",
            memory_limit=0,
        ) as local,
        connect(local.scheduler_address, memory=memory) as cluster,
    ):
        yield cluster


def main(shards, place, n_topics, memory):
    seconds = {}
    options, form, policy = PilotOptions(max_topics=n_topics), ShardFormat(), TokenPolicy()
    listed = list_shards([shards])
    warm()
    # words are cut by Python: a second thread would take turns with the first
    with one_thread(memory) as cluster, clocked(seconds, "create"):
        store = create(place, listed, form, policy, options, Run(cluster))
    with connect(memory=memory) as cluster:
        assert cluster.threads == THREADS, f"{cluster.threads} threads; the plan is for {THREADS}"
        with clocked(seconds, "update"):
            store = update(store, listed, Run(cluster)).store
        with clocked(seconds, "refit"):
            model = refit(store, n_topics, 0.1, Run(cluster))
            scores = coherence(store, model, Run(cluster))
            store = store.save_model("m", model.with_coherence(scores.umass, scores.npmi))
    peak = peak_bytes()
    disk = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
    job, costs = try_out(listed, Reading(form, policy), options, n_topics, THREADS)
    real = {"seconds": seconds, "peak": peak, "disk": disk, "segments": len(store.commit.segments)}
    planned = {
        "seconds": asdict(cluster_cost(job, costs, 1, memory)),
        "peak": memory_need(job, 1, THREADS, memory).peak,
        "disk": store_bytes(job, costs, memory),
        "segments": update_cost(job, costs, 1, memory).groups,
    }
    real |= {"words": store.basis.n_words, "tokens": store.commit.tokens}
    tokens = costs.reading.tokens * job.corpus.nbytes
    planned |= {"words": job.basis.n_words, "tokens": tokens}
    print(json.dumps({"real": real, "planned": planned, "costs": asdict(costs)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
