"""Refit and transform on the cluster against the serial functions."""

import dataclasses

import numpy as np
import pyarrow.parquet as pq
import pytest

from streaming_moments import METHODS, Basis, fit, fit_by
from streaming_moments.errors import BoundExceeded, InvalidInput, NotIdentifiable, StoreError
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.memory import MEBIBYTE
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.outputs.transform import transform
from streaming_moments.pipelines.jobs.refit import coherence, refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.quality.coherences import npmi_coherence, umass_coherence
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory, shards, embedded):
    options = PilotOptions(vocabulary_size=140, core=110, max_topics=5, min_documents=1)
    folder = tmp_path_factory.mktemp("refit") / "store"
    policy = TokenPolicy()
    return create(
        str(folder), list_shards([str(shards)]), ShardFormat(), policy, options, Run(embedded)
    )


@pytest.fixture(scope="module")
def store(empty_store, shards, embedded):
    listed = list_shards([str(shards)])
    half = update(empty_store, listed[:3], Run(embedded)).store
    return update(half, listed, Run(embedded)).store


@pytest.fixture(scope="module")
def statistics(store):
    return store.load()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha0", [0.0, 1.0])
def test_refit_is_the_serial_fit(store, statistics, embedded, method, alpha0):
    found = refit(store, 4, alpha0, Run(embedded), method, seed=3)
    expected = fit_by(statistics, 4, alpha0, method, seed=3)
    np.testing.assert_allclose(found.topics, expected.topics, atol=1e-9)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-9)
    np.testing.assert_allclose(found.spectrum, expected.spectrum)
    assert found.held_out.mean == pytest.approx(expected.held_out.mean, rel=1e-9)
    same = dataclasses.replace(found, held_out=expected.held_out)
    assert same.attributes() == expected.attributes()
    assert found.method == method


@pytest.mark.usefixtures("each_step_a_task")
def test_the_seed_reaches_the_workers(store, embedded):
    one, two, again = (refit(store, 4, 1.0, Run(embedded), "svd", seed) for seed in (1, 2, 1))
    assert np.array_equal(one.topics, again.topics)
    assert not np.allclose(one.topics, two.topics, atol=1e-6)


@pytest.mark.parametrize("method", ["joint", "als"])
def test_blocks_are_read_again_where_memory_is_short(store, embedded, monkeypatch, method):
    read, load = [], MomentStore.load_blocks

    def counting(opened, indices, halves):
        read.extend(indices)
        return load(opened, indices, halves)

    monkeypatch.setattr(MomentStore, "load_blocks", counting)
    rich = refit(store, 4, 1.0, Run(embedded), method)
    assert len(read) == store.row_blocks
    options = TopicOptions(topics=4, method=method, refine=0)
    shape = store.layout, TopicModel, options, embedded.workers, embedded.threads
    peak = plan_refit(*shape, embedded.memory).peak_bytes
    # room for the work and the pair counts, none to keep a block besides
    poor = dataclasses.replace(embedded, memory=peak - store.row_blocks * store.layout.block_bytes)
    assert plan_refit(*shape, poor.memory).keep_pairs
    assert np.array_equal(refit(store, 4, 1.0, Run(poor), method).topics, rich.topics)
    # the pairs of the halves are read with those of all documents
    assert len(read) == 5 * store.row_blocks
    # room for neither: each round reads them
    pairs = 4 * store.basis.core * store.basis.n_words
    poorest = dataclasses.replace(embedded, memory=poor.memory - 3 * pairs)
    assert not plan_refit(*shape, poorest.memory).keep_pairs
    found = refit(store, 4, 1.0, Run(poorest), method, refine=3)
    assert np.array_equal(
        found.topics, refit(store, 4, 1.0, Run(embedded), method, refine=3).topics
    )
    # a half its own start, a round, and its likelihood by the other
    assert len(read) == (5 + 3 + 3 + 2 * 3 + 1) * store.row_blocks
    with pytest.raises(BoundExceeded, match=r"refit of 4 topics needs \d+ MiB .* budget is 64 MiB"):
        refit(store, 4, 1.0, Run(dataclasses.replace(embedded, memory=64 * MEBIBYTE)))


def test_what_the_slices_of_all_strips_say_is_part_of_the_plan():
    # one worker adds it up; 100 topics on 158 blocks held half a gigabyte that no plan knew of
    basis = Basis(np.eye(200, 100, dtype=np.int8), 5_000)
    layout = SegmentLayout(CountsFoundation(basis, codocuments=True), 158)
    with pytest.raises(BoundExceeded, match="59 MiB for slices of all rows"):
        plan_refit(layout, TopicModel, TopicOptions(topics=100, refine=0), 1, 2, 500 * MEBIBYTE)


def test_coherence_from_blocks_is_that_of_the_whole(store, embedded):
    model, statistics = fit(store.load(), 4, 1.0), store.load()
    found = coherence(store, model, Run(embedded))
    frequencies, together = statistics.document_frequencies, statistics.codocuments
    expected = npmi_coherence(
        model.topics, frequencies, together, statistics.n_documents, number=10
    )
    np.testing.assert_allclose(found.npmi, expected)
    np.testing.assert_allclose(
        found.umass, umass_coherence(model.topics, frequencies, together, number=10)
    )


def test_what_cannot_be_fitted_says_why(empty_store, store, embedded):
    with pytest.raises(NotIdentifiable, match=r"version 0 .* run `streaming-moments update`"):
        refit(empty_store, 4, 1.0, Run(embedded))
    with pytest.raises(NotIdentifiable, match="99 topics are asked for, but the basis has"):
        refit(store, 99, 1.0, Run(embedded))
    with pytest.raises(InvalidInput, match="0 topics"):
        refit(store, 0, 1.0, Run(embedded))
    with pytest.raises(InvalidInput, match='method is "x"; choose joint, feature, power'):
        refit(store, 4, 1.0, Run(embedded), "x")
    with pytest.raises(InvalidInput, match="the seed is -1"):
        refit(store, 4, 1.0, Run(embedded), "power", seed=-1)


def test_models_of_every_method_come_back_from_the_store(store, statistics):
    kept = store
    for method in METHODS:
        model = fit_by(statistics, 3, 0.5, method)
        kept = kept.save_model(f"k3-a0.5-{method}-v{store.version}", model)
    opened = MomentStore.open(kept.url)
    assert [opened.load_model(name).method for name in opened.models] == list(METHODS)
    again = opened.load_model()
    assert np.array_equal(again.topics, model.topics)
    assert np.array_equal(again.raw_topics, model.raw_topics)
    assert again.attributes() == model.attributes()


def test_models_are_kept_with_their_version(store, embedded):
    model = refit(store, 3, 0.5, Run(embedded))
    kept = store.save_model("three", model, "a test")
    again = kept.load_model("three")
    assert np.array_equal(again.topics, model.topics)
    assert again.attributes() == model.attributes()
    assert kept.models["three"].version == store.version
    with pytest.raises(StoreError, match="already a model 'three'"):
        kept.save_model("three", model)
    with pytest.raises(StoreError, match="no model 'four'"):
        kept.load_model("four")


@pytest.mark.parametrize("method", ["fixed-point", "gibbs"])
def test_transform_writes_the_proportions_of_every_document(
    tmp_path, store, shards, embedded, method
):
    model = fit(store.load(), 4, 1.0)
    listed = list_shards([str(shards)])
    seed = 7 if method == "gibbs" else None
    result = transform(store, model, listed, str(tmp_path / "out"), Run(embedded), method, seed)
    assert result.documents == 900
    assert len(result.files) == len(listed)
    for shard, file, weights in zip(listed, result.files, result.weights, strict=True):
        table = pq.read_table(file)
        found = np.array(table["proportions"].to_pylist())
        assert table["row"].to_pylist() == list(range(150))
        assert table.schema.metadata[b"shard"].decode() == shard.url
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert np.array_equal(table["topic"].to_numpy(), found.argmax(axis=1))
        np.testing.assert_allclose(np.average(found, axis=0, weights=table["length"]), weights)
        if method == "fixed-point":
            [read] = read_shard(shard, store.form, store.vocabulary, store.policy)
            np.testing.assert_allclose(found, model.transform(read.batch), atol=1e-12)
    again = transform(store, model, listed[:1], str(tmp_path / "two"), Run(embedded), method, seed)
    assert pq.read_table(again.files[0]).equals(pq.read_table(result.files[0]))
    others = {path.name for path in (tmp_path / "out").iterdir() if path.suffix != ".parquet"}
    assert others == {".provenance.json"}


def test_gibbs_needs_a_seed(tmp_path, store, shards, embedded):
    model = fit(store.load(), 4, 1.0)
    with pytest.raises(InvalidInput, match="--seed"):
        transform(store, model, list_shards([str(shards)]), str(tmp_path), Run(embedded), "gibbs")
