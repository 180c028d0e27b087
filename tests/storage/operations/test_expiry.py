"""Expiry: one commit drops old versions, needed files stay, and no number is used again."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commit_log import CommitConflict, CommitLog
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.operations.expiry import Expiry, expire, plan_expiry
from streaming_moments.storage.operations.history import difference, rollback, tag
from streaming_moments.storage.store import garbage
from streaming_moments.storage.store.garbage import find_garbage, sweep
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    append,
    compact,
    create,
    forget,
    model_of,
    rebase,
    total,
)

NO_TIME = timedelta(0)
DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path):
    """Versions 0 to 6: three appends, a model of the second, a forget, a compaction."""
    store = append(create(tmp_path / "store"), {"a": 1})
    store = append(store, {"b": 2}).save_model("m", model_of(0))
    store = forget(append(store, {"c": 3}), {"b": 2})
    return compact(store)


def heaps(store):
    root = Path(store.url)
    segments = {f"segments/{path.name}" for path in (root / "segments").iterdir()}
    return segments | {str(path.relative_to(root)) for path in root.glob("models/*/*")}


def named(commits):
    segments = {f"segments/{part.id}" for one in commits for part in one.segments}
    models = {f"models/{name}/{m.id}" for one in commits for name, m in one.models.items()}
    return segments | models


def make_older(store, versions, age):
    for version in versions:
        path = Path(store.url, commit_file(version))
        then = path.stat().st_mtime - age.total_seconds()
        os.utime(path, (then, then))


def test_a_version_before_which_others_have_expired_since_is_sound(store):
    left, _ = expire(store, 1, NO_TIME)
    assert left.commit.kept == ((2, 2), (6, 7))
    # its own commit cannot know that 3 to 5 would expire
    assert left.at(6).verify() == []


def test_old_versions_go_with_what_only_they_hold(store):
    before, on_disk = store.log(), heaps(store)
    planned = plan_expiry(store, 1, NO_TIME)
    assert heaps(store) == on_disk
    left, dropped = expire(store, 1, NO_TIME)
    # the model was fitted on version 2
    assert dropped.versions == (0, 1, 3, 4, 5)
    assert dropped.held == {2: "model m"}
    assert dropped == planned
    assert left.commit.expired == ((0, 1), (3, 5))
    assert left.commit.kept == ((2, 2), (6, 7))
    assert left.commit.message == "expire: 5 versions, 0 models"
    assert [commit.version for commit in left.log()] == [7, 6, 2]
    assert heaps(store) == named(left.log())
    assert set(dropped.places) == on_disk - heaps(store)
    assert left.load() == total([1, 3])
    assert left.at(2).load() == total([1, 2])
    assert [left.verify(), left.at(2).verify()] == [[], []]
    assert find_garbage(left.folder, NO_TIME) == []
    assert left.load_model("m").topics.tolist() == model_of(0).topics.tolist()
    assert MomentStore.open(store.url).commit == left.commit
    again, nothing = expire(left, 2, NO_TIME)
    assert (again.version, nothing.versions, nothing.places) == (7, (), ())
    assert {commit.version: commit.segments for commit in left.log()[1:]} == {
        commit.version: commit.segments for commit in before if commit.version in (2, 6)
    }


def test_an_expired_version_is_called_so(store):
    store, _ = expire(store, 1, NO_TIME)
    for ask in (
        lambda: store.at(4),
        lambda: MomentStore.open(store.url, 4),
        lambda: rollback(store, 4),
        lambda: difference(store, 4, 6),
        lambda: difference(store, 6, 4),
    ):
        with pytest.raises(StoreError, match=r"version 4 of .* has expired .*; it has 2, 6 to 7"):
            ask()
    with pytest.raises(StoreError, match="has no version 9; it has 2, 6 to 7"):
        store.at(9)
    assert rollback(store, 2).load() == total([1, 2])


def test_what_is_young_or_among_the_last_stays(store):
    make_older(store, range(4), 2 * DAY)
    left, dropped = expire(store, 1, DAY)
    # version 3 was the latest until version 4 came, a moment ago
    assert dropped.versions == (0, 1)
    assert dropped.held == {2: "model m"}
    make_older(left, range(8), 2 * DAY)
    assert expire(left, 5, DAY)[1].versions == ()
    assert expire(left, 4, DAY)[1].versions == (3,)
    # the emptied commits are young, and what they say is not
    make_older(left, [4, 5, 6, 7, 8], 2 * DAY)
    assert expire(left, 1, DAY)[1].versions == (4, 5, 6, 7)
    for wrong in ((0, DAY), (1, -DAY)):
        with pytest.raises(InvalidInput, match="give at least"):
            expire(left, *wrong)


def test_models_without_a_tag_go_with_their_versions_where_asked(store):
    store = store.save_model("n", model_of(1)).save_model("late", model_of(2))
    store = tag(store, "published", "n")
    left, dropped = expire(store, 1, NO_TIME)
    assert dropped.held == {6: "tag published", 7: "model late"}
    assert dropped.models == ()
    assert [*left.models] == ["m", "n", "late"]
    left, dropped = expire(left, 1, NO_TIME, models=True)
    # versions 6 and 7 are kept for theirs, and still name it
    assert dropped.models == ("m",)
    assert [*left.models] == ["n", "late"]
    assert left.verify() == []
    assert left.at(7).load_model("m")
    left = tag(left.save_model("newest", model_of(3)), "published", "newest")
    left, dropped = expire(left, 1, NO_TIME, models=True)
    assert dropped.models == ("n", "late")
    assert not [place for place in heaps(left) if "/m/" in place]


def test_a_writer_that_slept_cannot_make_an_expired_version_anew(store):
    stale, commit = store.at(1), store.at(4).commit
    left, _ = expire(store, 1, NO_TIME)
    with pytest.raises(CommitConflict):
        CommitLog(store.folder).put(stale.commit.successor("append", "of another writer"))
    # its own commit, whose reply was lost, it knows again
    CommitLog(store.folder).put(commit)
    grown = append(stale, {"d": 4})
    assert (grown.version, grown.load()) == (left.version + 1, total([1, 3, 4]))
    assert grown.commit.expired == left.commit.expired


def test_who_goes_back_while_the_version_expires_is_refused_and_the_other_way_round(
    store, monkeypatch
):
    old = store.at(1)
    expire(store, 1, NO_TIME)
    # as it had looked at the version before
    monkeypatch.setattr(MomentStore, "at", lambda self, version: old)
    with pytest.raises(StoreError, match="version 1 has just expired"):
        rollback(store, 1)


def test_what_is_rolled_back_to_meanwhile_is_not_deleted(store):
    rollback(store, 1)
    left, _ = expire(store, 1, NO_TIME)
    assert left.load() == total([1])
    assert left.verify() == []


@pytest.mark.parametrize("step", ["unseal", "held_alone", "_delete", "expired_to_json"])
def test_an_expiry_that_died_is_over_once_committed_and_the_next_one_deletes(
    store, monkeypatch, step
):
    def die(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(garbage, step, die)
        with pytest.raises(KeyboardInterrupt):
            expire(store, 1, NO_TIME)
    left = MomentStore.open(store.url)
    assert [commit.version for commit in left.log()] == [7, 6, 2]
    assert left.verify() == []
    with pytest.raises(StoreError, match="has expired"):
        left.at(4)
    assert expire(left, 2, NO_TIME)[0].version == 7
    assert heaps(left) == named(left.log())
    assert sweep(left.folder) == []


def test_versions_of_another_lineage_expire(tmp_path):
    store = append(create(tmp_path / "store"), {"a": 1})
    store = rebase(store)
    left, dropped = expire(store, 1, NO_TIME)
    assert dropped.versions == tuple(range(store.version))
    assert left.verify() == []
    assert append_after(left)


def append_after(store):
    return rollback(store, store.version).load() == store.load()


def test_a_commit_that_says_it_was_expired_on_its_own_is_found(store):
    name = commit_file(3)
    content = unseal(store.folder.read(name), name)
    forged = {**{key: content[key] for key in ("version", "parent", "transaction")}}
    store.folder.write(name, seal({**forged, "expired": True}))
    assert store.verify() == ["commit 3 is marked as expired, but no later commit lists it"]
    with pytest.raises(StoreError, match="version 3 of .* has expired"):
        store.at(3)


def test_ranges_that_cannot_be_are_refused(store):
    for wrong in ([[2, 1]], [[0, 2], [3, 4]], [[0, 6]], [[1, 2], [0, 0]]):
        name = commit_file(6)
        content = unseal(store.folder.read(name), name)
        store.folder.write(name, seal({**content, "expired": wrong}))
        with pytest.raises(StoreError, match="the expired versions are not ranges"):
            MomentStore.open(store.url)


def test_a_version_is_old_from_the_very_time_that_was_given(tmp_path, monkeypatch):
    store = append(append(create(tmp_path / "store"), {"a": 1}), {"b": 2})
    written = {file.path: file.modified for file in store.folder.files("commits")}
    hour = timedelta(hours=1)
    # the second version was the latest until the third was written, an hour ago
    now = written[commit_file(2).partition("/")[2]] + hour
    monkeypatch.setattr(Folder, "clock", lambda folder: now)
    assert plan_expiry(store, 1, hour + timedelta(microseconds=1)).versions == (0,)
    assert plan_expiry(store, 1, hour).versions == (0, 1)


def test_a_commit_that_was_written_again_later_makes_none_before_it_younger(tmp_path):
    store = append(append(create(tmp_path / "store"), {"a": 1}), {"b": 2})
    now = store.folder.clock().timestamp()
    # as one that was emptied
    for version, hours in ((0, 4), (1, 0), (2, 2)):
        times = now - 3600 * hours, now - 3600 * hours
        os.utime(Path(store.url) / commit_file(version), times)
    assert plan_expiry(store, 1, timedelta(hours=1)).versions == (0, 1)
    assert plan_expiry(store, 1, timedelta(hours=3)).versions == ()


def test_what_expires_is_measured_and_a_message_is_kept(store):
    planned = plan_expiry(store, 1, NO_TIME)
    sizes = {file.path: file.size for file in store.folder.files("")}
    assert planned.size == sum(
        size for path, size in sizes.items() if path.startswith(planned.places)
    )
    assert len(planned.places) == 2
    left, dropped = expire(store, 1, NO_TIME, message="monthly")
    assert (dropped, left.commit.message) == (planned, "monthly")
    assert (Expiry((), (), {}).places, Expiry((), (), {}).size) == ((), 0)


def test_models_go_though_no_version_does(store):
    store = store.save_model("n", model_of(1))
    # a model without a tag stays with a version that is kept
    assert plan_expiry(store, 9, NO_TIME, models=True).models == ()
    left, _ = expire(store, 1, NO_TIME)
    # models stay unless they are asked for
    assert plan_expiry(left, 2, NO_TIME).models == ()
    assert expire(left, 2, NO_TIME)[1].models == ()
    assert plan_expiry(left, 2, NO_TIME, models=True).models == ("m",)
    again, dropped = expire(left, 2, NO_TIME, models=True)
    assert (dropped.versions, dropped.models, [*again.models]) == ((), ("m",), ["n"])
    # what it held alone goes with the version that was kept for it
    planned = plan_expiry(again, 1, NO_TIME, models=True)
    assert expire(again, 1, NO_TIME, models=True)[1] == planned


def test_files_that_are_no_commits_are_no_versions(store):
    for name in ("commits/notes.json", "commits/reached.txt"):
        store.folder.write(name, b"by hand")
    assert plan_expiry(store, 6, NO_TIME).versions == (0,)
    assert plan_expiry(store, 7, NO_TIME).versions == ()
