"""Pulls: a hub is bit for bit one store that counted the shards of all sites."""

import dataclasses
import os
import shutil
import threading
import time
import uuid
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from mortal_folder import Sleeping

from streaming_moments.errors import ForeignStatistics, InvalidInput, StoreError
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_json import commit_from_json, commit_to_json
from streaming_moments.storage.merging.counted_once import ShardsRefused
from streaming_moments.storage.merging.pulling import drop_origin, pull, pull_together
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import difference, rollback
from streaming_moments.storage.operations.lineages import stage
from streaming_moments.storage.operations.staleness import forgotten_since, staleness
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    BASIS,
    NEW,
    VOCABULARY,
    WORDS,
    append,
    compact,
    create,
    forget,
    model_of,
    purge,
    record,
    replace,
    segment,
    sum_beside,
    total,
)

FORM = ShardFormat()


def site(shards, url=None):
    return append(create(url), shards)


def seeds(store):
    """Seeds of the shards of a store, sorted."""
    return sorted(int(one.fingerprint.partition(":")[2]) for one in store.ledger())


def holds(store, wanted):
    """Whether a store holds exactly the shards of some seeds, and every check agrees."""
    store = MomentStore.open(store.url)
    assert store.verify() == []
    assert seeds(store) == sorted(wanted)
    return store.load() == total(wanted)


def test_a_pull_adds_what_a_site_holds():
    hub = site({"own": 1})
    found = pull(hub, site({"a": 2, "b": 3}), "emea", message="first")
    assert (found.name, found.documents, found.change, found.added) == ("emea", 12, 12, 1)
    assert holds(found.store, [1, 2, 3])
    assert found.store.commit.operation == "merge"
    assert found.store.commit.message == "first"
    assert found.store.commit.origins["emea"].version == 1


def test_a_writer_that_knows_no_origins_is_kept_out():
    urls = (f"memory://{uuid.uuid4().hex}" for _ in range(2))
    hub, other = (
        MomentStore.create(url, VOCABULARY, None, BASIS, FORM, halves=False) for url in urls
    )
    assert hub.format.min_writer < 5
    pull(hub, other)
    assert MomentStore.open(hub.url).format.min_writer == 5


def test_the_same_version_again_commits_nothing():
    hub, other = create(), site({"a": 2})
    first = pull(hub, other)
    again = pull(hub, other)
    assert again.store.version == first.store.version == 1
    assert (again.added, again.removed, again.change) == (0, 0, 0)


def test_later_only_what_changed_is_copied(monkeypatch):
    hub, other = create(), append(site({"a": 2, "b": 3}), {"c": 4})
    pull(hub, other)
    other = replace(append(other, {"d": 5}), {"c": 4}, {"c": 6})
    found = pull(hub, other)
    # the segments of d and of the new c, and the one that subtracts the old c
    assert (found.added, found.removed, found.change) == (3, 0, 6)
    assert holds(found.store, [2, 3, 5, 6])
    found = pull(hub, compact(other))
    assert (found.added, found.removed, found.change) == (1, 5, 0)
    assert holds(found.store, [2, 3, 5, 6])
    found = pull(hub, forget(other.latest(), {"a": 2}))
    assert (found.added, found.removed, found.change) == (1, 0, -6)
    assert holds(found.store, [3, 5, 6])


def test_a_commit_of_a_model_there_changes_only_the_version_here():
    hub, other = create(), site({"a": 2})
    pull(hub, other)
    other.save_model("may", model_of(1))
    found = pull(hub, other)
    assert (found.added, found.removed, found.store.version) == (0, 0, 2)
    assert found.store.commit.origins[found.name].version == 2


def test_sites_may_give_other_documents_the_same_name():
    hub = pull(site({"/data/a": 1}), site({"/data/a": 2}), "emea").store
    hub = pull(hub, site({"/data/a": 3}), "apac").store
    assert holds(hub, [1, 2, 3])
    names = {"/data/a", "origin://emea//data/a", "origin://apac//data/a"}
    assert {one.url for one in hub.ledger()} == names


@pytest.mark.parametrize("unique", [False, True])
def test_a_name_that_all_sites_share_counts_once(unique):
    hub = pull(create(), site({"s3://data/a": 1}), "emea").store
    for there in ({"s3://data/a": 2}, {"s3://data/": 2}):
        with pytest.raises(InvalidInput, match="would count twice: s3://data/.* by origin emea"):
            pull(hub, site(there), "apac", unique=unique)
    assert holds(hub, [1])


def marked(store, shards):
    """Count shards whose fingerprints tell their content."""
    records = [
        type(one)(**{**vars(one), "fingerprint": f"sha256:{seed:064x}"})
        for url, seed in shards.items()
        for one in [record(url, seed)]
    ]
    return store.append(store.write_segment(total(shards.values()), records))


def test_a_content_that_two_sites_count_is_refused_or_counted_once():
    one, two = marked(create(), {"/a": 1}), marked(marked(create(), {"/b": 1}), {"/c": 2})
    hub = pull(create(), one, "emea").store
    said = r"origin://apac//b is counted as origin://emea//a by origin emea; .* --unique"
    with pytest.raises(InvalidInput, match=said):
        pull(hub, two, "apac")
    found = pull(hub, two, "apac", unique=True)
    assert found.left_out == ("origin://apac//b",)
    assert found.store.load() == total([1, 2])
    # once it is no more in the other one, it counts here
    pull(hub, forget_marked(one, {"/a": 1}))
    assert pull(hub, two).store.load() == total([1, 2])
    mixed = marked(create(), {"/d": 1, "/e": 3})
    with pytest.raises(InvalidInput, match="leave out segments without other shards"):
        pull(hub, mixed, "mixed", unique=True)


@dataclasses.dataclass(frozen=True)
class Listing(Folder):
    """A folder that lists what is read."""

    found: list = dataclasses.field(default_factory=list, compare=False)

    def find_all(self, names, limits=None):
        self.found.extend(names)
        return super().find_all(names, limits)


@pytest.mark.parametrize("unique", [False, True])
def test_only_new_segments_are_read_there(unique):
    other = append(site({"a": 1}), {"b": 2})
    hub = pull(create(), other, "emea").store
    other = append(other, {"c": 3})
    folder = Listing(other.url)
    pull(hub, dataclasses.replace(other, folder=folder), unique=unique)
    read = {name.split("/")[1] for name in folder.found if name.startswith("segments/")}
    assert read == {other.commit.segments[-1].id}


def forget_marked(store, shards):
    records = list(store.ledger())
    removed = store.write_segment(total(shards.values()), records)
    return commit_recount(store, Recount("forget", "", removed=(removed,)))


def test_a_model_of_a_hub_is_behind_by_what_its_origins_have_changed():
    other = append(site({"a": 2, "b": 3}), {"c": 4})
    hub = pull(create(), other).store.save_model("may", model_of(1))
    hub = pull(hub, compact(append(other, {"d": 5}))).store
    assert (staleness(hub, "may").counted, forgotten_since(hub, "may")) == (6, 0)
    hub = pull(hub, forget(other.latest(), {"a": 2})).store
    found = staleness(hub, "may")
    assert (found.counted, found.forgotten, forgotten_since(hub, "may")) == (6, 6, 6)


def test_two_sites_that_swap_a_shard_are_pulled_in_turn():
    one, two = site({"s3://x/a": 1}), create()
    hub = pull(pull(create(), one, "one").store, two, "two").store
    one, two = forget(one, {"s3://x/a": 1}), append(two, {"s3://x/a": 1})
    with pytest.raises(InvalidInput, match="by origin one"):
        pull(hub, two)
    pull(hub, one)
    assert holds(pull(hub, two).store, [1])


def test_stores_that_are_pulled_together_share_a_commit():
    hub, one, two = site({"own": 1}), site({"s3://x/a": 2}), site({"s3://x/b": 3})
    found = pull_together(hub, [one, two])
    assert [part.change for part in found] == [6, 6]
    names = [part.name for part in found]
    hub = found[0].store
    assert hub.version == 2
    said = "; ".join(f"{name}: version 1, 6 documents more" for name in names)
    assert hub.commit.message == f"merge {said}"
    assert holds(hub, [1, 2, 3])
    assert pull_together(hub, [two, one])[0].store.version == 2
    with pytest.raises(InvalidInput, match="are the same store, or copies of it; give only one"):
        pull_together(hub, [one, one])
    # both count it from now on, and the error names both
    three = site({"s3://x/c": 5})
    with pytest.raises(ShardsRefused) as caught:
        pull_together(hub, [append(one, {"s3://x/c": 5}), append(two, {"s3://x/c": 5}), three])
    assert caught.value.stores == (one.url, two.url, three.url)
    assert hub.latest().version == 2


def test_shards_of_both_are_purged_in_one_commit(tmp_path):
    sites = [append(site({f"/{n}": n}, tmp_path / f"{n}"), {f"/x/{n}": n + 3}) for n in range(2)]
    pull_together(create(tmp_path / "hub"), sites)
    for number, one in enumerate(sites):
        purge(one, {f"/x/{number}"})
    hub = MomentStore.open(str(tmp_path / "hub"))
    found = pull_together(hub, sites)
    assert found[0].purged == found[1].purged == ("origin://0//x/0", "origin://1//x/1")
    assert holds(hub, [0, 1])
    told = b"".join(path.read_bytes() for path in (tmp_path / "hub").rglob("*") if path.is_file())
    assert b"/x/" not in told


def test_what_an_origin_counts_changes_only_there():
    hub = pull(site({"own": 1}), site({"s3://x/a": 2}), "emea").store
    for change in (
        lambda: forget(hub, {"s3://x/a": 2}),
        lambda: replace(hub, {"s3://x/a": 2}, {"s3://x/a": 3}),
    ):
        with pytest.raises(InvalidInput, match="is counted by origin emea; .*forget --origin"):
            change()
    with pytest.raises(InvalidInput, match=r"holds documents of its origins emea.*create --like"):
        stage(hub, WORDS, None, NEW, {})
    assert holds(forget(hub, {"own": 1}), [2])


def test_all_of_an_origin_can_be_removed_and_pulled_again():
    other = site({"a": 2})
    hub = pull(site({"own": 1}), other, "emea").store
    hub = drop_origin(hub, "emea")
    assert holds(hub, [1])
    assert hub.commit.origins == {}
    with pytest.raises(InvalidInput, match="has no origin 'emea'; it has none"):
        drop_origin(hub, "emea")
    assert holds(pull(hub, other, "europe").store, [1, 2])


def test_rollback_brings_back_the_origins_of_the_version():
    other = site({"a": 2})
    hub = pull(site({"own": 1}), other, "emea").store
    pull(hub, append(other, {"b": 3}))
    back = rollback(hub.latest(), 2)
    assert back.commit.origins["emea"].version == 1
    assert holds(back, [1, 2])
    assert holds(pull(back, other).store, [1, 2, 3])
    assert holds(rollback(back.latest(), 1), [1])


def test_compaction_and_sums_leave_origins_as_they_are():
    hub = append(append(create(), {"x": 1}), {"y": 2})
    hub = pull(hub, append(site({"a": 3}), {"b": 4}), "emea").store
    hub = pull(hub, append(site({"a": 5}), {"b": 6}), "apac").store
    hub = sum_beside(hub, hub.commit.segments)
    assert [part.origin for part in hub.commit.segments].count(None) == 2
    assert len(hub.parts) == 1
    assert holds(hub, range(1, 7))
    found = difference(hub, 2, -1)
    assert (found.documents, len(found.added)) == (24, 4)


def test_words_that_were_added_follow_or_are_counted_as_before():
    hub, other = create(), site({"a": 2})
    pull(hub, other)
    # added there
    other = append_grown(grow(other, ["moon"]), {"b": 3})
    found = pull(hub, other)
    assert found.store.vocabulary.terms == (*VOCABULARY.terms, "moon")
    assert [part.words for part in found.store.commit.segments] == [4, None]
    assert MomentStore.open(hub.url).verify() == []
    # added here
    again = create()
    pull(again, site({"c": 4}), "one")
    grow(again.latest(), ["tide"])
    late = pull(again, site({"d": 5}), "two").store
    assert [part.words for part in late.commit.segments] == [4, 4]
    with pytest.raises(ForeignStatistics, match="word 5 is 'moon' there and 'tide' here"):
        pull(late, other, "three")


def test_words_that_were_added_in_other_steps_are_refused():
    other = grow(grow(create(), ["moon", "tide"]), ["reef"])
    with pytest.raises(ForeignStatistics, match="it added the same words in other steps"):
        pull(grow(grow(create(), ["moon"]), ["tide", "reef"]), other)
    # one has the steps of the other, but documents were counted between these
    less = append_grown(grow(create(), ["moon"]), {"a": 1})
    with pytest.raises(ForeignStatistics, match="documents with 5 words, but this store never"):
        pull(other, grow(grow(less, ["tide"]), ["reef"]))
    assert other.latest().version == 2


def append_grown(store, shards):
    """Count shards of the first words after others were added."""
    [(url, seed)] = shards.items()
    counts = np.random.default_rng(seed).poisson(0.7, (6, 5))
    batch = CountBatch.from_csr(counts, store.vocabulary.fingerprint)
    grown = MomentStatistics.of(batch, store.basis)
    histogram = grown.length_histogram
    one = type(record(url, seed))(
        url, 10, f"sha256:{seed}", histogram.n_documents, histogram.n_tokens, 2
    )
    return store.append_statistics(grown, [one])


def test_a_purge_there_reaches_every_version_here(tmp_path):
    other = append(site({"/x/a": 2}, tmp_path / "site"), {"/x/b": 3})
    hub = site({"own": 1}, tmp_path / "hub")
    pull(hub, other, "emea")
    held = hub.latest()
    held.save_model("may", model_of(1))
    purge(other, {"/x/a"})
    found = pull(hub, other)
    assert found.purged == ("origin://emea//x/a",)
    assert holds(found.store, [1, 3])
    assert [commit.version for commit in found.store.log()] == [4, 1, 0]
    assert found.store.models == {}
    told = b"".join(path.read_bytes() for path in (tmp_path / "hub").rglob("*") if path.is_file())
    assert b"/x/a" not in told
    # it is refused from now on, whoever counts it
    with pytest.raises(InvalidInput, match="was purged; forget or purge them there"):
        pull(hub, other.latest().append(segment(other.latest(), {"/x/a": 9}), again=True))
    assert pull(found.store, site({"c": 4}), "apac").purged == ()


def test_what_was_purged_or_forgotten_here_is_refused():
    hub = create()
    gone = Recount("forget", "", removed=(segment(hub, {"s3://x/a": 1}),), lists=True)
    hub = commit_recount(append(hub, {"s3://x/a": 1}), gone)
    with pytest.raises(InvalidInput, match="s3://x/a was forgotten; .*merge --include-forgotten"):
        pull(hub, site({"s3://x/a": 1}), "emea")


def test_old_versions_expire_and_what_they_alone_held(tmp_path):
    other = site({"a": 2}, tmp_path / "site")
    hub = pull(create(tmp_path / "hub"), other, "emea").store
    pull(hub, compact(append(other, {"b": 3})))
    hub, _ = expire(hub.latest(), 1, timedelta(0))
    assert holds(hub, [2, 3])
    assert len(list((tmp_path / "hub" / "segments").iterdir())) == 1


def test_a_hub_of_hubs_knows_whose_documents_it_holds():
    berlin, rome = site({"/a": 1}), site({"/a": 2})
    europe = pull(pull(create(), berlin, "berlin").store, rome, "rome").store
    world = pull(create(), europe, "europe").store
    assert holds(world, [1, 2])
    names = {"origin://europe/berlin//a", "origin://europe/rome//a"}
    assert {one.url for one in world.ledger()} == names
    with pytest.raises(InvalidInput, match="include the documents of the same store"):
        pull(world, rome, "rome")
    purge(rome, {"/a"})
    pull(europe, rome)
    found = pull(world, europe)
    assert found.purged == ("origin://europe/rome//a",)
    assert holds(found.store, [1])
    with pytest.raises(InvalidInput, match="includes the documents of .* which would count twice"):
        pull(berlin, world, "world")


def segment_files(store):
    """Files of all segments of a local store but their manifests."""
    files = Path(store.url, "segments").rglob("*")
    return [file for file in files if file.is_file() and file.name != "manifest.json"]


def linked_hub(tmp_path):
    """A hub and a site of long ago, after a merge on one disk."""
    here = append(create(tmp_path / "hub"), {"own": 1})
    there = append(create(tmp_path / "site"), {"a": 2})
    then = time.time() - 30 * 86400
    for file in segment_files(there):
        os.utime(file, (then, then))
    return pull(here, there).store, there


@pytest.mark.skipif(os.name != "posix", reason="links are for POSIX only")
def test_on_one_disk_a_segment_is_held_once_and_each_store_deletes_its_own(tmp_path):
    hub, there = linked_hub(tmp_path)
    held = {file.stat().st_ino for file in segment_files(hub)}
    assert {file.stat().st_ino for file in segment_files(there)} < held
    # the site drops all that it held
    there, _ = expire(append(forget(there, {"a": 2}), {"b": 3}), 1, timedelta(0))
    assert holds(hub, [1, 2])
    hub, _ = expire(pull(hub, there).store, 1, timedelta(0))
    assert holds(hub, [1, 3])
    hub, _ = expire(drop_origin(hub, "site"), 1, timedelta(0))
    assert holds(hub, [1])
    assert holds(there, [3])


@pytest.mark.skipif(os.name != "posix", reason="links are for POSIX only")
def test_a_damaged_segment_gets_no_name_in_the_hub(tmp_path):
    here, there = create(tmp_path / "hub"), append(create(tmp_path / "site"), {"a": 2})
    file = max(segment_files(there), key=lambda file: file.stat().st_size)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(StoreError, match=f"{file} is damaged"):
        pull(here, there)
    assert file.stat().st_nlink == 1


def test_bad_input(tmp_path):
    hub, other = create(tmp_path / "hub"), site({"a": 1}, tmp_path / "site")
    for name, said in (("-x", "do not begin with -"), ("a/b", "an origin cannot be named")):
        with pytest.raises(InvalidInput, match=said):
            pull(hub, other, name)
    with pytest.raises(InvalidInput, match="itself, or a copy of it"):
        pull(hub, hub)
    with pytest.raises(InvalidInput, match="has 6 documents, fewer than 7"):
        pull(hub, other, least_documents=7)
    pull(hub, other, least_documents=6)
    assert [*hub.latest().commit.origins] == ["site"]
    with pytest.raises(InvalidInput, match="is origin site of .*, not emea"):
        pull(hub, other, "emea")
    with pytest.raises(InvalidInput, match="is another store, at"):
        pull(hub, site({"b": 2}), "site")
    foreign = MomentStore.create(
        f"memory://{tmp_path.name}", WORDS, None, NEW, other.form, halves=False
    )
    with pytest.raises(ForeignStatistics, match=r"4 core words.*; word 1 is 'tax' there and 'law'"):
        pull(hub, foreign)
    assert hub.latest().version == 1


def test_an_origin_that_was_restored_from_an_older_copy_is_refused(tmp_path):
    hub, other = create(), site({"a": 1}, tmp_path / "site")
    shutil.copytree(tmp_path / "site", tmp_path / "copy")
    append(other, {"b": 2})
    pull(hub, other)
    shutil.rmtree(tmp_path / "site")
    shutil.move(tmp_path / "copy", tmp_path / "site")
    with pytest.raises(InvalidInput, match="is at version 1, but its version 2 was already merged"):
        pull(hub, MomentStore.open(other.url))


def test_two_copies_of_one_store_do_not_replace_each_other(tmp_path):
    hub, one = create(), site({"a": 1}, tmp_path / "berlin")
    shutil.copytree(tmp_path / "berlin", tmp_path / "rome")
    two = append(append(MomentStore.open(str(tmp_path / "rome")), {"c": 3}), {"d": 4})
    one = append(one, {"b": 2})
    found = pull(hub, one)
    with pytest.raises(InvalidInput, match="are two stores with the same first commit"):
        pull(hub, two)
    # the pulled commit is known after its version expired
    one, _ = expire(append(compact(one), {"e": 5}), 1, timedelta(0))
    assert holds(pull(hub, one).store, [1, 2, 5])
    content = commit_to_json(found.store.commit)
    del content["origins"]["berlin"]["transaction"]
    assert commit_from_json(content, "commit").origins["berlin"].transaction == ""


def test_stores_of_one_last_name_have_the_last_two_as_names(tmp_path):
    hub = create()
    for number, name in enumerate(("berlin", "rome")):
        pull(hub, site({"/a": number + 1}, tmp_path / name / "store"))
    assert [*hub.latest().commit.origins] == ["store", "rome-store"]
    assert holds(hub, [1, 2])


def test_a_purge_there_reaches_versions_that_had_it_under_another_name(tmp_path):
    other = append(site({"/x/a": 2}, tmp_path / "site"), {"/x/b": 3})
    hub = pull(site({"own": 1}, tmp_path / "hub"), other, "emea").store
    hub = drop_origin(hub, "emea")
    pull(hub, other, "europe")
    purge(other, {"/x/a"})
    found = pull(hub, other, least_documents=100)
    assert found.purged == ("origin://emea//x/a", "origin://europe//x/a")
    assert holds(found.store, [1, 3])
    told = b"".join(path.read_bytes() for path in (tmp_path / "hub").rglob("*") if path.is_file())
    assert b"/x/a" not in told


def test_a_small_new_segment_is_refused_until_it_is_compacted():
    hub, other = create(), append(site({"a": 1}), {"b": 2})
    with pytest.raises(InvalidInput, match="has 6 documents, fewer than 12.*compact that store"):
        pull(hub, other, least_documents=12)
    other = compact(other)
    pull(hub, other, least_documents=12)
    # segments that are here are not new
    assert pull(hub, other, least_documents=13).change == 0
    with pytest.raises(InvalidInput, match="has 6 documents, fewer than 12"):
        pull(hub, forget(other, {"a": 1}), least_documents=12)
    assert holds(hub, [1, 2])


def test_an_origin_of_an_origin_may_get_another_name():
    berlin = site({"/a": 1})
    europe = pull(create(), berlin, "berlin").store
    world = pull(create(), europe, "europe").store
    pull(drop_origin(europe, "berlin"), berlin, "be")
    found = pull(world, europe)
    assert holds(found.store, [1])
    assert [one.url for one in found.store.ledger()] == ["origin://europe/be//a"]


def test_of_two_pulls_at_once_of_a_store_with_new_words_each_succeeds():
    hub, other = create(), append_grown(grow(site({"a": 1}), ["moon"]), {"b": 3})
    done = []
    pulls = [threading.Thread(target=lambda: done.append(pull(hub, other))) for _ in range(4)]
    for one in pulls:
        one.start()
    for one in pulls:
        one.join()
    assert [found.documents for found in done] == [12] * 4
    assert hub.latest().version == 2
    assert MomentStore.open(hub.url).verify() == []


def test_of_two_pulls_at_once_each_counts_once():
    hub, other = create(), site({"a": 1})
    third = site({"b": 2})
    pulls = [threading.Thread(target=pull, args=(hub, one)) for one in (other, third) * 4]
    for one in pulls:
        one.start()
    for one in pulls:
        one.join()
    assert holds(hub, [1, 2])
    assert hub.latest().version == 2


@pytest.mark.parametrize("sleeps_at", range(2, 30, 4))
def test_a_site_may_compact_and_expire_meanwhile(tmp_path, sleeps_at):
    other = append(site({"a": 1}, tmp_path / "site"), {"b": 2})

    def meanwhile():
        expire(compact(append(MomentStore.open(other.url), {"c": 3})), 1, timedelta(0))

    folder = Sleeping(other.url, None, sleeps_at, meanwhile)
    found = pull(create(tmp_path / "hub"), dataclasses.replace(other, folder=folder))
    # the version before or after
    assert holds(found.store, [1, 2] if found.origin.version == 2 else [1, 2, 3])
