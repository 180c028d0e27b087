"""Passes over documents as a job: the same bits anywhere, resumed, and said by the model."""

import json
from dataclasses import replace

import numpy as np
import pytest

from streaming_moments import polished
from streaming_moments.errors import BoundExceeded, InvalidInput, ShardError
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import polish as job
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.polish import polish
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.storage.counting.reading import index_of, read_indexed
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore


@pytest.fixture(scope="module")
def counted(shards, embedded, tmp_path_factory):
    """A store of the six shards, and a model of it."""
    run, listed = Run(embedded), list_shards([str(shards)])
    url = str(tmp_path_factory.mktemp("polish") / "store")
    pilot = PilotOptions(max_topics=6, pilot_documents=900)
    store = create(url, listed, ShardFormat(), TokenPolicy(), pilot, run)
    store = update(store, listed, run).store
    return store.save_model("fitted", refit(store, 4, 1.0, run))


@pytest.fixture(scope="module")
def documents(counted, shards):
    """All documents, as one batch."""
    index = index_of(counted.vocabulary, counted.policy)
    reads = [read_indexed(shard, counted.form, index) for shard in list_shards([str(shards)])]
    return concatenate([read.batch for one in reads for read in one])


def same(one, other):
    assert (one.topics == other.topics).all()
    assert (one.weights == other.weights).all()
    assert one.alpha0 == other.alpha0


@pytest.mark.parametrize("alpha0", [0.0, 1.0])
def test_a_job_gives_the_bits_of_the_same_passes_in_memory(counted, documents, embedded, alpha0):
    model = replace(counted.load_model("fitted"), alpha0=alpha0)
    learned = alpha0 > 0
    there = polish(counted, model, Run(embedded), passes=2, alpha=learned, parent="fitted")
    here = polished(model, documents, passes=2, alpha=learned, threads=2)
    same(there.model, here)
    note = there.model.polishing
    assert (note.parent, note.passes, note.shards) == ("fitted", 2, 6)
    assert (note.documents, note.tokens) == (900, documents.tokens)
    assert np.abs(there.model.topics - model.topics).sum(axis=0).max() > 0.01


def test_processes_give_the_same_bits_as_threads(counted, embedded):
    model = counted.load_model("fitted")
    with connect(workers=2) as processes:
        there = polish(counted, model, Run(processes), passes=1)
    there.work.delete()
    same(there.model, polish(counted, model, Run(embedded), passes=1).model)


def test_finished_groups_are_not_read_again(counted, embedded, monkeypatch, tmp_path):
    model = counted.load_model("fitted")
    read: list[str] = []
    real = job._of_shard

    def noted(shard, mark, context):
        read.append(shard.url)
        if len(read) == 4:
            raise RuntimeError("cut off")
        return real(shard, mark, context)

    monkeypatch.setattr(job, "_of_shard", noted)
    limits = replace(Run(embedded).limits, document_bytes=1 << 19)  # sums of its own
    run = Run(embedded, limits=limits)
    with pytest.raises(RuntimeError, match="cut off"):
        polish(counted, model, run, passes=2)
    # tasks under way beside it may still have finished
    again = polish(counted, model, run, passes=2)
    whole = polish(counted, model, Run(embedded), passes=2)
    same(again.model, whole.model)
    assert again.model.polishing == whole.model.polishing
    first = read.copy()
    polish(counted, model, run, passes=2)
    assert read == first
    again.work.delete()
    assert not [name for name in counted.folder.sizes("polishing") if again.work.polishing in name]
