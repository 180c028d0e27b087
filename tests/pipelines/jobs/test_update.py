"""Updates: the same statistics from every cluster, each shard counted once."""

import dataclasses
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counted_alone import counted_alone
from killed_jobs import require_killed, update_until

from streaming_moments.errors import BoundExceeded, InvalidInput, ShardError
from streaming_moments.pipelines.aggregation import counting, group_runner
from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.memory import MEBIBYTE
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
POLICY = TokenPolicy(passage_words=25)


def new_store(folder, shards, cluster):
    listed = list_shards([str(shards)])
    return create(str(folder), listed, ShardFormat(), POLICY, OPTIONS, Run(cluster))


def test_serial_embedded_and_processes_give_the_same_bits(tmp_path, shards, embedded):
    listed = list_shards([str(shards)])
    store = new_store(tmp_path / "embedded", shards, embedded)
    shutil.copytree(tmp_path / "embedded", tmp_path / "processes")
    result = update(store, listed, Run(embedded))
    assert (result.counted, result.already, result.bad) == (6, 0, ())
    loaded = result.store.load()
    assert loaded == counted_alone(store, listed)
    assert result.documents == loaded.n_documents
    assert result.tokens == loaded.length_histogram.n_tokens > 20_000
    assert result.store.verify() == []
    with connect(workers=2) as processes:
        twin = MomentStore.open(str(tmp_path / "processes"))
        assert update(twin, listed, Run(processes)).store.load() == loaded


def test_shards_are_counted_once_in_any_steps(tmp_path, shards, embedded):
    listed = list_shards([str(shards)])
    store = new_store(tmp_path / "store", shards, embedded)
    first = update(store, listed[:2], Run(embedded))
    again = update(first.store, listed[1:4], Run(embedded))
    assert (again.counted, again.already) == (2, 1)
    last = update(again.store, listed, Run(embedded))
    assert (last.counted, last.already) == (2, 4)
    idle = update(last.store, listed, Run(embedded))
    assert (idle.counted, idle.already, idle.store.version) == (0, 6, last.store.version)
    assert last.store.load() == counted_alone(store, listed)
    assert last.store.at(1).load() == counted_alone(store, listed[:2])


@pytest.mark.parametrize("passes", [1, 2, 8])
def test_groups_lumps_and_passes_give_the_same_bits(tmp_path, shards, embedded, passes):
    listed = list_shards([str(shards)])
    store = new_store(tmp_path / "store", shards, embedded)
    # a batch is more than a lump: what is read of a shard is added before its end
    small = {"lump_bytes": 10_000, "batch_bytes": 4096, "group_shards": 4, "passes": passes}
    plan = dataclasses.replace(plan_of(store, Run(embedded)), **small)
    result = update(store, listed, Run(embedded), plan=plan)
    assert result.store.load() == counted_alone(store, listed)
    assert result.store.version > 1, "several groups"
    segments = {segment.id for segment in result.store.commit.segments}
    assert {path.name for path in (tmp_path / "store" / "segments").iterdir()} == segments
    assert len(result.store.ledger()) == 6
    assert result.store.verify() == []


def test_a_shard_changed_since_it_was_counted_is_an_error(tmp_path, embedded, planted):
    shard = tmp_path / "a.txt"
    shard.write_text("\n".join(planted[:50]))
    store = new_store(tmp_path / "store", shard, embedded)
    store = update(store, list_shards([str(shard)]), Run(embedded)).store
    shard.write_text("\n".join(planted[1:51]))
    changed = r"a\.txt was counted as sha256:\w{12} and is now sha256:\w{12}\. Put the old"
    command = f"`streaming-moments update {tmp_path}/store {shard} --replace`"
    with pytest.raises(InvalidInput, match=changed) as caught:
        update(store, list_shards([str(shard)]), Run(embedded))
    assert str(caught.value).endswith(f"count it instead with {command}")
    assert store.latest().version == store.version


def test_bad_shards_stop_the_update_or_are_left_out(tmp_path, shards, embedded):
    folder = tmp_path / "shards"
    shutil.copytree(shards, folder)
    store = new_store(tmp_path / "store", folder, embedded)
    (folder / "empty.jsonl").write_text("")
    (folder / "garbage.parquet").write_bytes(b"PAR1 not at all")
    (folder / "foreign.jsonl").write_text('{"text": "nothing"}\n{"text": "known"}\n')
    listed = list_shards([str(folder)])
    with pytest.raises(InvalidInput) as caught:
        update(store, listed, Run(embedded))
    for name in ("empty.jsonl", "garbage.parquet", "foreign.jsonl: none of its 2 documents"):
        assert name in str(caught.value)
    assert store.latest().version == 0
    result = update(store, listed, Run(embedded), skip_bad_shards=True)
    assert result.counted == 6
    assert sorted(os.path.basename(error.url) for error in result.bad) == [
        "empty.jsonl",
        "foreign.jsonl",
        "garbage.parquet",
    ]
    assert {os.path.basename(url) for url, _ in result.store.commit.skipped} == {
        "empty.jsonl",
        "foreign.jsonl",
        "garbage.parquet",
    }
    assert result.store.load() == counted_alone(store, list_shards([str(shards)]))


@pytest.mark.parametrize("passes", [1, 2])
def test_a_shard_that_turns_out_bad_late_is_left_out_whole(
    tmp_path, embedded, shards, planted, passes, monkeypatch
):
    taken: list[int | None] = []
    subtract = counting._subtract
    monkeypatch.setattr(
        counting, "_subtract", lambda *a: taken.append(a[1].batches) or subtract(*a)
    )
    store = new_store(tmp_path / "store", shards, embedded)
    (tmp_path / "late.txt").write_bytes("\n".join(planted[:300]).encode() + b"\n\xff\n")
    listed = list_shards([str(tmp_path / "late.txt"), str(shards)])
    plan = plan_of(store, Run(embedded))
    plan = dataclasses.replace(plan, lump_bytes=10_000, batch_bytes=4096, passes=passes)
    with pytest.raises(ShardError, match=r"late\.txt: line 301 is not UTF-8"):
        update(store, listed, Run(embedded), plan=plan)
    assert store.latest().ledger().find(str(tmp_path / "late.txt")) is None
    result = update(store, listed, Run(embedded), skip_bad_shards=True, plan=plan)
    assert [os.path.basename(error.url) for error in result.bad] == ["late.txt"]
    assert taken, "some of it was added before its end"
    assert all(taken)
    assert result.counted + result.already == 6
    assert result.store.load() == counted_alone(store, list_shards([str(shards)]))
    skipped = [url for commit in result.store.log() for url, _ in commit.skipped]
    assert [os.path.basename(url) for url in skipped] == ["late.txt"]


def test_an_update_that_a_bad_shard_stops_says_what_is_committed(tmp_path, embedded, shards):
    store = new_store(tmp_path / "store", shards, embedded)
    folder = tmp_path / "shards"
    shutil.copytree(shards, folder)
    (folder / "z-bad.jsonl").write_text("no JSON")
    listed = list_shards([str(folder)])
    # a group for each shard
    plan = dataclasses.replace(plan_of(store, Run(embedded)), group_shards=1)
    with pytest.raises(ShardError, match=r"z-bad.jsonl: line 1 is not JSON") as stopped:
        update(store, listed, Run(embedded), plan=plan)
    counted = len(store.latest().ledger())
    assert counted == 6
    said = "6 shards before it are counted and committed; the same command counts the rest"
    assert str(stopped.value).endswith(said)
    (folder / "z-bad.jsonl").unlink()
    assert update(store, list_shards([str(folder)]), Run(embedded)).already == 6


@pytest.mark.parametrize("other", [False, True], ids=["the same", "other content"])
def test_what_another_writer_counts_of_a_shard_meanwhile_must_be_the_same(
    tmp_path, shards, embedded, planted, monkeypatch, other
):
    store = new_store(tmp_path / "store", shards, embedded)
    shard = tmp_path / "a.txt"
    shard.write_text("\n".join(planted[:50]))
    listed = list_shards([str(shard)])
    gather = group_runner.gather_group

    def overtaken(*arguments):
        monkeypatch.setattr(group_runner, "gather_group", gather)
        gathered = gather(*arguments)
        if other:
            shard.write_text("\n".join(planted[50:100]))
        update(store, list_shards([str(shard)]), Run(embedded))
        return gathered

    monkeypatch.setattr(group_runner, "gather_group", overtaken)
    if other:
        with pytest.raises(InvalidInput, match=r"a\.txt was counted as sha256:\w+ and is now sha"):
            update(store, listed, Run(embedded))
    else:
        result = update(store, listed, Run(embedded))
        assert (result.counted, result.already) == (0, 1)
    assert store.latest().version == 1
    assert store.latest().load() == counted_alone(store, list_shards([str(shard)]))


def test_one_bad_shard_is_named(tmp_path, embedded, shards):
    store = new_store(tmp_path / "store", shards, embedded)
    table = pa.table({"body": ["a"]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ShardError, match=r"x\.parquet.*text.*body"):
        update(store, list_shards([str(tmp_path / "x.parquet")]), Run(embedded))


def test_memory_that_cannot_do_is_refused_with_numbers(tmp_path, shards, embedded):
    store = new_store(tmp_path / "store", shards, embedded)
    poor = dataclasses.replace(embedded, memory=300 * MEBIBYTE)
    with pytest.raises(BoundExceeded, match=r"needs \d+ MiB on each worker .* budget is 300 MiB"):
        update(store, list_shards([str(shards)]), Run(poor))


def test_a_store_of_ids_counts_ids(tmp_path, embedded):
    rng = np.random.default_rng(1)
    documents = [rng.integers(100, 130, size=12).tolist() for _ in range(80)]
    lines = []
    for words in documents:
        ids, counts = np.unique(words, return_counts=True)
        pairs = " ".join(f"{i}:{c}" for i, c in zip(ids, counts, strict=True))
        lines.append(f"{ids.size} {pairs}")
    (tmp_path / "ap.dat").write_text("\n".join(lines))
    table = pa.table({"ids": pa.array(documents, pa.list_(pa.int32()))})
    pq.write_table(table, tmp_path / "b.parquet")
    loaded = []
    for name, form in (
        ("ap.dat", ShardFormat()),
        ("b.parquet", ShardFormat(ids_column="ids")),
    ):
        listed = list_shards([str(tmp_path / name)])
        options = PilotOptions(
            max_topics=2, min_documents=1, max_document_fraction=1.0, length_weights="pooled"
        )
        store = create(str(tmp_path / f"store-{name}"), listed, form, None, options, Run(embedded))
        assert set(store.vocabulary.token_ids) <= set(range(100, 130))
        loaded.append(update(store, listed, Run(embedded)).store.load())
    assert loaded[0].pair_counts.sum() == loaded[1].pair_counts.sum() == 80 * 12 * 11
    assert np.array_equal(loaded[0].word_counts, loaded[1].word_counts)


@pytest.mark.parametrize(("moment", "version"), [("read", 1), ("write", 1), ("commit", 2)])
def test_a_killed_update_is_completed_by_the_next(tmp_path, shards, embedded, moment, version):
    listed = list_shards([str(shards)])
    store = new_store(tmp_path / "store", shards, embedded)
    require_killed(update_until, moment, str(tmp_path / "store"), str(shards))
    left = MomentStore.open(str(tmp_path / "store"))
    assert left.version == version
    assert left.verify() == []
    counted = listed if version == 2 else listed[:2]
    assert left.load() == counted_alone(store, counted)
    done = update(left, listed, Run(embedded))
    assert done.already == len(counted)
    assert done.store.load() == counted_alone(store, listed)
