"""Passes over documents as a job: the same bits anywhere, resumed, and said by the model."""

import gzip
import json
import uuid
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest

from streaming_moments import polished
from streaming_moments.errors import BoundExceeded, InvalidInput, ShardError
from streaming_moments.models.passes.stopping import MOST_PASSES
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import polish as job
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.polish import PassContext, count_group, polish
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.storage.counting.reading import index_of, read_indexed
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.polishing import PolishingFolder
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
    assert one.alpha_sum == other.alpha_sum


@pytest.mark.parametrize("alpha0", [0.0, 1.0])
def test_a_job_gives_the_bits_of_the_same_passes_in_memory(counted, documents, embedded, alpha0):
    model = replace(counted.load_model("fitted"), alpha_sum=alpha0)
    learned = alpha0 > 0
    there = polish(counted, model, Run(embedded), passes=2, alpha=learned, parent="fitted")
    here = polished(model, documents, passes=2, alpha=learned, threads=2)
    same(there.model, here)
    note = there.model.polishing
    assert (note.parent, note.passes, note.shards) == ("fitted", 2, 6)
    assert (note.documents, note.tokens) == (900, documents.tokens)
    assert np.abs(there.model.topics - model.topics).sum(axis=0).max() > 0.01


def test_passes_are_made_until_one_changes_little(counted, documents, embedded):
    model = counted.load_model("fitted")
    model = replace(model, topic_bars=model.topic_bars / 5)
    there = polish(counted, model, Run(embedded), passes="auto")
    here = polished(model, documents, "auto", threads=2)
    same(there.model, here)
    made = there.model.polishing.passes
    assert made == here.polishing.passes
    assert 1 < made < MOST_PASSES
    steps = [model, *(polished(model, documents, number) for number in range(1, made + 1))]
    moved = [
        np.abs(after.topics - before.topics).sum(axis=0).mean() / model.topic_bars.mean()
        for before, after in pairwise(steps)
    ]
    assert moved[-1] <= 0.5 < min(moved[:-1])
    same(steps[-1], here)
    # as many in all where it goes on
    again = polish(counted, model, Run(embedded), passes="auto")
    assert again.model.polishing == there.model.polishing
    with pytest.raises(InvalidInput, match="often passes are asked for"):
        polish(counted, model, Run(embedded), passes="often")


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
            raise RuntimeError("interrupted")
        return real(shard, mark, context)

    monkeypatch.setattr(job, "_of_shard", noted)
    limits = replace(Run(embedded).limits, document_bytes=1 << 19)  # sums of its own
    run = Run(embedded, limits=limits)
    with pytest.raises(RuntimeError, match="interrupted"):
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


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        ({"alpha_sum": 0.5}, {}),
        ({"topics": lambda topics: topics[:, ::-1].copy()}, {}),
        ({"weights": lambda weights: weights[::-1].copy()}, {}),
        ({}, {"alpha": True}),
        ({}, {"skip_bad_shards": True}),
        ({}, {"document_bytes": 1 << 18}),
        ({}, {"shards": "some"}),
    ],
)
def test_a_job_goes_on_with_sums_of_the_same_job_alone(counted, shards, embedded, changes, how):
    model, run = replace(counted.load_model("fitted"), alpha_sum=1.0), Run(embedded)
    first = polish(counted, model, run, passes=1)
    given = dict(how)
    if "document_bytes" in given:
        run = Run(embedded, limits=replace(run.limits, document_bytes=given.pop("document_bytes")))
    if "shards" in given:
        given["shards"] = list_shards([str(shards)])[:3]
    new = {k: v(getattr(model, k)) if callable(v) else v for k, v in changes.items()}
    other = polish(counted, replace(model, **new), run, passes=1, **given)
    assert other.work.polishing != first.work.polishing
    assert polish(counted, model, Run(embedded), passes=1).work == first.work


@pytest.mark.parametrize("keep_going", [False, True])
def test_a_shard_that_changed_since_it_was_looked_at_is_not_read(
    counted, shards, embedded, tmp_path, keep_going
):
    path, run = tmp_path / "1.jsonl", Run(embedded)
    path.write_bytes((shards / "1.jsonl").read_bytes())
    [shard] = list_shards([str(path)])
    mark = job.mark_of(shard)
    # as long as it was: nothing but its bytes says that it changed
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[::-1]))
    reading = ReadingContext.of(counted, run.limits, None)
    work = PolishingFolder(counted.folder, uuid.uuid4().hex)
    context = PassContext.of(reading, counted.load_model("fitted"), work, 1, keep_going)
    if not keep_going:
        with pytest.raises(ShardError, match=r"1\.jsonl.*changed"):
            count_group(0, [(shard, mark)], context)
        assert work.find(1, "0") is None
        return
    count_group(0, [(shard, mark)], context)
    sums = work.find(1, "0")
    assert (sums.shards, sums.expected.documents) == (0, 0)
    [(url, reason)] = sums.bad
    assert url == str(path)
    assert "changed" in reason
    work.delete()


def test_sums_of_many_groups_are_added_up_a_few_a_task(counted, embedded, monkeypatch):
    model = counted.load_model("fitted")
    whole = polish(counted, model, Run(embedded), passes=1)
    whole.work.delete()
    summed = PolishingFolder.summed
    taken = []

    def noted(work, number, parts):
        taken.append(len(parts))
        return summed(work, number, parts)

    monkeypatch.setattr(PolishingFolder, "summed", noted)
    monkeypatch.setattr(job, "_SUMS_AT_A_TIME", 2)
    same(polish(counted, model, Run(embedded), passes=1).model, whole.model)
    # six groups; of three sums two; of two the one that is read here
    assert sorted(taken) == [1, 1, 2, 2, 2, 2, 2]


def test_shards_that_cannot_be_read_are_left_out_if_asked_for(counted, shards, embedded, tmp_path):
    model, run = counted.load_model("fitted"), Run(embedded)
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "law"}\n' * 500)[:40])
    listed = list_shards([str(shards), str(tmp_path / "cut.jsonl.gz")])
    with pytest.raises(ShardError, match="cut"):
        polish(counted, model, run, listed, passes=1)
    result = polish(counted, model, run, listed, passes=1, skip_bad_shards=True)
    assert [error.url for error in result.bad] == [str(tmp_path / "cut.jsonl.gz")]
    assert result.note.shards == 6
    same(result.model, polish(counted, model, run, passes=1).model)


def test_counted_shards_that_are_gone_are_told(shards, embedded, tmp_path):
    run = Run(embedded)
    for number in (1, 4):
        (tmp_path / f"{number}.jsonl").write_bytes((shards / f"{number}.jsonl").read_bytes())
    listed = list_shards([str(tmp_path)])
    pilot = PilotOptions(max_topics=3, pilot_documents=200)
    store = create(str(tmp_path / "store"), listed, ShardFormat(), TokenPolicy(), pilot, run)
    store = update(store, listed, run).store
    model = refit(store, 2, 1.0, run)
    (tmp_path / "4.jsonl").unlink()
    with pytest.raises(InvalidInput, match="4.jsonl is gone.*--allow-missing"):
        polish(store, model, run, passes=1)
    result = polish(store, model, run, passes=1, allow_missing=True)
    assert [error.reason for error in result.bad] == ["is gone"]
    assert (result.note.shards, result.note.documents) == (1, 150)


def test_sums_that_nobody_commits_are_garbage_in_the_end(counted, embedded):
    result = polish(counted, counted.load_model("fitted"), Run(embedded), passes=1, alpha=True)
    folder, mine = counted.folder, f"polishing/{result.work.polishing}"
    assert mine not in {found.path for found in find_garbage(folder, timedelta(days=1))}
    found = [one for one in find_garbage(folder, timedelta(0)) if one.path == mine]
    collect(folder, found)
    assert not folder.files(mine)
    assert MomentStore.open(counted.url).verify() == []


def test_sums_that_are_damaged_are_counted_again(counted, embedded):
    model, run = counted.load_model("fitted"), Run(embedded)
    first = polish(counted, model, run, passes=1)
    place = f"polishing/{first.work.polishing}"
    for file in counted.folder.files(place):
        # one loses a byte, one its last half, one all
        content = counted.folder.read(f"{place}/{file.path}")
        if "counts" in file.path and "sum" in file.path:
            counted.folder.write(f"{place}/{file.path}", content[:-1] + b"?")
        elif file.path.startswith("1-0/"):
            counted.folder.write(f"{place}/{file.path}", content[: len(content) // 2])
        elif file.path.startswith("1-1/prior"):
            counted.folder.delete([f"{place}/{file.path}"])
    same(polish(counted, model, run, passes=1).model, first.model)


def test_a_budget_that_cannot_hold_a_task_is_refused(counted, embedded):
    model = counted.load_model("fitted")
    with pytest.raises(BoundExceeded, match="a pass needs"):
        polish(counted, model, Run(replace(embedded, memory=1 << 20)))
    with pytest.raises(InvalidInput, match="0 passes are asked for"):
        polish(counted, model, Run(embedded), passes=0)


def test_the_command_keeps_the_model_beside_its_parent(counted, run):
    code, printed, told = run("polish", counted.url, "--model", "fitted", "--alpha", "--json")
    assert (code, told) == (0, "")
    content = json.loads(printed)
    assert content["model"] == "fitted-polished2"
    assert content["polishing"]["parent"] == "fitted"
    assert content["polishing"]["shards"] == 6
    assert content["topics"][0]["npmi"] is not None
    store = MomentStore.open(counted.url)
    assert list(store.models) == ["fitted", "fitted-polished2"]
    assert store.models["fitted-polished2"].version == store.models["fitted"].version
    code, _, told = run("polish", counted.url, "--model", "fitted")
    assert code == 2
    assert "there is already a model 'fitted-polished2'" in told
    code, _, printed = run("topics", counted.url, "--verbose")
    assert "polished from model fitted: 900 records of 6 shards read 2 times" in printed
