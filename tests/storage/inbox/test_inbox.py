"""The inbox: durable or an error, one content for each key, one winner of two writers."""

import errno
import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace

import pytest
from sent_documents import sent
from unreliable_proxy import Fault

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.backends import lacks_space
from streaming_moments.storage.files.created import CreationUnknown, create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.retries import CREATE_ATTEMPTS
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox import group_commit
from streaming_moments.storage.inbox.group_commit import GroupCommit, InboxClosed
from streaming_moments.storage.inbox.idempotency import KeyReused
from streaming_moments.storage.inbox.inbox import Backlog, Inbox


@dataclass(frozen=True)
class Failing(Folder):
    """A real folder whose next creations and reads fail as the script says."""

    creating: tuple = ()
    finding: tuple = ()

    def create(self, name, content):
        fault = self._next("creating")
        if fault == "reply lost":
            super().create(name, content)
        if isinstance(fault, int):
            raise OSError(fault, "no")
        if fault:
            raise OSError("connection reset")
        super().create(name, content)

    def find(self, name):
        if self._next("finding"):
            raise StoreError("cannot read")
        return super().find(name)

    def sync(self, name):
        vars(self).setdefault("synced", []).append(name)
        super().sync(name)

    def _next(self, script):
        left = vars(self).setdefault(f"_{script}", list(getattr(self, script)))
        return left.pop(0) if left else None


def failing(tmp_path, creating=(), finding=()):
    return Failing(str(tmp_path), None, tuple(creating), tuple(finding))


def test_batches_are_there_for_another_process_oldest_first(inbox):
    # by name the later one is before the earlier
    names = [inbox.put([sent("a", "b")], "f" * 32), inbox.put([sent("c")], "0" * 32)]
    deadline = time.monotonic() + 60
    while len({batch.arrived for batch in inbox.pending()}) == 1:
        # clocks of some storages tell seconds
        assert time.monotonic() < deadline
        inbox.remove(names[1:])
        inbox.put([sent("c")], "0" * 32)
    again = Inbox.open(inbox.folder.url, inbox.folder.storage_options)
    assert [batch.name for batch in again.pending()] == names
    assert (again.backlog().batches, again.backlog().documents) == (2, 3)
    assert again.backlog().age.total_seconds() >= 0
    again.remove(names)
    assert again.backlog() == Inbox.open(inbox.folder.url, inbox.folder.storage_options).backlog()
    assert again.put([sent("d")])


def test_of_many_contents_under_one_key_all_are_told_one(inbox):
    def claim(number):
        return inbox.claim(f"k{'0' * 32}", f"{number:064x}", 0).digest

    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(claim, range(8)))
    assert len(found) == 1
    assert inbox.claims_of([f"k{'0' * 32}"])[f"k{'0' * 32}"].digest in found
    assert inbox.claims_of([f"k{'1' * 32}"]) == {f"k{'1' * 32}": None}


def test_of_two_that_create_a_file_the_other_is_told(folder):
    folder.write("there", b"first")

    def created(number):
        try:
            folder.create("new", b"%d" % number)
        except FileExistsError:
            return None
        return b"%d" % number

    with ThreadPoolExecutor(4) as threads:
        (won,) = set(threads.map(created, range(8))) - {None}
    assert folder.read("new") == won
    with pytest.raises(FileExistsError):
        folder.create("there", b"second")
    assert (folder.read("there"), folder.find("none")) == (b"first", None)


@pytest.mark.parametrize("protocol", ["gs", "az"])
def test_what_a_bucket_created_without_a_reply_is_known_again(request, protocol):
    options, proxy = request.getfixturevalue(protocol)
    folder = Folder.at(f"{protocol}://bucket/{uuid.uuid4().hex}", options)
    for kind in ("lost reply", "lost request"):
        proxy.suffer(Fault(kind, 0, 1, commits=True))
        assert create_once(folder, kind, b"mine") is None
        assert proxy.calm() == 1
        assert folder.read(kind) == b"mine"
        assert create_once(folder, kind, b"other") == b"mine"


def test_a_large_file_is_created_by_one_request_too(gs):
    """A request of several would check its condition at its start, and write at its end."""
    folder = Folder.at(f"gs://bucket/{uuid.uuid4().hex}", gs[0])
    folder.create("large", bytes(50 << 20))
    with pytest.raises(FileExistsError):
        folder.create("large", bytes(50 << 20))


def test_an_inbox_of_a_later_version_is_refused(folder):
    folder.write("inbox.json", seal({"format": 2}))
    with pytest.raises(StoreError, match="upgrade"):
        Inbox.open(folder.url, folder.storage_options)


def test_a_storage_that_overwrites_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Folder, "create", Folder.write)
    with pytest.raises(StoreError, match="overwrites"):
        Inbox.open(str(tmp_path))


def test_a_storage_that_does_not_say_whether_it_overwrites_is_refused(tmp_path, monkeypatch):
    tried = []

    def cut_off(folder, name, content):
        tried.append(name)
        raise OSError("connection reset")

    Inbox.open(str(tmp_path))
    monkeypatch.setattr(Folder, "create", cut_off)
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: None))
    told = r"the inbox .* cannot be written \(OSError: connection reset\); check"
    with pytest.raises(StoreError, match=told):
        Inbox.open(str(tmp_path))
    assert len(tried) == 1 + CREATE_ATTEMPTS, "once before it is there, then to learn of it"


@pytest.mark.parametrize("lost", [["reply lost"], ["refused", "reply lost"], ["refused"] * 3])
def test_after_an_error_the_file_is_asked(tmp_path, lost):
    folder = failing(tmp_path, lost, ["refused"])
    assert create_once(folder, "a", b"mine", delay=0.001) is None
    assert folder.read("a") == b"mine"
    # what was told to have failed may not outlast a power cut yet
    assert ("reply lost" in lost) == ("synced" in vars(folder))
    assert create_once(folder, "a", b"other") == b"mine"


def test_what_cannot_be_asked_is_unknown_and_what_cannot_be_written_is_not_there(tmp_path):
    with pytest.raises(CreationUnknown, match="may or may not"):
        create_once(failing(tmp_path, ["reply lost"], ["no"] * 9), "a", b"mine", delay=0.001)
    folder = failing(tmp_path, ["refused"] * 9)
    with pytest.raises(StoreError, match="nothing was stored"):
        create_once(folder, "b", b"mine", delay=0.001)
    assert folder.find("b") is None


def test_a_full_disk_is_told_at_once(tmp_path):
    folder = failing(tmp_path, [errno.ENOSPC, None])
    with pytest.raises(StoreError) as told:
        create_once(folder, "a", b"mine")
    assert lacks_space(told.value)
    assert not lacks_space(StoreError("another"))
    assert create_once(folder, "a", b"mine") is None


def test_submissions_at_one_time_are_one_batch(tmp_path):
    inbox = Inbox.open(str(tmp_path))
    commits = GroupCommit(inbox, window=0.5)
    several = [sent(f"t{number}") for number in range(5)]
    waiting = [commits.submit(one, 0) for one in several]
    assert [one.result(30) for one in waiting] == [one.receipt for one in several]
    assert len(inbox.pending()) == 1
    commits.close()
    with pytest.raises(InboxClosed):
        commits.submit(sent("late"), 0)


def test_a_batch_waits_no_longer_once_it_is_large_and_others_may_join_it_until_then(tmp_path):
    inbox, several = Inbox.open(str(tmp_path)), [sent("the sea"), sent("a law")]
    most = sum(len(one.content) for one in several)
    commits = GroupCommit(inbox, window=3600, most_bytes=most)
    waiting = [commits.submit(one, 0) for one in several]
    assert [one.result(30) for one in waiting] == [one.receipt for one in several]
    assert (inbox.backlog().batches, inbox.backlog().documents) == (1, 2)
    # the next begins with nothing of it
    late = commits.submit(sent("a tax"), 0)
    assert commits.held_bytes == len(sent("a tax").content)
    assert not late.done()
    commits.close()
    assert late.done()


def test_closing_writes_what_waits(tmp_path):
    inbox = Inbox.open(str(tmp_path))
    commits = GroupCommit(inbox, window=3600)
    waiting = commits.submit(sent("a"), 0)
    commits.close()
    assert waiting.done()
    assert inbox.backlog().documents == 1
    assert commits.held_bytes == 0


def test_who_is_gone_before_its_documents_are_written_harms_nobody(tmp_path):
    inbox = Inbox.open(str(tmp_path))
    commits = GroupCommit(inbox, window=0.2)
    gone, stays = commits.submit(sent("a"), 0), commits.submit(sent("b"), 0)
    gone.cancel()
    assert stays.result(30)
    assert commits.submit(sent("c"), 0).result(30)
    commits.close()


def test_a_clock_that_was_set_back_makes_nothing_younger(tmp_path):
    inbox = Inbox.open(str(tmp_path))
    ahead = time.time() + 3600
    os.utime(tmp_path / "batches" / inbox.put([sent("a")]), (ahead, ahead))
    assert inbox.backlog().age.total_seconds() > 3000


def test_the_age_is_that_of_the_oldest(tmp_path):
    inbox = Inbox.open(str(tmp_path))
    for seconds in (100, 5000, 10):
        before = time.time() - seconds
        os.utime(tmp_path / "batches" / inbox.put([sent("a")]), (before, before))
    assert 5000 <= inbox.backlog().age.total_seconds() < 5600


def test_a_key_of_other_documents_is_refused_also_after_a_restart(inbox):
    commits = GroupCommit(inbox, window=0.0)
    assert commits.submit(sent("a", key="k"), 0).result(30) == sent("a", key="k").receipt
    commits.close()
    commits = GroupCommit(Inbox.open(inbox.folder.url, inbox.folder.storage_options), window=0.0)
    assert commits.submit(sent("a", key="k"), 0).result(30) == sent("a", key="k").receipt
    with pytest.raises(KeyReused):
        commits.submit(sent("b", key="k"), 0).result(30)
    commits.close()


def test_a_batch_that_cannot_be_written_is_told_to_each_who_brought_some(tmp_path):
    Inbox.open(str(tmp_path))
    commits = GroupCommit(Inbox(failing(tmp_path, [errno.ENOSPC])), window=0.2)
    waiting = [commits.submit(sent(text), 0) for text in "ab"]
    for one in waiting:
        with pytest.raises(StoreError, match="nothing was stored"):
            one.result(30)
    assert commits.submit(sent("c"), 0).result(30)
    commits.close()


def test_the_backlog_is_what_waits(tmp_path):
    inbox = Inbox.open(str(tmp_path))
    assert inbox.backlog() == Backlog(0, 0, 0, timedelta(0))
    assert Backlog() == Backlog(0, 0, 0, timedelta(0))
    names = [inbox.put([sent("a", "b")]), inbox.put([sent("c")], "0" * 32)]
    inbox.folder.write("batches/other.batch", b"no batch")
    sizes = [(tmp_path / "batches" / name).stat().st_size for name in names]
    assert {batch.name: batch.nbytes for batch in inbox.pending()} == dict(
        zip(names, sizes, strict=True)
    )
    backlog = inbox.backlog()
    assert (backlog.batches, backlog.documents, backlog.nbytes) == (2, 3, sum(sizes))
    assert inbox.read(names[0])[0].documents == 2
    with pytest.raises(StoreError, match=f"batches/{names[1]} holds another batch"):
        inbox.put([sent("d")], "0" * 32)
    assert inbox.claims_of([]) == {}


def test_an_inbox_is_there_after_a_power_cut_and_its_folders_never_are_empty(tmp_path, monkeypatch):
    synced, sync = [], Folder.sync

    def noted(folder, name):
        synced.append(name)
        sync(folder, name)

    monkeypatch.setattr(Folder, "sync", noted)
    inbox = Inbox.open(str(tmp_path))
    assert synced == [""]
    assert [inbox.folder.exists(f"{part}/kept") for part in ("batches", "claims")] == [True, True]


def test_a_storage_that_cannot_refuse_a_second_writer_is_refused():
    with pytest.raises(
        StoreError, match="create-if-absent, which an inbox needs; put the inbox on a"
    ):
        Inbox.open("http://127.0.0.1:9/inbox")


@dataclass(frozen=True)
class WithoutClaims(Folder):
    """A folder in which claims cannot be created."""

    def create(self, name, content):
        if name.startswith("claims/"):
            raise OSError(errno.EACCES, "no")
        super().create(name, content)


def test_a_claim_that_cannot_be_written_refuses_its_submission_alone(tmp_path):
    Inbox.open(str(tmp_path))
    commits = GroupCommit(Inbox(WithoutClaims(str(tmp_path))), window=0.2)
    keyed, other = commits.submit(sent("a", key="k"), 0), commits.submit(sent("b"), 0)
    assert other.result(30)
    with pytest.raises(StoreError, match="could not be written"):
        keyed.result(30)
    commits.close()


def test_no_thread_outlasts_its_process_or_its_end(tmp_path):
    commits = GroupCommit(Inbox.open(str(tmp_path)), window=0.0)
    commits.submit(sent("a", key="k"), 0).result(30)
    own = {one for one in threading.enumerate() if one.name.startswith(("writing", "claiming"))}
    assert {one.name: one.daemon for one in own}["writing batches"]
    commits.close()
    assert not [one for one in own if one.is_alive()]


def test_a_batch_waits_up_to_the_last_byte_and_second(tmp_path, monkeypatch):
    monkeypatch.setattr(group_commit, "monotonic", lambda: 7.0)
    one = sent("a")
    most = len(one.content) + 1
    commits = GroupCommit(Inbox.open(str(tmp_path)), window=0.9, most_bytes=most)
    for _ in range(2):
        first = commits.submit(one, 0)
        # of this clock no second goes by, so that only a full batch is written
        with pytest.raises(TimeoutError):
            first.result(0.1)
        commits.submit(sent("b"), 0)
        assert first.result(30)
    commits.close()
