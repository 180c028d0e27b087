"""The plan of a worker's memory: never more than its budget, nor its budget than its limit."""

import json
import logging
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from distributed import LocalCluster
from hypothesis import assume, given
from hypothesis import strategies as st

from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.models.registry import MODELS
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster import rows_on_cluster
from streaming_moments.pipelines.cluster.cluster import budget_of, connect
from streaming_moments.pipelines.cluster.memory import (
    MEBIBYTE,
    PROCESS_BYTES,
    Budget,
    largest,
    plan_reading,
    plan_update,
)
from streaming_moments.pipelines.cluster.model_memory import plan_polish, plan_transform
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.pipelines.option_types import Bytes
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.layout import SegmentLayout, row_blocks_for

SIZES = st.integers(300, 4000).map(lambda number: f"{number}MB") | st.integers(300, 4000).map(
    lambda number: f"{number}MiB"
)


@st.composite
def bases(draw, words=20_000, core=800, columns=60):
    rows, width = draw(st.integers(1, core)), draw(st.integers(1, columns))
    signs = np.eye(rows, min(rows, width), dtype=np.int8)
    return Basis(signs, draw(st.integers(rows, words)))


def of_topics(number, method):
    return TopicOptions(topics=number, method=method, refine=0)


@given(bases(40, 20, 6), st.booleans(), st.integers(1, 9))
def test_the_bytes_of_the_statistics_are_those_of_their_arrays(basis, codocuments, blocks):
    foundation = CountsFoundation(basis, codocuments)
    layout = SegmentLayout(foundation, min(blocks, basis.n_words))
    whole = MomentStatistics.zero(basis, codocuments=codocuments)
    assert layout.state_bytes == whole.nbytes == sum(one.nbytes for one in whole.arrays().values())
    parts = [
        MomentStatistics.zero(basis, RowBlock(index, layout.row_blocks), codocuments).nbytes
        for index in range(layout.row_blocks)
    ]
    assert layout.block_bytes == max(parts)
    assert layout.state_bytes == sum(parts)


@given(bases(), SIZES, st.integers(1, 16), st.integers(1, 16), st.sampled_from([0, 1 << 20]))
def test_no_plan_passes_its_budget(basis, budget, threads, workers, row_group_bytes):
    memory = Bytes().convert(budget, None, None)
    foundation = CountsFoundation(basis, True)
    layout = SegmentLayout(foundation, row_blocks_for(foundation))
    limits = ReadLimits(8 << 20, row_group_bytes=row_group_bytes or None)
    k = min(basis.columns, 40)
    held = 0
    for planned in (
        lambda: plan_reading(threads, memory, limits),
        lambda: plan_polish(basis.n_words, k, threads, memory, limits),
        lambda: plan_transform(basis.n_words, k, threads, memory, limits, 200),
        lambda: plan_update(layout, threads, memory, limits),
        *(
            lambda method=method: plan_refit(
                layout, TopicModel, of_topics(k, method), workers, threads, memory
            )
            for method in ("joint", "feature", "als")
        ),
    ):
        try:
            peak = planned().peak_bytes
        except BoundExceeded:
            continue
        assert peak <= memory
        held += 1
    assume(held)


def test_the_plan_of_an_update_holds_the_sums_of_a_lump_of_vectors():
    grid = Grid(np.zeros(4096), 1.0, 16_000)
    sketch = np.eye(4096, 8, dtype=np.int8), np.zeros(8, np.uint8)
    foundation = VectorsFoundation(grid, *sketch)
    layout = SegmentLayout(foundation, row_blocks_for(foundation))
    plan = plan_update(layout, 2, 4096 * MEBIBYTE)
    assert plan.passes == 1
    assert foundation.joined_bytes > layout.state_bytes
    beside = 2 * (foundation.joined_bytes + 2 * plan.lump_bytes)
    assert 4096 * MEBIBYTE >= plan.peak_bytes > PROCESS_BYTES + layout.state_bytes + beside
    with pytest.raises(BoundExceeded, match="for 2 threads,"):
        plan_update(layout, 2, 1024 * MEBIBYTE)


def test_a_core_that_no_worker_holds_stays_on_all_of_them():
    basis = Basis(np.eye(8192, 20, dtype=np.int8), 20_000)
    layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 128)
    memory = 1500 * MEBIBYTE
    fit = layout, TopicModel, of_topics(10, "joint")
    assert plan_refit(*fit, 1, 1, 4096 * MEBIBYTE).whole_core
    several = plan_refit(*fit, 8, 1, memory)
    assert not several.whole_core
    assert several.peak_bytes <= memory
    with pytest.raises(BoundExceeded, match=r"1\.1 GiB for whitening"):
        plan_refit(*fit, 1, 1, memory)


def test_work_holds_no_more_than_its_plan(tmp_path):
    # compiling takes memory too, and a new installation has no kernels yet
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("work_in_memory.py")],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    bytes_of = json.loads(done.stdout)
    assert len(bytes_of) == 4
    assert {name: told for name, told in bytes_of.items() if told[0] > told[1]} == {}


@contextmanager
def limited(limit):
    """A scheduler whose worker has a memory limit, which Dask reads."""
    with LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        memory_limit=limit,
        protocol="tcp",
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as local:
        yield local.scheduler_address


@pytest.mark.parametrize("limit", ["2GB", "2GiB"])
def test_the_limit_of_a_worker_and_memory_are_in_the_same_bytes(limit):
    bytes_of = Bytes().convert(limit, None, None)
    most = bytes_of * 3 // 4
    told = rf"{most + 1:,} bytes is above 75% of .* \({most:,} of {bytes_of:,} bytes\).* Lower --m"
    with limited(limit) as address:
        with connect(address, memory=most) as cluster:
            assert cluster.memory == most
        with connect(address) as cluster:
            assert cluster.memory == budget_of(bytes_of) < most
        with pytest.raises(InvalidInput, match=told), connect(address, memory=most + 1):
            pass


def words(number, name="w"):
    return Vocabulary(tuple(f"{name}{place}" for place in range(number)), number)


def counted():
    return CountsFoundation(Basis(np.eye(300, 100, dtype=np.int8), 300_000), True)


def of_views():
    views = tuple(words(3000, name) for name in "abc")
    signs = np.eye(3000, 30, dtype=np.int8)
    return ViewsFoundation(tuple(Basis(signs, 3000, one.fingerprint) for one in views), views)


def of_sequences():
    alphabet = words(3000)
    return SequencesFoundation(
        alphabet, Basis(np.eye(3000, 30, dtype=np.int8), 3000, alphabet.fingerprint)
    )


def of_edges():
    return EdgesFoundation(words(2000))


def of_sets():
    features = words(3000)
    signs = np.eye(3000, 30, dtype=np.int8)
    return SetsFoundation(features, Basis(signs, 3000, features.fingerprint))


def of_vectors():
    grid = Grid(np.zeros(64), 1.0, 16_000)
    return VectorsFoundation(grid, np.eye(64, 20, dtype=np.int8), np.zeros(20, np.uint8))


# Bytes that plans held, and tasks that ran, before they were made of budgets.
PLANNED = [
    (counted, "topics", 10_527_531_640, 2),
    (counted, "poisson", 9_327_531_640, 2),
    (counted, "independent", 10_047_531_640, 2),
    (counted, "communities", 10_527_531_640, 2),
    (counted, "latent_tree", 9_327_531_640, 2),
    (of_views, "views", 523_230_816, 2),
    (of_sequences, "hmm", 966_678_336, 2),
    (of_edges, "blockmodel", 872_067_136, 2),
    (of_sets, "bernoulli_mixture", 1_641_672_416, 1),
    (of_vectors, "gaussian_mixture", 437_399_071, 1),
    (of_vectors, "factors", 437_399_071, 1),
]


@pytest.mark.parametrize(("made", "name", "peak", "in_flight"), PLANNED)
def test_a_refit_of_each_kind_holds_what_it_held(made, name, peak, in_flight):
    foundation, model = made(), MODELS[name]
    layout = SegmentLayout(foundation, row_blocks_for(foundation))
    plan = plan_refit(layout, model, model.Options(topics=100), 2, 2, 16_384 * MEBIBYTE)
    assert (plan.peak_bytes, plan.in_flight) == (peak, in_flight)
    assert plan.keep_blocks


@pytest.mark.parametrize("workers", [1, 4, 40])
def test_a_job_is_small_only_where_one_process_holds_the_rows_of_all_workers(workers):
    foundation = CountsFoundation(Basis(np.eye(1000, 20, dtype=np.int8), 40_000), True)
    layout = SegmentLayout(foundation, row_blocks_for(foundation))
    assert layout.state_bytes > rows_on_cluster.SMALL
    options = MODELS["topics"].Options(topics=10)
    plan = plan_refit(layout, MODELS["topics"], options, workers, 2, 8192 * MEBIBYTE)
    assert plan.keep_blocks
    assert plan.work_bytes > layout.state_bytes
    assert rows_on_cluster.rows_for(plan.work_bytes) is rows_on_cluster.OnCluster


def test_the_plan_of_every_model_is_recorded():
    assert {name for _, name, _, _ in PLANNED} == {*MODELS}


def test_a_budget_names_what_does_not_fit_and_what_to_do():
    steps = Budget("a sum", {"counts": 300 * MEBIBYTE, "nothing": 0}), Budget("a fit", {"rows": 1})
    assert largest(1024 * MEBIBYTE, *steps) == PROCESS_BYTES + 300 * MEBIBYTE
    told = (
        r"^a sum needs 716 MiB on each worker \(416 MiB for the process, 300 MiB for counts\) but "
        "the budget is 512 MiB; raise --memory$"
    )
    with pytest.raises(BoundExceeded, match=told):
        largest(512 * MEBIBYTE, *steps)
    steps[1].require(512 * MEBIBYTE)
