"""Stores of each format, kind and model that 0.2.0 wrote are read and written on as by itself."""

import hashlib
import io
from datetime import timedelta

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from frozen import (
    ARCHIVES,
    content_of,
    expected,
    files_in,
    place_of,
    plain,
    read_by,
    shards_at,
    store_told,
    sums_of,
    unpack,
    unpack_into,
    within,
    written_on,
)

from streaming_moments.models.registry import MODELS
from streaming_moments.pipelines.jobs import polish as polishing
from streaming_moments.pipelines.jobs.compact import compact_when_many
from streaming_moments.pipelines.jobs.polish import polish
from streaming_moments.pipelines.jobs.purge import look_for_purged, purge
from streaming_moments.pipelines.jobs.rebase import rebase
from streaming_moments.pipelines.jobs.refit import refit_by
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage.log.format import WRITES
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore

OTHERS = ("inbox", "estimators", "night", "night_vectors")
STORES = sorted(path.stem for path in ARCHIVES.glob("*.json") if path.stem not in OTHERS)
# what 0.2.0 wrote, never to be made again
WRITTEN = "2081c9ea2c3e5bb319345a55e279b9c4086ffe17630ef688dccae148753f27b3"


def opened(name):
    return MomentStore.open(f"{place_of(name)}/store")


# what was begun lies beside a history like that of counts_3
@pytest.fixture(params=[name for name in STORES if name != "begun"])
def name(request):
    unpack(request.param)
    return request.param


def test_the_archives_are_those_that_were_written():
    files = sorted(path for path in ARCHIVES.iterdir())
    lines = "".join(f"{one.name} {hashlib.sha256(one.read_bytes()).hexdigest()}\n" for one in files)
    assert len(files) == 2 * (len(STORES) + len(OTHERS))
    assert hashlib.sha256(lines.encode()).hexdigest() == WRITTEN


def test_there_is_one_of_each_format_kind_and_model():
    told = [expected(name) for name in STORES]
    assert {one["format"][0] for one in told} == {1, 2, 3, 4} <= set(range(1, WRITES + 1))
    assert {one["kind"] for one in told} <= set(KINDS)
    models = {model["model"] for one in told for model in one["models"].values()}
    assert models <= set(MODELS)
    # as many as 0.2.0 had
    assert (len({one["kind"] for one in told}), len(models)) == (5, 10)


@pytest.mark.parametrize("name", STORES)
def test_it_is_read_as_0_2_0_read_it(name):
    unpack(name)
    store, told = opened(name), expected(name)
    for asked_elsewhere in ("outputs", "written on"):
        del told[asked_elsewhere]
    assert list(within(told, plain(store_told(store)))) == []
    assert store.verify() == []
    assert content_of(name) == files_in(name)


def test_its_models_read_shards_as_they_did(name, embedded_run):
    store, files = opened(name), fsspec.filesystem("memory")
    for model, paths in expected(name)["outputs"].items():
        found = read_by(name, store, model, embedded_run, f"{place_of(name)}/again/{model}")
        for path, again in zip(paths, found, strict=True):
            old = pq.read_table(io.BytesIO(files_in(name)[path])).to_pydict()
            new = pq.read_table(io.BytesIO(files.cat_file(again))).to_pydict()
            assert_alike(old, new)


def assert_alike(old, new):
    """Columns of an earlier version are there, and hold the same but for rounding."""
    for column, values in old.items():
        pairs = zip(flattened(values), flattened(new[column]), strict=True)
        assert all(one == pytest.approx(other, abs=1e-6) for one, other in pairs), column


def flattened(values):
    for value in values:
        if isinstance(value, list):
            yield from flattened(value)
        else:
            yield value


def test_it_is_written_on_to_the_same_bits(name, embedded_run):
    """A shard more, one less, the sum of all, and back."""
    store = opened(name)
    assert list(within(expected(name)["written on"], written_on(name, store, embedded_run))) == []
    assert store.latest().verify() == []
    assert MomentStore.open(store.url, store.version).verify() == []
    after = content_of(name)
    for path, content in files_in(name).items():
        if path.startswith(("store/commits/0", "store/segments/", "store/models/")):
            assert after[path] == content, path


def test_its_segments_are_merged_and_it_stays_what_it_is(name, embedded_run):
    store = opened(name)
    later = update(store, shards_at(name, "later*"), embedded_run).store
    merged = compact_when_many(later, 2, embedded_run)
    assert merged.format == store.format
    assert (sums_of(merged), set(merged.ledger())) == (sums_of(later), set(later.ledger()))
    assert merged.verify() == []
    assert MomentStore.open(store.url, store.version).verify() == []
    after = content_of(name)
    for path, content in files_in(name).items():
        if path.startswith(("store/commits/0", "store/segments/", "store/models/", "store/format")):
            assert after[path] == content, path


def test_one_on_a_local_disk_is_written_on(tmp_path, embedded_run):
    unpack_into(tmp_path, "counts_3")
    store = MomentStore.open(str(tmp_path / "store"))
    told = expected("counts_3")["written on"]
    assert list(within(told, written_on("counts_3", store, embedded_run))) == []
    assert store.latest().verify() == []


def test_models_like_its_own_are_fitted_and_kept(name, embedded_run):
    store = opened(name)
    for called, model in expected(name)["models"].items():
        family, given = MODELS[model["model"]], FITS.get(model["model"], {})
        fitted = refit_by(store, family, family.Options(topics=2, **given), embedded_run)
        store = store.latest().save_model(f"{called}-anew", fitted)
        kept = store.load_any_model(f"{called}-anew")
        for part, array in fitted.parts()[0].items():
            np.testing.assert_array_equal(kept.parts()[0][part], array)
    assert store.verify() == []


FITS = {"independent": {"max_alpha0": 10**6}, "communities": {"refine": 0}, "hmm": {"refine": 5}}


@pytest.mark.parametrize("name", ["counts_1", "counts_2", "counts_ids", "tables_4", "vectors"])
def test_it_is_rebased(name, embedded_run):
    unpack(name)
    store = opened(name)
    done = rebase(store, embedded_run)
    assert (done.resumed, done.left_out) == (False, ())
    assert done.store.commit.documents == store.commit.documents
    assert done.store.verify() == []
    assert sums_of(MomentStore.open(store.url, store.version)) == sums_of(store)


@pytest.mark.parametrize("name", ["history", "sequences_named", "views", "edges"])
def test_shards_are_purged_and_versions_expire(name, embedded_run):
    unpack(name)
    store = opened(name)
    first = min(one.url for one in store.ledger())
    after = purge(store, [first], embedded_run).store
    assert look_for_purged(after, [first]).traces == ()
    less, dropped = expire(after, keep=1, older_than=timedelta(0), models=True)
    assert less.verify() == []
    assert less.log()[0].operation == "expire"
    assert 0 in dropped.versions
    assert less.commit.shards == store.commit.shards - 1


def test_a_polishing_that_was_cut_off_goes_on_where_it_was(embedded_run, monkeypatch):
    unpack("begun")
    store, read = opened("begun"), []
    real = polishing._of_shard
    monkeypatch.setattr(
        polishing, "_of_shard", lambda *given: (read.append(given[0].url), real(*given))[1]
    )
    model = store.load_model("topics")
    done = polish(store, model, embedded_run, passes=2, parent="topics")
    # all groups of both passes were kept, but for the sum of the second
    assert read == []
    done.work.delete()
    anew = polish(store, model, embedded_run, passes=2, parent="topics")
    assert len(read) == 2 * store.commit.shards
    assert done.model.topics.tobytes() == anew.model.topics.tobytes()
    assert done.note == anew.note


def test_a_rebase_that_was_cut_off_goes_on_where_it_was(embedded_run):
    unpack("begun")
    store = opened("begun")
    aside = {part.id for part in store.commit.staged.segments}
    done = rebase(store, embedded_run)
    assert done.resumed
    assert {part.id for part in done.store.commit.segments} == aside
    assert done.store.verify() == []


def test_what_processes_left_that_died_is_in_nobodys_way():
    unpack("begun")
    store = opened("begun")
    # a lock, which has expired
    Lock.acquire(store.folder, timedelta(minutes=1)).release()
    garbage = find_garbage(store.folder, timedelta(0))
    assert [one.path.partition("/")[0] for one in garbage] == ["polishing", "segments"]
    collect(store.folder, garbage)
    assert find_garbage(store.folder, timedelta(0)) == []
    assert store.verify() == []
