from dataclasses import replace

import numpy as np
import pytest

from streaming_moments import Basis
from streaming_moments.pipelines.cluster.memory import MEBIBYTE, plan_update
from streaming_moments.pipelines.planning.job import CorpusSize, Job
from streaming_moments.pipelines.planning.merging import merge_cost
from streaming_moments.pipelines.planning.step_costs import (
    BlockCosts,
    PilotCosts,
    ReadCosts,
    StepCosts,
)
from streaming_moments.pipelines.planning.update_cost import update_cost
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.merging.copying import AT_ONCE

GIBIBYTE = 1024 * MEBIBYTE
COLUMNS = np.random.default_rng(0).integers(-127, 128, (4096, 32)).astype(np.int8)
WORDS = CountsFoundation(Basis(COLUMNS, 10_000), codocuments=True, halves=False)
JOB = Job(CorpusSize(10**13, 100_000, 10**8), WORDS, 10, n_topics=16, pilot_documents=20_000)
BLOCKS = BlockCosts(
    add=1.2e-9, write=0.1, load=0.1, copy=0.02, disk_bytes=7e6, files=4, core_rows=0, evidence=0,
    topic_rows=0, whitening=0, rotation=0, finish=0, pairs=0, refinement=0, renewal=0,
)  # fmt: skip
COSTS = StepCosts(
    threads=4,
    pilot=PilotCosts(read=1e-5, cut=1e-5, choose=1.0),
    reading=ReadCosts(1e7, read=8e-8, open_shard=0.001, counts=6.0, passages=1 / 160, tokens=0.6),
    blocks=BLOCKS,
)
AMPLE = 8 * GIBIBYTE


def cost(workers, job=JOB, costs=COSTS, budget=AMPLE, **options):
    return update_cost(job, costs, workers, budget, **options)


def test_workers_add_up_what_they_read_in_even_shares():
    state = JOB.layout.state_bytes
    one = cost(1)
    assert one.received_bytes == 0
    for workers in (2, 5, 10):
        more = cost(workers)
        assert more.documents_per_second == pytest.approx(
            workers * one.documents_per_second, rel=0.05
        )
        assert more.received_bytes == pytest.approx(state * (workers - 1) / workers, rel=0.01)
    # a hundredth of a row block on each of a thousand workers, and who writes it collects them
    assert cost(1000).received_bytes == pytest.approx(1.1 * state, rel=0.01)
    for workers in (7, 16, 64, 256):
        assert cost(workers).received_bytes <= 1.2 * state * (workers - 1) / workers


def test_a_close_takes_at_most_a_twentieth_of_its_group():
    for workers in (1, 16, 256, 1000):
        for network in (125 * 10**6, 1250 * 10**6):
            made = cost(workers, network=network)
            assert made.group_seconds >= 600
            assert made.close_seconds <= made.group_seconds / 20


def test_the_bytes_of_a_close_do_not_depend_on_the_corpus():
    smaller = replace(JOB, corpus=CorpusSize(10**9, 100, 10**7))
    assert cost(8, smaller).received_bytes == cost(8).received_bytes
    assert cost(8, smaller).seconds < cost(8).seconds


def test_shards_are_read_once_a_pass_but_added_once():
    tight = 1200 * MEBIBYTE
    passes = plan_update(JOB.layout, COSTS.threads, tight).passes
    assert passes > 1
    once, often = cost(1), cost(1, budget=tight)
    assert often.passes == passes
    read = JOB.corpus.nbytes * COSTS.reading.read + JOB.corpus.shards * COSTS.reading.open_shard
    assert often.seconds - once.seconds == pytest.approx((passes - 1) * read / 4, rel=0.05)


def test_what_limits_is_said():
    assert cost(1).limit == "reading"
    heavy = replace(COSTS, blocks=replace(BLOCKS, add=1e-7))
    assert cost(1, costs=heavy).limit == "adding"
    small = replace(JOB, corpus=CorpusSize(10**9, 10**6, 1000))
    assert cost(1000, small).limit == "scheduler"
    assert cost(1000, small).documents_per_second == pytest.approx(
        cost(256, small).documents_per_second, rel=0.2
    )


def test_a_merge_copies_all_segments_once():
    groups, files = cost(1).groups, 10 * BLOCKS.files
    made = merge_cost(JOB, COSTS, AMPLE)
    assert made.copied_bytes == groups * 10 * BLOCKS.disk_bytes
    # rows and metadata of four arrays, and five more files, are read and written
    assert made.requests == 2 * groups * (files + 4 + 5) + 20
    assert made.seconds == pytest.approx(groups * 10 * BLOCKS.copy, rel=0.01)
    assert made.memory == AT_ONCE * BLOCKS.disk_bytes
    slow = merge_cost(JOB, COSTS, AMPLE, network=10**6)
    assert slow.seconds == pytest.approx(made.copied_bytes / 10**6, rel=0.01)
