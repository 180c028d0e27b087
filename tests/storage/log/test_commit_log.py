"""The commit log: one winner of every race, and the correct answer after every error."""

import errno
import os
import threading
import uuid
from dataclasses import dataclass, replace

import fsspec
import pytest
from forking import forking
from fsspec.implementations.local import LocalFileSystem
from s3_server import S3Server, with_bucket

from streaming_moments.errors import StoreError
from streaming_moments.storage.files import local_files
from streaming_moments.storage.files.created import CreationUnknown
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commit_json import (
    commit_from_json,
    commit_to_json,
    expired_to_json,
)
from streaming_moments.storage.log.commit_log import CommitConflict, CommitLog
from streaming_moments.storage.log.commits import Commit, Lineage, ModelReference, SegmentReference
from streaming_moments.storage.log.layout import commit_file, reached_file

LINEAGE = Lineage("a" * 64, "b" * 64, 4, True, {"kind": "text"})
SECRET = "planted-secret-5f1c"


@pytest.fixture(scope="module")
def s3():
    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    yield with_bucket(host, port, "bucket", SECRET)
    server.stop()


@pytest.fixture(params=["local", "memory", "s3", "gs", "az"])
def folder(request, tmp_path):
    if request.param == "local":
        return Folder.at(str(tmp_path / "store"))
    if request.param == "memory":
        return Folder.at(f"memory://{uuid.uuid4().hex}")
    options = request.getfixturevalue(request.param)
    options = options if request.param == "s3" else options[0]
    return Folder.at(f"{request.param}://bucket/{uuid.uuid4().hex}", options)


def first():
    return Commit.first(LINEAGE, "")


@dataclass(frozen=True)
class Faulty(Folder):
    """A real folder whose next puts and reads fail as the script says."""

    creating: tuple[str, ...] = ()
    finding: tuple[str, ...] = ()

    def create(self, name, content):
        fault = self._next("creating")
        if fault in ("reply lost", "exists lost"):
            super().create(name, content)
        if fault == "other first":
            super().create(name, seal(commit_to_json(first())))
        if fault == "exists lost":
            raise FileExistsError(name)
        if fault in ("reply lost", "refused"):
            raise OSError(f"503 for {SECRET}")
        super().create(name, content)

    def find(self, name):
        if self._next("finding") == "refused":
            raise StoreError("cannot read")
        return super().find(name)

    def _next(self, script):
        left = vars(self).setdefault(f"_{script}", list(getattr(self, script)))
        return left.pop(0) if left else ""


def faulty(tmp_path, creating=(), finding=()):
    folder = Faulty(str(tmp_path), {"token": SECRET}, tuple(creating), tuple(finding))
    return CommitLog(folder, attempts=3, delay=0.001)


def test_commits_come_back_as_they_were_written(folder):
    log = CommitLog(folder)
    assert log.latest_version() is None
    log.probe()
    assert log.latest_version() is None
    head = first()
    log.put(head)
    segment = SegmentReference("c" * 32, "d" * 64, 3, 12, 1, 99)
    model = ModelReference("e" * 32, "f" * 64, 1)
    second = head.successor(
        "append", "Mai ☂", segments=(segment,), models={"m": model}, skipped=(("u", "why"),)
    )
    log.put(second)
    assert log.latest() == second
    assert log.history(1) == (second, head)
    assert (second.parent, second.documents, second.tokens, second.shards) == (
        head.transaction,
        3,
        12,
        1,
    )
    assert second.successor("append", "").skipped == ()


def test_second_creation_of_a_version_is_a_conflict(folder):
    log = CommitLog(folder)
    log.put(first())
    with pytest.raises(CommitConflict, match="another writer committed version 0 of"):
        log.put(first())


def test_put_of_the_same_transaction_again_succeeds(folder):
    head = first()
    CommitLog(folder).put(head)
    CommitLog(folder).put(head)
    assert CommitLog(folder).latest() == head


def test_a_put_whose_version_was_expired_meanwhile_is_known_as_ours(folder):
    log, mine = CommitLog(folder), first()
    folder.write(commit_file(0), seal(expired_to_json(mine)))
    log.put(mine)
    with pytest.raises(CommitConflict):
        log.put(first())
    with pytest.raises(StoreError, match=r"version 0 of .* has expired or was purged"):
        log.read(0)


def test_threads_racing_have_one_winner_each(folder):
    versions = 4 if folder.url.startswith(("s3", "gs", "az")) else 50
    wins = [[] for _ in range(versions)]

    def race(barrier):
        log = CommitLog(folder)
        for version in range(versions):
            barrier.wait()
            try:
                log.put(replace(first(), version=version))
            except CommitConflict:
                continue
            wins[version].append(threading.get_ident())

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=race, args=(barrier,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(winners) for winners in wins] == [1] * versions


def race_in_process(path, barrier, versions, results):
    log = CommitLog(Folder.at(path))
    won = []
    for version in range(versions):
        commit = replace(first(), version=version)
        barrier.wait()
        try:
            log.put(commit)
        except CommitConflict:
            continue
        won.append((version, commit.transaction))
    results.put(won)


def test_processes_racing_have_one_winner_each(tmp_path):
    versions = 300
    context = forking()
    barrier, results = context.Barrier(2), context.Queue()
    arguments = (str(tmp_path), barrier, versions, results)
    racers = [context.Process(target=race_in_process, args=arguments) for _ in range(2)]
    for racer in racers:
        racer.start()
    won = sorted(results.get(timeout=60) + results.get(timeout=60))
    for racer in racers:
        racer.join()
    assert [version for version, _ in won] == list(range(versions))
    log = CommitLog(Folder.at(str(tmp_path)))
    assert [log.read(version).transaction for version in range(versions)] == [t for _, t in won]
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize("fault", ["reply lost", "exists lost"])
def test_a_put_whose_reply_is_lost_is_known_as_ours(tmp_path, fault):
    log = faulty(tmp_path, [fault])
    head = first()
    log.put(head)
    assert log.latest() == head


def test_a_put_that_left_nothing_is_tried_again(tmp_path):
    log = faulty(tmp_path, ["refused", "refused"])
    head = first()
    log.put(head)
    assert log.latest() == head


def test_a_put_that_always_fails_leaves_the_store_as_it_was(tmp_path):
    log = faulty(tmp_path, ["refused"] * 3)
    with pytest.raises(
        StoreError, match=r"could not be written \(OSError: 503 .*unchanged"
    ) as told:
        log.put(first())
    assert SECRET not in str(told.value)
    assert log.latest_version() is None


def test_another_writer_between_two_attempts_is_a_conflict(tmp_path):
    log = faulty(tmp_path, ["refused", "other first"])
    with pytest.raises(CommitConflict):
        log.put(first())


def test_reading_back_is_tried_again(tmp_path):
    log = faulty(tmp_path, ["reply lost"], ["refused", "refused"])
    log.put(first())


def test_what_cannot_be_read_back_is_unknown_and_stays(tmp_path):
    log = faulty(tmp_path, ["reply lost"], ["refused"] * 3)
    head = first()
    with pytest.raises(CreationUnknown, match="may or may not be written") as told:
        log.put(head)
    assert SECRET not in str(told.value)
    assert log.latest() == head


def test_damage_at_the_place_of_a_commit_is_unknown(tmp_path):
    log = faulty(tmp_path)
    log.folder.write(commit_file(0), b"torn")
    with pytest.raises(CreationUnknown, match="nothing was deleted"):
        log.put(first())
    assert log.folder.read(commit_file(0)) == b"torn"


def failing_syncs(monkeypatch, failures):
    """Paths of the synced folders, after some failing syncs."""
    left, synced, sync = [None] * failures, [], local_files._sync_folder

    def fail_first(path):
        if left:
            left.pop()
            raise OSError(errno.EIO, f"sync failed with {SECRET}")
        sync(path)
        synced.append(path)

    monkeypatch.setattr(local_files, "_sync_folder", fail_first)
    return synced


@pytest.mark.parametrize("failures", [0, 1, 2, 3])
def test_a_commit_is_not_done_before_its_folder_is_synced(tmp_path, monkeypatch, failures):
    log = faulty(tmp_path)
    head = first()
    synced = failing_syncs(monkeypatch, failures)
    log.put(head)
    assert str(tmp_path / "commits") in synced
    assert log.latest() == head


def test_a_commit_that_cannot_be_synced_is_unknown_and_stays(tmp_path, monkeypatch):
    log = faulty(tmp_path)
    head = first()
    synced = failing_syncs(monkeypatch, 100)
    with pytest.raises(CreationUnknown, match="a power cut may delete it.*check the disk") as told:
        log.put(head)
    assert SECRET not in str(told.value)
    assert synced == []
    assert log.latest() == head


def test_a_folder_that_cannot_be_listed_is_not_empty(tmp_path, monkeypatch):
    folder = Folder.at(str(tmp_path))
    folder.write("segments/a/b", b"here")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("/a"):
            raise OSError(errno.EIO, "cannot be listed")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for look in (folder.files, folder.sizes, folder.sync):
        with pytest.raises(StoreError, match="cannot be listed"):
            look("segments")
    assert folder.files("absent") == []


def test_folders_made_above_a_store_are_synced_with_it(tmp_path, monkeypatch):
    folder = Folder.at(str(tmp_path / "made" / "on" / "the" / "way"))
    synced = failing_syncs(monkeypatch, 0)
    folder.write("vocabulary/a", b"words")
    folder.sync("")
    made = [tmp_path, *(tmp_path / place for place in ("made", "made/on", "made/on/the"))]
    assert {str(place) for place in made} <= set(synced)


def test_a_folder_that_is_not_empty_stays(tmp_path):
    folder = Folder.at(str(tmp_path))
    folder.write("segments/a/b", b"garbage")
    folder.write("segments/a/c", b"written meanwhile")
    folder.delete(["segments/a/b", "segments/a/gone"])
    assert folder.sizes("") == {"segments/a/c": 17}
    folder.delete(["segments/a/c"])
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_deleted_is_an_error(tmp_path, monkeypatch):
    folder = Folder.at(str(tmp_path))
    folder.write("segments/a/b", b"garbage")

    def refuse(path, **_):
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(StoreError, match="cannot delete .*segments/a .*read-only"):
        folder.delete(["segments/a/b"])


def test_extend_builds_on_the_winner(folder):
    log = CommitLog(folder)
    head = first()
    log.put(head)
    theirs = log.extend(head, lambda latest: latest.successor("append", "theirs"))
    mine = log.extend(head, lambda latest: latest.successor("append", "mine"))
    assert (mine.version, mine.parent) == (2, theirs.transaction)


def test_what_a_stale_version_refuses_the_latest_may_allow(folder):
    log = CommitLog(folder)
    head = first()
    log.put(head)
    log.put(head.successor("append", "the first"))

    def change(latest):
        if latest.version == 0:
            raise StoreError("the first is not there yet")
        return latest.successor("append", "the second")

    assert log.extend(head, change).version == 2


def test_what_the_latest_version_refuses_is_refused(folder):
    log = CommitLog(folder)
    log.put(first())
    asked = []

    def change(latest):
        asked.append(latest.version)
        raise StoreError("never allowed")

    with pytest.raises(StoreError, match="never allowed"):
        log.extend(log.latest(), change)
    assert asked == [0]
    assert log.latest_version() == 0


def test_the_clock_of_a_disk_is_that_of_its_files(tmp_path):
    folder = Folder.at(str(tmp_path))
    before = folder.clock()
    folder.write("a", b"")
    [file] = folder.files("")
    assert before <= file.modified <= folder.clock()


def test_versions_beyond_a_stale_listing_are_found(tmp_path, monkeypatch):
    log = CommitLog(Folder.at(str(tmp_path)))
    head = first()
    log.put(head)
    log.put(head.successor("append", ""))
    monkeypatch.setattr(Folder, "names", lambda *_: [commit_file(0).partition("/")[2]])
    assert log.latest_version() == 1
    monkeypatch.setattr(Folder, "names", lambda *_: [])
    assert log.latest_version() == 1


def test_a_long_log_is_not_listed(tmp_path, monkeypatch):
    log = CommitLog(Folder.at(str(tmp_path)))
    log.put(first())
    behind = (tmp_path / reached_file()).read_bytes()
    log.put(first().successor("append", ""))
    monkeypatch.setattr(Folder, "names", lambda *_: 1 / 0)
    assert log.latest_version() == 1
    (tmp_path / reached_file()).write_bytes(behind)
    assert log.latest_version() == 1
    (tmp_path / reached_file()).unlink()
    with pytest.raises(ZeroDivisionError):
        log.latest_version()


def test_the_loss_of_the_newest_commit_is_told(tmp_path):
    log = CommitLog(Folder.at(str(tmp_path)))
    log.put(first())
    log.put(first().successor("append", ""))
    (tmp_path / commit_file(1)).unlink()
    with pytest.raises(StoreError, match=r"1\.json is missing; restore it .* version 0"):
        log.latest_version()
    (tmp_path / reached_file()).unlink()
    assert log.latest_version() == 0


def test_a_commit_stands_whose_note_was_not_written(tmp_path, monkeypatch):
    log = CommitLog(Folder.at(str(tmp_path)))
    log.put(first())
    note = (tmp_path / reached_file()).read_bytes()

    def full(*_):
        raise StoreError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "write", full)
        log.put(first().successor("append", ""))
    assert (tmp_path / reached_file()).read_bytes() == note
    assert log.latest_version() == 1
    log.put(log.latest().successor("append", ""))
    assert (tmp_path / reached_file()).read_bytes() != note


def test_a_log_without_commits_says_so(tmp_path):
    with pytest.raises(
        StoreError, match="interrupted before its first commit; create the store again"
    ):
        CommitLog(Folder.at(str(tmp_path))).latest()


def test_every_flip_of_a_commit_is_found(tmp_path):
    log = CommitLog(Folder.at(str(tmp_path)))
    log.put(first())
    whole = log.folder.read(commit_file(0))
    for place in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(StoreError, match="damaged"):
            unseal(bytes(flipped), "the commit")
    log.folder.write(commit_file(1), whole)
    with pytest.raises(StoreError, match="holds version 0"):
        log.read(1)


def test_unknown_keys_are_kept(tmp_path):
    log = CommitLog(Folder.at(str(tmp_path)))
    segment = SegmentReference("c" * 32, "d" * 64, 3, 12, 1, 99)
    content = commit_to_json(replace(first(), segments=(segment,)))
    for part in (content, content["lineage"], content["segments"][0]):
        part["of a later version"] = {"kept": [1]}
    log.folder.write(commit_file(0), seal(content))
    after = log.extend(log.latest(), lambda head: head.successor("append", ""))
    stored = unseal(log.folder.read(commit_file(1)), "")
    for part in (stored, stored["lineage"], stored["segments"][0]):
        assert part["of a later version"] == {"kept": [1]}
    assert log.read(1) == after


@pytest.mark.parametrize(
    "change",
    [
        {"segments": [{"id": "../../outside"}]},
        {"models": {"../outside": {}}},
        {"lineage": None},
        {"transaction": "../../etc"},
        {"skipped": [1]},
    ],
)
def test_commits_that_could_leave_the_store_are_refused(change):
    content = {**commit_to_json(first()), **change}
    with pytest.raises(StoreError, match="is not a valid commit"):
        commit_from_json(content, "commits/0.json")


def test_names_in_references_cannot_leave_the_store():
    segment = SegmentReference("../outside", "d" * 64, 3, 12, 1, 99)
    content = commit_to_json(replace(first(), segments=(segment,)))
    with pytest.raises(StoreError, match=r"'../outside' is not 32 hexadecimal digits"):
        commit_from_json(content, "commits/0.json")


class Careless(LocalFileSystem):
    """A storage that cannot exclude a second writer."""

    protocol = "careless"
    local_file = False


@pytest.fixture
def careless(tmp_path):
    fsspec.register_implementation("careless", Careless, clobber=True)
    os.makedirs(tmp_path / "store" / "commits")
    return Folder.at(f"careless://{tmp_path}/store")


def test_storage_without_arbitration_is_refused_to_writers(careless):
    log = CommitLog(careless)
    for write in (log.probe, lambda: log.put(first())):
        with pytest.raises(StoreError, match="single_writer=True"):
            write()
    assert log.latest_version() is None


def test_a_single_writer_may_use_it(careless):
    log = CommitLog(careless, single_writer=True)
    log.probe()
    log.put(first())
    with pytest.raises(CommitConflict):
        log.put(first())
    assert log.latest_version() == 0


def test_probe_refuses_storage_that_overwrites(tmp_path, monkeypatch):
    monkeypatch.setattr(Folder, "create", Folder.write)
    with pytest.raises(StoreError, match="overwrites a file that it should only create"):
        CommitLog(Folder.at(str(tmp_path))).probe()


def test_probe_of_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        CommitLog(Folder.at(str(tmp_path / "file"))).probe()


def test_passwords_in_urls_are_refused_unnamed():
    with pytest.raises(StoreError, match="holds a password") as told:
        Folder.at(f"sftp://me:{SECRET}@host/store")
    assert SECRET not in str(told.value)


def test_unknown_protocols_are_named():
    with pytest.raises(StoreError, match="nowhere"):
        Folder.at("nowhere://store")
