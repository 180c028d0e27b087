"""Withdrawals: nothing of an origin is left in a hub, and it does not come back by itself."""

from dataclasses import replace

import pytest

from streaming_moments.errors import InvalidInput, StoreError, Unfinished
from streaming_moments.storage.merging import pulling, withdrawal
from streaming_moments.storage.merging.pulling import drop_origin, pull
from streaming_moments.storage.merging.withdrawal import (
    plan_withdrawal,
    traces_of_origin,
    withdraw,
)
from streaming_moments.storage.operations.history import rollback, tag
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import append, create, forget, model_of, purge, total


def site(shards):
    return append(create(), shards)


def stored(store):
    """All files of a store by path."""
    return {file.path: store.folder.read(file.path) for file in store.folder.files("")}


@pytest.fixture
def hub():
    """A hub with documents of its own, a model without and one with those of berlin and rome."""
    store = append(create(), {"own": 1}).save_model("alone", model_of(1))
    for name, seed in (("berlin", 2), ("rome", 3)):
        store = pull(store, site({f"/{name}": seed}), name).store
    store = store.save_model("both", model_of(2))
    return tag(store, "published", "both")


def test_nothing_of_an_origin_is_left(hub):
    [berlin] = [part for part in hub.commit.segments if part.is_of("berlin")]
    planned = plan_withdrawal(hub, "berlin")
    assert (planned.documents, planned.purge.models) == (6, ("both",))
    done = withdraw(hub, "berlin")
    assert replace(done, store=None, erased=()) == replace(planned, store=None)
    assert done.purge.versions == (3, 4, 5, 6)
    assert done.purge.tags == ("published",)
    after = MomentStore.open(hub.url)
    assert after.verify() == []
    assert after.load() == total([1, 3])
    assert (list(after.commit.origins), list(after.models)) == (["rome"], ["alone"])
    assert traces_of_origin(after, "berlin") == ()
    files = stored(after)
    assert not any(berlin.id in path for path in files)
    hexadecimal = berlin.manifest.encode()
    assert not any(hexadecimal in content for content in files.values())
    # its store is named nowhere, neither are its shards
    name = hub.commit.origins["berlin"]
    assert not any(told.encode() in one for told in (name.id, name.url) for one in files.values())
    assert withdraw(after, "berlin").purge.versions == ()


def test_an_origin_is_found_in_versions_where_it_had_another_name(hub):
    store = drop_origin(hub, "berlin")
    other = MomentStore.open(hub.commit.origins["berlin"].url)
    store = pull(store, other, "bln").store
    # the name stands for the store that has it now
    assert withdraw(store, "rome").purge.versions == (4, 5, 6, 7, 8)
    assert traces_of_origin(store.latest(), "bln") != ()
    done = withdraw(store.latest(), "bln")
    assert done.purge.versions == (3, 9)
    assert traces_of_origin(done.store, "berlin") == traces_of_origin(done.store, "bln") == ()


def test_a_purged_origin_comes_back_only_if_asked_to(hub):
    other = MomentStore.open(hub.commit.origins["berlin"].url)
    store = withdraw(drop_origin(hub, "berlin"), "berlin").store
    for name in (None, "new"):
        with pytest.raises(InvalidInput, match="purged here; do not merge this store"):
            pull(store, other, name)
    assert rollback(store, store.version).commit.forgotten.has_withdrawn("berlin")
    found = pull(store, other, "berlin", include_forgotten=True)
    assert found.store.load() == total([1, 2, 3])
    # the permission lasts
    append(other, {"/more": 4})
    assert pull(found.store, other).documents == 12
    assert traces_of_origin(found.store, "berlin") != ()


def test_a_forgotten_shard_comes_with_an_origin_only_if_asked_to():
    store, other = purge(site({"s3://x/a": 1, "b": 2}), ["s3://x/a"]), site({"s3://x/a": 1})
    with pytest.raises(InvalidInput, match="was purged; .* permit them here by `merge --include"):
        pull(store, other)
    store = pull(store, other, include_forgotten=True).store
    assert store.load() == total([1, 2])
    assert not store.commit.forgotten.has_purged("s3://x/a")


def test_a_purge_of_an_origin_reaches_the_hub_above():
    europe = pull(pull(create(), site({"/a": 1}), "berlin").store, site({"/b": 2}), "rome").store
    world = pull(append(create(), {"own": 3}), europe, "europe").store
    berlin = MomentStore.open(europe.commit.origins["berlin"].url)
    world = world.save_model("all", model_of(1))
    with pytest.raises(InvalidInput, match="no version .* has an origin 'berlin'"):
        withdraw(world, "berlin")
    withdraw(europe.latest(), "berlin")
    found = pull(world, europe)
    assert (found.withdrawn, found.change, found.purged) == (1, -6, ())
    assert found.store.commit.message.endswith("6 documents fewer, 1 origin purged")
    assert found.store.load() == total([2, 3])
    assert list(found.store.models) == []
    assert [commit.version for commit in found.store.log()] == [4, 1, 0]
    with pytest.raises(InvalidInput, match="purged here"):
        pull(found.store, berlin)
    assert pull(found.store, europe).withdrawn == 0


def test_an_origin_that_another_one_holds_is_purged_there():
    berlin = site({"/a": 1})
    europe = pull(create(), berlin, "berlin").store
    world = drop_origin(pull(create(), berlin, "berlin").store, "berlin")
    world = pull(world, europe, "europe").store
    with pytest.raises(InvalidInput, match="are also in origin europe"):
        withdraw(world, "berlin")
    assert withdraw(world, "europe").store.commit.documents == 0


def test_an_origin_that_no_version_has_is_refused_by_name(hub):
    with pytest.raises(InvalidInput, match="'bern', and no origin .* its origins are berlin, rome"):
        withdraw(hub, "bern")


def test_a_purge_that_dies_is_finished_by_the_same_call(hub, monkeypatch):

    def fails(folder):
        raise StoreError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(withdrawal, "sweep", fails)
        with pytest.raises(Unfinished, match="run the same purge again"):
            withdraw(hub, "berlin")
    assert traces_of_origin(hub, "berlin") != ()
    after = withdraw(hub.latest(), "berlin").store
    assert traces_of_origin(after, "berlin") == ()
    assert after.load() == total([1, 3])


def test_a_copy_of_a_merge_that_died_is_erased(hub, monkeypatch):
    [berlin] = [part for part in hub.commit.segments if part.is_of("berlin")]
    place = f"segments/{'0' * 32}"
    for file in ("manifest.json", "shards.parquet"):
        hub.folder.write(f"{place}/{file}", hub.folder.read(f"segments/{berlin.id}/{file}"))
    hub.folder.write("report.txt", b"origin://berlin//data/a.txt: 12 documents")
    done = withdraw(hub, "berlin")
    assert done.erased == ("report.txt",)
    assert not any(path.startswith(place) for path in stored(done.store))


@pytest.mark.parametrize("first", ["copy", "purge"])
def test_a_merge_that_a_purge_overtakes_leaves_nothing(hub, monkeypatch, first):
    other = append(MomentStore.open(hub.commit.origins["berlin"].url), {"/more": 4})
    copy = pulling.copy_segment

    def overtaken(*arguments):
        if first == "purge":
            withdraw(hub, "berlin")
        copied = copy(*arguments)
        if first == "copy":
            withdraw(hub, "berlin")
        return copied

    monkeypatch.setattr(pulling, "copy_segment", overtaken)
    with pytest.raises(InvalidInput, match="purged here"):
        pull(hub, other)
    assert traces_of_origin(hub.latest(), "berlin") == ()


def test_a_refused_merge_leaves_no_copies(hub):
    hub = append(hub, {"s3://x": 5})
    before = stored(hub)
    with pytest.raises(InvalidInput, match="would count twice"):
        pull(hub, site({"s3://x": 5, "/other": 9}))
    assert stored(hub) == before


def test_a_shard_that_a_site_subtracted_is_gone_too():
    other = forget(site({"/a": 1, "/b": 2}), {"/b": 2})
    store = pull(create(), other, "berlin").store
    done = withdraw(store, "berlin")
    assert (done.documents, done.store.commit.segments) == (6, ())
