"""Whoever runs the steps of a fit: the same bits from the same row blocks."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from campaigns import Campaigns
from dask.sizeof import sizeof
from distributed import Future, WorkerPlugin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planted_moments import Planted
from threadpoolctl import threadpool_limits

from streaming_moments import (
    METHODS,
    Basis,
    CountBatch,
    MomentStatistics,
    RowBlock,
    fit_by,
)
from streaming_moments.decompositions import methods
from streaming_moments.decompositions.evidence import evidence_bytes
from streaming_moments.decompositions.forms import PerDocument, form_of
from streaming_moments.decompositions.methods import OfTensor
from streaming_moments.decompositions.power_method import by_power_method
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models import rows as running
from streaming_moments.models.fit import fit_rows
from streaming_moments.models.halves import HalfRows
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.refinement import pair_rows
from streaming_moments.models.rows import InMemory, number_of_strips
from streaming_moments.models.second_start import made_there
from streaming_moments.models.sweeps import slice_evidence, whiten_rows
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.pipelines.cluster.rows_on_cluster import OnCluster, RowsHere
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.refit import refit, refit_by
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.pipelines.planning.timed_rows import Timed
from streaming_moments.quality.matching import match_topics
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.tensor import tensor_sums_bytes
from streaming_moments.statistics.counts.weighted import WeightedStatistics
from streaming_moments.statistics.counts.whitening import core_rows
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.synthetic.corpora import lda_corpus

WORDS, CORE, TOPICS = 40, 30, 3
BATCH = lda_corpus(400, WORDS, TOPICS, mean_length=30, concentration=40, seed=5).batch
BASIS = Basis.from_pilot(BATCH, max_topics=TOPICS, core=CORE)
POOLED = Basis.from_pilot(BATCH, max_topics=TOPICS, core=CORE, length_weights="pooled")


@dataclass(frozen=True)
class Held:
    """Row blocks as a version of a store gives them."""

    blocks: tuple[MomentStatistics | WeightedStatistics, ...]
    codocuments: bool = True
    version: int = 1
    halves: bool = True

    @property
    def basis(self):
        return self.blocks[0].basis

    @property
    def row_blocks(self):
        return len(self.blocks)

    @property
    def layout(self):
        return SegmentLayout(CountsFoundation(self.basis, self.codocuments), self.row_blocks)

    def row_lengths(self):
        return self.blocks[0].row_lengths

    def load_block(self, index, halves=True):
        return self.blocks[index]

    def load_blocks(self, indices, halves=True):
        return [self.blocks[index] for index in indices]


def blocks_of(number, weighted, basis=BASIS):
    parts = [MomentStatistics.of(BATCH, basis, RowBlock(index, number)) for index in range(number)]
    if weighted:
        return tuple(WeightedStatistics.of([(0.5, part), (0.3, part)]) for part in parts)
    return tuple(parts)


def runners(blocks, cluster, pool, keep):
    held = Held(blocks)
    lengths = held.row_lengths()
    yield InMemory(blocks)
    for where in (OnCluster, RowsHere):
        yield where.of(held, lengths, Run(cluster), per_worker=2, keep=keep)
    yield Timed(held.basis, lengths, blocks, pool, known={})


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.fixture(scope="module")
def processes():
    with connect(workers=2) as cluster:
        yield cluster


def outcome(rows, k, alpha0, method):
    """All that a model holds, or why there is none."""
    try:
        model = fit_rows(rows, k, form_of(alpha0), method, seed=3)
    except NotIdentifiable as error:
        return {"refusal": str(error)}
    return {**model.arrays(), "attributes": model.attributes()}


def same(one, other):
    if not isinstance(one, np.ndarray):
        return one == other
    return np.array_equal(one, other, equal_nan=True)


@settings(
    max_examples=Campaigns.asked_for().size(12, 25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    number=st.integers(1, 9),
    k=st.integers(1, TOPICS + 1),
    alpha0=st.sampled_from([0.0, 0.2, 3.0]),
    method=st.sampled_from(METHODS),
    weighted=st.booleans(),
    keep=st.booleans(),
    few_strips=st.booleans(),
)
def test_every_runner_gives_the_same_bits(
    embedded, pool, monkeypatch, number, k, alpha0, method, weighted, keep, few_strips
):
    blocks = blocks_of(number, weighted)
    nbytes = evidence_bytes(k)
    with monkeypatch.context() as patch:
        if few_strips:
            patch.setattr(running, "FEWEST_STRIPS", 2)
            patch.setattr(running, "_MOST_STRIP_SUMS", 2 * nbytes)
        assert number_of_strips(number, nbytes) == min(number, 2 if few_strips else number)
        found = [outcome(rows, k, alpha0, method) for rows in runners(blocks, embedded, pool, keep)]
    for other in found[1:]:
        assert found[0].keys() == other.keys()
        assert all(same(found[0][name], other[name]) for name in other)


def test_evidence_of_256_topics_has_the_same_bits_on_any_cluster(embedded, processes):
    held = Planted()
    blocks = [held.load_block(index) for index in range(4)]
    nbytes = tensor_sums_bytes(256, 256)
    assert number_of_strips(4, nbytes) == 4
    known = held.row_lengths().whole, held.basis, 256, form_of(0.0)
    whitening = whiten_rows([core_rows(block) for block in blocks], *known)

    def found(rows):
        # bits of a product depend on the threads of BLAS: tasks that add up have one
        with threadpool_limits(1):
            sums = rows.summed("slices", slice_evidence, whitening, "joint", nbytes=nbytes)
            return rows.value(sums).sums

    def on(cluster):
        return OnCluster.of(held, held.row_lengths(), Run(cluster), per_worker=1)

    expected, one = found(InMemory(blocks)), found(on(embedded))
    two = found(on(processes))
    for other in (one, two):
        assert np.array_equal(other.sketched, expected.sketched)
        assert np.array_equal(other.crossed, expected.crossed)


@pytest.mark.parametrize("weighted", [False, True])
def test_whitening_by_rows_is_that_of_the_whole_core_on_any_cluster(
    embedded, processes, monkeypatch, weighted
):
    # strips of several blocks, and a block without core words
    monkeypatch.setattr(running, "FEWEST_STRIPS", 3)
    monkeypatch.setattr(running, "_MOST_STRIP_SUMS", 1)
    held = Held(blocks_of(CORE + 1, weighted))

    def fitted(rows):
        with threadpool_limits(1):
            return fit_rows(rows, TOPICS, form_of(0.2))

    def on(cluster, whole_core=False):
        run = Run(cluster)
        return OnCluster.of(held, held.row_lengths(), run, per_worker=2, whole_core=whole_core)

    whole = fitted(on(embedded, whole_core=True))
    expected = fitted(InMemory(held.blocks, whole_core=False))
    one = fitted(on(embedded))
    two = fitted(on(processes))
    for name, array in expected.arrays().items():
        np.testing.assert_allclose(array, whole.arrays()[name], rtol=1e-7, atol=1e-10)
        for other in (one, two):
            assert np.array_equal(other.arrays()[name], array, equal_nan=True)


@settings(
    max_examples=Campaigns.asked_for().size(3, 8),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    number=st.integers(1, 9),
    alpha0=st.sampled_from([0.0, 0.2]),
    weighted=st.booleans(),
    keep=st.booleans(),
)
def test_refinement_gives_the_same_bits_whoever_runs_it(
    embedded, pool, number, alpha0, weighted, keep
):
    blocks = blocks_of(number, weighted)
    held = Held(blocks)
    start = fit_rows(InMemory(blocks), TOPICS, form_of(alpha0))
    streamed = [
        where.of(held, held.row_lengths(), Run(embedded), 2, keep=keep, keep_prepared=False)
        for where in (OnCluster, RowsHere)
    ]
    [whole] = blocks_of(1, weighted)
    alone = InMemory((whole,))
    expected = start.likelier(pair_rows(alone), 4)
    trusted = start.trusted(HalfRows.of(alone))
    # a topic that repeats another
    twice = start.topics.copy()
    twice[:, -1] = (3 * twice[:, 0] + twice[:, -1]) / 4
    repeating = replace(start, topics=twice)
    both = made_there(repeating, pair_rows(alone), 2, HalfRows.of(alone), 5)
    assert both.second_start.repeated
    for rows in (*runners(blocks, embedded, pool, keep), *streamed):
        found = start.likelier(pair_rows(rows), 4)
        assert np.array_equal(found.topics, expected.topics)
        assert np.array_equal(found.pair_weights, expected.pair_weights)
        if rows.halves:
            again = start.trusted(HalfRows.of(rows))
            assert np.array_equal(again.word_bars, trusted.word_bars)
            assert again.held_out == trusted.held_out
            given = pair_rows(rows), 2, HalfRows.of(rows), 5
            found = rows.value(made_there(rows.shared(repeating), *given))
            assert np.array_equal(found.topics, both.topics)
            assert found.second_start == both.second_start


class Results(WorkerPlugin):
    """What each task leaves on its worker: its kind, what Dask takes it for, and what travels."""

    name = "results"

    def setup(self, worker):
        self.worker, self.seen = worker, {}

    def transition(self, key, start, finish, **_):
        if finish == "memory":
            value = self.worker.data[key]
            kind = "list" if isinstance(value, list) else type(value).__name__
            arrays = []
            shell = len(pickle.dumps(value, protocol=5, buffer_callback=arrays.append))
            self.seen[key] = kind, sizeof(value), sum(one.raw().nbytes for one in arrays), shell


def results_of(dask_worker):
    return list(dask_worker.plugins[Results.name].seen.values())


@pytest.mark.usefixtures("each_step_a_task")
@pytest.mark.parametrize("weighted", [False, True])
def test_dask_knows_the_bytes_of_all_that_tasks_leave_for_others(embedded, weighted):
    held = Held(blocks_of(4, weighted, POOLED))
    embedded.client.register_plugin(Results())
    try:
        for model in (TopicModel, PoissonMixture):
            refit_by(held, model, model.Options(topics=2), Run(embedded))
        for method in ("feature", "als"):
            select(held, [2, 3], [0.2], Run(embedded), method, refine=2)
        [seen] = embedded.client.run(results_of).values()
    finally:
        embedded.client.unregister_worker_plugin(Results.name)
    kinds = {kind for kind, *_ in seen}
    statistics = "WeightedStatistics" if weighted else "MomentStatistics"
    assert {statistics, "Whitening", "GapEvidence", "TensorEvidence", "Directions"} <= kinds
    assert {"PairRows", "PairTopics", "TopicModel", "Solved"} <= kinds
    untrue = [
        (kind, told, arrays, shell)
        for kind, told, arrays, shell in seen
        if not arrays <= told <= 1.1 * arrays + 2 * (shell + 100)
    ]
    assert untrue == []


@pytest.fixture(scope="module")
def wide():
    """Row blocks of many words, few of them in the core."""
    batch = lda_corpus(400, 4000, TOPICS, mean_length=60, concentration=40, seed=5).batch
    basis = Basis.from_pilot(batch, max_topics=TOPICS, core=60)
    return Held(tuple(MomentStatistics.of(batch, basis, RowBlock(index, 4)) for index in range(4)))


@pytest.fixture
def arrived(monkeypatch):
    """Bytes of each result that was brought to the client."""
    sizes, result = [], Future._result

    async def noted(future, raiseit=True):
        found = await result(future, raiseit)
        sizes.append(len(pickle.dumps(found, protocol=5)))
        return found

    monkeypatch.setattr(Future, "_result", noted)
    return sizes


@pytest.mark.usefixtures("each_step_a_task")
@pytest.mark.parametrize("method", ["joint", "feature"])
@pytest.mark.parametrize("refine", [0, 3])
def test_of_models_that_are_compared_only_numbers_come_to_the_client(
    embedded, wide, arrived, method, refine
):
    selection = select(wide, [2, 3], [0.0, 0.2], Run(embedded), method, refine=refine)
    assert not any(one.refusal for one in selection.candidates)
    # the counts of the top words of all models among it; topics of four models have 320,000
    assert sum(arrived) < 8 * wide.basis.n_words * TOPICS


@pytest.mark.usefixtures("each_step_a_task")
@pytest.mark.parametrize("refine", [0, 3])
def test_of_a_refit_the_model_comes_to_the_client_once(embedded, wide, arrived, refine):
    model = refit(wide, TOPICS, 0.2, Run(embedded), refine=refine)
    assert sum(arrived) < 1.1 * len(pickle.dumps(model, protocol=5)) + 10_000


def test_blocks_that_are_missing_or_in_disorder_are_refused():
    one, two, three = blocks_of(3, weighted=False)
    for held in ([one], [two, one, three], [one, two]):
        with pytest.raises(InvalidInput, match=r"row block \d of 3.*; merge all blocks"):
            InMemory(held)
    with pytest.raises(InvalidInput, match="no rows"):
        InMemory([])


def test_blocks_in_memory_are_fitted_like_all_rows():
    [whole] = blocks_of(1, weighted=False)
    for method in METHODS:
        expected = fit_by(whole, TOPICS, 0.2, method, refine=0)
        found = fit_rows(InMemory(blocks_of(4, weighted=False)), TOPICS, form_of(0.2), method)
        np.testing.assert_allclose(found.topics, expected.topics, atol=1e-9)
        known = expected.attributes()
        del known["held_out"]  # of a fit of all steps
        assert found.attributes() == known


def test_a_mixture_of_poissons_is_fitted_by_the_moments_of_documents():
    rng = np.random.default_rng(2)
    weights = np.array([0.5, 0.3, 0.2])
    # documents of a component are the longer, the rarer it is
    rates = rng.dirichlet(np.full(WORDS, 0.5), size=3).T * np.array([10.0, 20.0, 40.0])
    chosen = rng.choice(3, size=8000, p=weights)
    batch = CountBatch.from_csr(rng.poisson(rates[:, chosen].T))
    basis = Basis.from_pilot(batch, max_topics=3, core=CORE, length_weights="pooled")
    statistics = MomentStatistics.of(batch, basis)
    model = fit_rows(InMemory((statistics,)), 3, PerDocument())
    found, truth, _ = match_topics(model.raw_topics, rates)
    np.testing.assert_allclose(model.weights[found], weights[truth], atol=0.02)
    errors = np.abs(model.raw_topics[:, found] - rates[:, truth]).sum(axis=0)
    assert (errors < 0.05 * rates[:, truth].sum(axis=0)).all()


def test_a_new_decomposition_is_one_entry_its_memory_included(embedded, monkeypatch):
    greedy = OfTensor("greedy", by_power_method, copies=1000)
    monkeypatch.setattr(methods, "DECOMPOSITIONS", {**methods.DECOMPOSITIONS, "greedy": greedy})
    held = Held(blocks_of(4, weighted=False))
    found, expected = (
        refit(held, TOPICS, 0.2, Run(embedded), name) for name in ("greedy", "power")
    )
    assert np.array_equal(found.topics, expected.topics)
    assert found.method == "greedy"
    best = select(held, [2, 3], [0.2], Run(embedded), "greedy").best
    assert best.npmi == select(held, [2, 3], [0.2], Run(embedded), "power").best.npmi

    def planned(method):
        options = TopicOptions(topics=60, method=method, refine=0)
        return plan_refit(held.layout, TopicModel, options, 1, 2, 8 << 30).peak_bytes

    large, small = map(planned, ("greedy", "power"))
    assert large > 1000 * evidence_bytes(60) > small
    with pytest.raises(InvalidInput, match='method is "jacobi"; choose joint'):
        planned("jacobi")
