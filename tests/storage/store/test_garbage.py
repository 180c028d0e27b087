"""Garbage: the files that are collected, and that no writer can commit them."""

import os
import shutil
import time
from datetime import timedelta
from pathlib import Path

import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.operations import forgetting
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.segments.blocks import block_of
from streaming_moments.storage.store.changes import Recount, recounted
from streaming_moments.storage.store.garbage import GRACE, collect, find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    append,
    compact,
    content,
    create,
    model_of,
    record,
    segment,
)

NO_GRACE = timedelta(0)


def grow_old(root, age=GRACE * 1.1):
    """Simulate the passing of time by making all files older."""
    for path in Path(root).rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime - age.total_seconds()
            os.utime(path, (then, then))


def test_garbage_is_what_no_commit_names(tmp_path):
    store = append(create(tmp_path / "store"), {"a": 1}).save_model("m", model_of(0))
    store = compact(append(store, {"b": 2}))
    assert find_garbage(store.folder, NO_GRACE) == []
    orphan = segment(store, {"c": 3})
    store.folder.write("models/m/" + "0" * 32 + "/zarr.json", b"{}")
    root = Path(store.url)
    [named] = store.commit.segments
    partial = root / "segments" / named.id / f".c.{'0' * 32}.partial"
    partial.write_text("half")
    kept = {path for path in root.rglob("*") if path.is_file()}
    assert find_garbage(store.folder) == []
    found = {heap.path: heap for heap in find_garbage(store.folder, NO_GRACE)}
    place = f"segments/{orphan.reference.id}"
    assert set(found) == {place, "models/m/" + "0" * 32, str(partial.relative_to(root))}
    on_disk = sum(path.stat().st_size for path in (root / place).rglob("*") if path.is_file())
    assert found[place].size == on_disk
    collect(store.folder, list(found.values()))
    gone = kept - {path for path in root.rglob("*") if path.is_file()}
    assert gone == {root / file for heap in found.values() for file in heap.files}
    assert not (root / place).exists()
    assert store.verify() == []
    assert [store.at(version).load() for version in range(store.version + 1)]
    collect(store.folder, list(found.values()))
    with pytest.raises(StoreError, match="is missing, so it cannot be committed"):
        store.append(orphan)
    with pytest.raises(InvalidInput, match="give at least 0"):
        find_garbage(store.folder, timedelta(-1))


def test_ages_are_measured_by_the_clock_of_the_storage(tmp_path, monkeypatch):
    store = append(create(tmp_path / "store"), {"a": 1})
    old = segment(store, {"b": 2})
    days = 86400
    then = time.time() - 4.5 * days
    for path in Path(store.url, "segments", old.reference.id).rglob("*"):
        os.utime(path, (then, then))
    # a writer whose own clock is days off changes nothing
    monkeypatch.setattr(time, "time", lambda: then)
    with pytest.raises(StoreError, match=r"begun 4\.5 days ago and is too old .* is 3.5 days"):
        store.append(old)
    assert find_garbage(store.folder) == []
    assert len(find_garbage(store.folder, timedelta(days=3.9))) == 1


def test_a_log_that_cannot_be_read_makes_nothing_garbage(tmp_path):
    store = append(append(create(tmp_path / "store"), {"a": 1}), {"b": 2})
    (Path(store.url) / "commits" / f"{1:020d}.json").write_text("{}")
    with pytest.raises(StoreError, match="is damaged"):
        find_garbage(store.folder, NO_GRACE)


def test_a_writer_that_slept_halfway_commits_nothing(tmp_path):
    store = append(create(tmp_path / "store"), {"a": 1})
    statistics, writer = content(2), store.new_segment()
    blocks = [block_of(statistics, writer.layout, index) for index in range(store.row_blocks)]
    half = len(blocks) // 2
    files = [file for block in blocks[:half] for file in writer.write_block(block)]
    grow_old(store.url)
    found = find_garbage(store.folder)
    assert {file.partition("/c.")[0] for heap in found for file in heap.files}
    collect(store.folder, found)
    files += [file for block in blocks[half:] for file in writer.write_block(block)]
    ready = writer.seal(statistics.length_histogram, [record("b", 2)], files)
    with pytest.raises(StoreError, match="is missing, so it cannot be committed; run this again"):
        store.append(ready)
    opened = MomentStore.open(store.url)
    assert (opened.version, opened.verify()) == (store.version, [])


def test_a_writer_looks_at_its_files_at_each_attempt(tmp_path, monkeypatch):
    store = append(create(tmp_path / "store"), {"a": 1})
    ready = segment(store, {"b": 2})
    put, attempts = CommitLog.put, []

    def overtaken(log, commit):
        """Another writer is faster, and a file is lost meanwhile."""
        if commit.operation == "append" and not attempts:
            attempts.append(commit.version)
            tag(store.save_model("m", model_of(0)), "live", "m")
            (Path(store.url) / ready.written.folder / "shards.parquet").unlink()
        put(log, commit)

    monkeypatch.setattr(CommitLog, "put", overtaken)
    with pytest.raises(StoreError, match=r"shards\.parquet is missing, so it cannot be committed"):
        store.append(ready)
    assert attempts == [2]
    assert MomentStore.open(store.url).verify() == []


def test_what_was_written_again_is_as_old_as_its_beginning(tmp_path, monkeypatch):
    # a collector that found it before all of it was replaced may still delete it
    store = append(create(tmp_path / "store"), {"a": 1})
    ready = segment(store, {"b": 2})
    grow_old(Path(store.url) / ready.written.folder, -GRACE * 0.6)
    now = Folder.clock
    monkeypatch.setattr(Folder, "clock", lambda folder: now(folder) + GRACE * 0.6)
    with pytest.raises(StoreError, match=r"begun 4\.2 days ago and is too old to be committed"):
        store.append(ready)


def test_a_writer_asleep_between_its_last_look_and_its_commit_is_refused(tmp_path, monkeypatch):
    store = append(create(tmp_path / "store"), {"a": 1})
    ready = segment(store, {"b": 2})
    put, slept = CommitLog.put, []

    def asleep(log, commit):
        if commit.operation == "append" and not slept:
            slept.append(True)
            grow_old(store.url)
            collect(store.folder, find_garbage(store.folder))
        put(log, commit)

    monkeypatch.setattr(CommitLog, "put", asleep)
    with pytest.raises(StoreError, match="is missing, so it cannot be committed; run this again"):
        store.append(ready)
    opened = MomentStore.open(store.url)
    assert opened.verify() == []
    assert [commit.operation for commit in opened.log()] == ["gc", "append", "create"]
    assert opened.load() == store.load()


def test_files_that_go_while_the_change_is_judged_are_said_to_be_gone(tmp_path, monkeypatch):
    store = append(create(tmp_path / "store"), {"a": 1})
    taken = segment(store, {"a": 1})

    def judged_too_late(*arguments):
        shutil.rmtree(Path(store.url) / taken.written.folder)
        return recounted(*arguments)

    monkeypatch.setattr(forgetting, "recounted", judged_too_late)
    with pytest.raises(StoreError, match="is missing, so it cannot be committed; run this again"):
        forgetting.commit_recount(store, Recount("forget", "", removed=(taken,)))
    assert MomentStore.open(store.url).verify() == []


def test_only_what_was_sealed_needs_a_commit_to_be_deleted(tmp_path):
    store = append(create(tmp_path / "store"), {"a": 1})
    writer = store.new_segment()
    writer.write_block(block_of(content(2), writer.layout, 0))
    collect(store.folder, find_garbage(store.folder, NO_GRACE))
    assert store.latest().version == store.version
    assert find_garbage(store.folder, NO_GRACE) == []
    segment(store, {"c": 3})
    collect(store.folder, find_garbage(store.folder, NO_GRACE))
    assert store.latest().commit.operation == "gc"
    assert find_garbage(store.folder, NO_GRACE) == []


def test_what_was_committed_since_it_was_found_stays(tmp_path):
    store = append(create(tmp_path / "store"), {"a": 1})
    ready = segment(store, {"b": 2})
    found = find_garbage(store.folder, NO_GRACE)
    grown = store.append(ready)
    with pytest.raises(StoreError, match="has been committed; run this again"):
        collect(store.folder, found)
    assert grown.latest().verify() == []


def test_files_are_listed_before_the_log_is_read(tmp_path, monkeypatch):
    # in the other order what is written and committed in between would be garbage
    store = append(create(tmp_path / "store"), {"a": 1})
    history = CommitLog.history

    def committed_after(log, version):
        commits = history(log, version)
        append(MomentStore.open(store.url), {"b": 2})
        return commits

    monkeypatch.setattr(CommitLog, "history", committed_after)
    assert find_garbage(store.folder, NO_GRACE) == []
