"""What pages say and show of documents once some were deleted: net numbers, and no deleted one."""

import json
from dataclasses import replace

import pytest

from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines import PilotOptions
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.outputs.transform import transform
from streaming_moments.pipelines.jobs.refit import refit_by
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.reports.model_pages.topics import documents_written
from streaming_moments.pipelines.reports.still_counted import still_counted
from streaming_moments.pipelines.reports.store_page import store_page
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore


def written(path, texts, first=0):
    lines = (json.dumps({"id": first + n, "text": text}) for n, text in enumerate(texts))
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture
def fitted(tmp_path, planted, embedded):
    """A store of three shards of 100 with a model, and a folder of its top documents."""
    on = Run(embedded)
    names = [
        written(tmp_path / f"{n}.jsonl", planted[100 * n : 100 * n + 100], 100 * n)
        for n in range(3)
    ]
    listed = list_shards(names)
    pilot = PilotOptions(max_topics=3, min_documents=2)
    made = create(str(tmp_path / "store"), listed, ShardFormat(), TokenPolicy(), pilot, on)
    store = update(made, listed, on).store
    model = refit_by(store, TopicModel, TopicOptions(topics=3), on)  # type: ignore[call-arg]
    store = store.save_model("first", model, "fit")
    out = str(tmp_path / "out")
    transform(store, model, listed, out, on, id_column="id", top_documents=4, name="first")
    return store, names, out


def without(path, texts, gone):
    """The shard without some documents, as a deletion cuts them out; and the old content."""
    old = path.with_suffix(".old.jsonl")
    old.write_bytes(path.read_bytes())
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for n, line in enumerate(lines) if n not in gone))
    return str(old)


def test_after_a_deletion_numbers_are_net_and_only_deleted_documents_are_left_out(
    fitted, tmp_path, planted, embedded
):
    store, names, out = fitted
    on = Run(embedded)
    _, found = documents_written(out, None)
    shown = [one for some in found.values() for one in some]
    target = next(one for one in shown if one.shard == names[1])
    old = without(tmp_path / "1.jsonl", planted, {target.number - 1})
    store = update(store, list_shards([names[1]]), on, old=list_shards([old])).store
    since = staleness(store, "first")
    assert (since.counted, since.forgotten) == (0, 1)
    left, gone = still_counted(store, "first", found)
    assert gone == 1
    ids = {one.id for some in left.values() for one in some}
    assert ids == {one.id for one in shown} - {target.id}
    for some in left.values():
        for one in some:
            with open(one.shard) as lines:
                record = json.loads(lines.readlines()[one.number - 1])
            assert str(record["id"]) == one.id, "documents are where they are said to be"
    page = store_page(store, top_documents=out)
    assert "1 document forgotten since then still is in it; refit" in page.reasons[-1]
    ids = {one.id for part in page.topics for one in (part.sample, *part.further) if one}
    assert target.id not in ids
    assert ids


def test_more_documents_and_a_deletion_are_net_by_shard(fitted, tmp_path, planted, embedded):
    store, names, _ = fitted
    on, more = Run(embedded), written(tmp_path / "3.jsonl", planted[300:400], 300)
    store = update(store, list_shards([more]), on).store
    old = without(tmp_path / "3.jsonl", planted, {0, 5})
    store = update(store, list_shards([more]), on, old=list_shards([old])).store
    since = staleness(store, "first")
    assert (since.counted, since.forgotten) == (98, 0), "what went was never in the model"
    old = without(tmp_path / "0.jsonl", planted, {7})
    store = update(store, list_shards([names[0]]), on, old=list_shards([old])).store
    since = staleness(store, "first")
    assert (since.counted, since.forgotten) == (98, 1)
    store = forget(store, list_shards([names[2]]), on)
    since = staleness(store, "first")
    assert (since.counted, since.forgotten) == (98, 101)


def test_a_shard_of_other_documents_is_all_of_them(fitted, tmp_path, planted, embedded):
    store, names, out = fitted
    old = tmp_path / "0.old.jsonl"
    old.write_bytes((tmp_path / "0.jsonl").read_bytes())
    written(tmp_path / "0.jsonl", planted[500:600], 500)
    on = Run(embedded)
    store = update(store, list_shards([names[0]]), on, old=list_shards([str(old)])).store
    since = staleness(store, "first")
    assert (since.counted, since.forgotten, since.is_stale) == (100, 100, True)
    _, found = documents_written(out, None)
    left, _ = still_counted(store, "first", found)
    assert all(one.shard != names[0] for some in left.values() for one in some)


def test_what_cannot_be_read_any_more_is_not_shown(fitted, tmp_path, planted, embedded):
    store, names, out = fitted
    on = Run(embedded)
    old = without(tmp_path / "1.jsonl", planted, {3})
    store = update(store, list_shards([names[1]]), on, old=list_shards([old])).store
    (tmp_path / "1.jsonl").unlink()
    _, found = documents_written(out, None)
    left, gone = still_counted(store, "first", found)
    assert gone == sum(one.shard == names[1] for some in found.values() for one in some)
    assert all(one.shard != names[1] for some in left.values() for one in some)


def test_while_nothing_is_forgotten_all_are_shown(fitted):
    store, _, out = fitted
    _, found = documents_written(out, None)
    moved = {0: tuple(replace(one, shard="s3://elsewhere/1.jsonl") for one in found[0])}
    assert still_counted(MomentStore.open(store.url), "first", moved) == (moved, 0)
