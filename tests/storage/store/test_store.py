"""MomentStore: every version stays readable, and no shard is lost or counted twice."""

import errno
import os
import pickle
import signal
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

import boto3
import fsspec
import numpy as np
import pytest
from forking import forking
from hypothesis import given, settings
from hypothesis import strategies as st
from s3_server import S3Server

from streaming_moments.errors import (
    BoundExceeded,
    ForeignStatistics,
    InvalidInput,
    ShardError,
    StoreError,
)
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.statistics import (
    MomentStatistics,
    merge_blocks,
    statistic_shapes,
)
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files import local_files
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.format import FormatError
from streaming_moments.storage.log.ledger import ShardRecord, ShardsAlreadyCounted
from streaming_moments.storage.segments.blocks import block_of
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.creation import require_absent
from streaming_moments.storage.store.store import MomentStore

SECRET = "planted-secret-77ab"
N_WORDS, CORE = 4, 3  # few row blocks, so few requests to S3
POLICY = TokenPolicy(min_length=3)
VOCABULARY = Vocabulary(tuple(f"word{i}" for i in range(N_WORDS)), CORE, POLICY.fingerprint)
BASIS = Basis(
    np.random.default_rng(3).integers(-127, 128, (CORE, 2)).astype(np.int8),
    N_WORDS,
    VOCABULARY.fingerprint,
)
FORM = ShardFormat("text")


@pytest.fixture(scope="module")
def s3():
    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", "key": "testing", "secret": SECRET}
    boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id="testing",
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    ).create_bucket(Bucket="bucket")
    yield options
    server.stop()


def test_a_bucket_that_is_not_there_is_no_missing_store(s3):
    absent = r"s3://absent/store: the bucket 'absent' does not exist; create it"
    with pytest.raises(StoreError, match=absent):
        MomentStore.open("s3://absent/store", storage_options=s3)
    with pytest.raises(StoreError, match="there is no store at s3://bucket/nowhere"):
        MomentStore.open("s3://bucket/nowhere", storage_options=s3)
    # what `create` asks of a storage first
    with pytest.raises(StoreError, match=absent):
        require_absent(Folder.at("s3://absent/store", s3))


@pytest.mark.parametrize("missing", [None, bool])
@pytest.mark.parametrize("shard", ["/*.txt", "/a.txt", "/texts/", "//a.txt", ""])
def test_shards_in_a_bucket_that_is_not_there_name_it(s3, shard, missing):
    with pytest.raises(ShardError, match="the bucket 'absent' does not exist; create it"):
        list_shards([f"s3://absent{shard}"], s3, missing=missing)
    if missing is not None:
        assert list_shards(["s3://bucket/*.txt"], s3, missing=missing) == []


@pytest.fixture(params=["local", "memory", "s3"])
def place(request, tmp_path):
    """URL and storage options for a new store."""
    if request.param == "local":
        return str(tmp_path / "store"), None
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}", {"planted": SECRET}
    return f"s3://bucket/{uuid.uuid4().hex}", request.getfixturevalue("s3")


def create(url, options=None, **choices):
    return MomentStore.create(
        url, VOCABULARY, POLICY, BASIS, FORM, storage_options=options, **choices
    )


@pytest.fixture
def store(tmp_path):
    return create(str(tmp_path / "store"))


def counted(seed=0, documents=6, basis=BASIS):
    counts = np.random.default_rng(seed).poisson(0.7, (documents, basis.n_words))
    return MomentStatistics.of(CountBatch.from_csr(counts, basis.vocabulary), basis)


def shard_of(statistics, url):
    histogram = statistics.length_histogram
    return ShardRecord(url, 10, "sha256:00", histogram.n_documents, histogram.C1, 2)


def append(store, statistics, url, message=""):
    return store.append_statistics(statistics, [shard_of(statistics, url)], message)


def unsealed(store, statistics):
    writer = store.new_segment()
    files = [
        record
        for index in range(store.row_blocks)
        for record in writer.write_block(block_of(statistics, writer.layout, index))
    ]
    return writer, files


def sealed(store, statistics, url):
    writer, files = unsealed(store, statistics)
    return writer.seal(statistics.length_histogram, [shard_of(statistics, url)], files)


def model_of(seed=0):
    rng = np.random.default_rng(seed)
    return TopicModel.from_topics(
        rng.dirichlet(np.ones(N_WORDS), 2).T, np.array([0.25, 0.75]), alpha0=0.1
    )


def same_model(one, other):
    mine, theirs = one.arrays(), other.arrays()
    return one.attributes() == other.attributes() and all(
        mine[name].tobytes() == theirs[name].tobytes() for name in mine
    )


def test_a_store_comes_back_as_it_was_left(place):
    url, options = place
    store = create(url, options, message="begin")
    assert store.version == 0
    assert store.load() == MomentStatistics.zero(BASIS)
    first, second = counted(0), counted(1)
    store = append(store, first, "a", "May")
    store = append(store, second, "b")
    store = store.save_model("may-2026", model_of())
    opened = MomentStore.open(url, storage_options=options)
    assert opened.commit == store.commit
    assert opened.load() == first + second
    assert opened.row_blocks == 4
    assert (opened.vocabulary, opened.policy, opened.basis) == (VOCABULARY, POLICY, BASIS)
    assert opened.form == FORM
    assert opened.length_histogram() == (first + second).length_histogram
    assert [shard.url for shard in opened.ledger()] == ["a", "b"]
    assert same_model(opened.load_model(), model_of())
    assert [commit.message for commit in opened.log()] == ["", "", "May", "begin"]
    assert [commit.operation for commit in opened.log()][::3] == ["model", "create"]
    assert MomentStore.open(url, 1, options).load() == first
    assert opened.at(1).latest().commit == store.commit
    assert opened.at(1).verify() == []


@settings(max_examples=8)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 11),
    st.integers(1, 3),
    st.booleans(),
    st.lists(st.integers(0, 2), min_size=1, max_size=3),
)
def test_any_numbers_come_back_bit_for_bit_however_cut(seed, n_words, columns, together, cuts):
    rng = np.random.default_rng(seed)
    core = int(rng.integers(min(columns, n_words), n_words + 1))
    columns = min(columns, core)
    vocabulary = Vocabulary(tuple(map(str, range(n_words))), core)
    matrix = np.eye(core, columns, dtype=np.int8)
    basis = Basis(matrix, n_words, vocabulary.fingerprint)
    store = MomentStore.create(
        f"memory://{uuid.uuid4().hex}", vocabulary, None, basis, FORM, codocuments=together
    )
    total = MomentStatistics.zero(basis, codocuments=together)
    for number, documents in enumerate(cuts):
        statistics = any_numbers(rng, basis, together, documents)
        total = total + statistics
        store = append(store, statistics, str(number))
    assert store.load() == total
    blocks = [store.load_block(index) for index in range(store.row_blocks)]
    assert merge_blocks(blocks) == total


def any_numbers(rng, basis, together, documents):
    shapes = statistic_shapes(basis, MomentStatistics.zero(basis).block, together, halves=True)
    arrays = {
        name: rng.integers(-(2**58), 2**58, shape, dtype=np.int64) for name, shape in shapes.items()
    }
    histogram = LengthHistogram.of(rng.integers(0, 9, documents))
    return replace(
        MomentStatistics.zero(basis, codocuments=together), length_histogram=histogram, **arrays
    )


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_any_partition_into_segments_is_the_same_state(seed, segment_of):
    rng = np.random.default_rng(seed)
    batch = rng.poisson(0.8, (6, N_WORDS))
    store = create(f"memory://{uuid.uuid4().hex}")
    for segment in range(3):
        members = [i for i in range(6) if segment_of[i] == segment]
        rows = CountBatch.from_csr(batch[members], VOCABULARY.fingerprint)
        store = append(store, MomentStatistics.of(rows, BASIS), f"{segment}")
    whole = CountBatch.from_csr(batch, VOCABULARY.fingerprint)
    assert store.load() == MomentStatistics.of(whole, BASIS)
    assert store.verify() == []


def test_a_file_that_is_gone_cut_or_too_many_is_told_on_opening(place):
    url, options = place
    store = append(append(create(url, options), counted(0), "a"), counted(1), "b")
    store = store.save_model("m", model_of())
    chunk = f"segments/{store.commit.segments[1].id}/pair_counts/c.1.0.0"
    array = f"models/m/{store.models['m'].id}/weights/c.0"
    for name, left, said in ((chunk, None, "is missing"), (array, 1, "has 1 bytes instead of")):
        whole = store.folder.read(name)
        if left is None:
            store.folder.delete([name])
        else:
            store.folder.write(name, whole[:left])
        with pytest.raises(StoreError, match=rf"{name} {said}.*; restore it from a copy"):
            MomentStore.open(url, storage_options=options)
        # a version without the file is as sound as before
        sound = MomentStore.open(url, 1, options)
        with pytest.raises(StoreError, match=said):
            sound.latest()
        store.folder.write(name, whole)
    store.folder.write(f"{chunk}.copy", b"")
    with pytest.raises(StoreError, match=r"copy is not in the manifest; move it out of the store"):
        MomentStore.open(url, storage_options=options)
    assert MomentStore.open(url, storage_options=options, whole=False).commit == store.commit
    store.folder.delete([f"{chunk}.copy"])
    assert MomentStore.open(url, storage_options=options).commit == store.commit


@pytest.fixture
def touched(monkeypatch):
    """Names of the files read and folders listed after the last clear."""
    names = []
    find_all, files = Folder.find_all, Folder.files

    def watched_find(folder, wanted, limits=None):
        names.extend(wanted)
        return find_all(folder, wanted, limits)

    def watched_files(folder, name):
        names.append(name)
        return files(folder, name)

    monkeypatch.setattr(Folder, "find_all", watched_find)
    monkeypatch.setattr(Folder, "files", watched_files)
    return names


def test_what_an_open_store_knows_is_not_checked_again(store, touched):
    store = append(append(store, counted(0), "a"), counted(1), "b").save_model("m", model_of())
    opened = MomentStore.open(store.url)
    old = {f"segments/{part.id}" for part in store.commit.segments}
    assert old <= set(touched)
    # a first append reads the ledger, which needs no listing
    grown = append(opened, counted(2), "c")
    touched.clear()
    grown = append(grown, counted(3), "d")
    grown.latest()
    assert not [name for name in touched for folder in (*old, "models") if name.startswith(folder)]
    touched.clear()
    new = {f"segments/{part.id}" for part in grown.commit.segments} - old
    opened.latest()
    assert new <= set(touched)
    assert not old & set(touched)
    touched.clear()
    pickle.loads(pickle.dumps(grown)).load_block(0)
    assert not [name for name in touched if "." not in name], "a worker listed a folder"


def test_a_second_creation_is_refused_with_the_remedy(place):
    url, options = place
    create(url, options)
    with pytest.raises(
        StoreError, match=r"already a store .*; count into that one, or create the new one at"
    ):
        create(url, options)


def test_what_does_not_belong_together_creates_nothing(tmp_path):
    url = str(tmp_path / "store")
    other = Basis(BASIS.matrix, N_WORDS, "0" * 64)
    with pytest.raises(ForeignStatistics, match="make the basis from a pilot of this vocabulary"):
        MomentStore.create(url, VOCABULARY, POLICY, other, FORM)
    with pytest.raises(ForeignStatistics, match="policy"):
        MomentStore.create(url, VOCABULARY, None, BASIS, FORM)
    assert not os.path.exists(url)


def test_a_failed_creation_is_no_store_and_hinders_none(tmp_path, monkeypatch):
    url = str(tmp_path / "store")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            create(url)
    with pytest.raises(StoreError, match="create the store again"):
        MomentStore.open(url)
    assert create(url).verify() == []


@pytest.mark.parametrize("there", [False, True])
def test_a_creation_on_a_full_disk_leaves_no_empty_folder(tmp_path, monkeypatch, there):
    place = tmp_path / "store"
    if there:
        place.mkdir()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local_files, "open", full, raising=False)
    with pytest.raises(StoreError, match=r"\(No space left on device\); free some"):
        create(str(place))
    assert place.exists() == there, "a folder of the user stays"


def test_no_store_says_how_to_make_one(place):
    url, options = place
    with pytest.raises(StoreError, match="there is no store at"):
        MomentStore.open(url, storage_options=options)


def test_versions_that_do_not_exist_are_named(store):
    for version in (-2, 1):
        with pytest.raises(StoreError, match=rf"no version {version}; it has 0 to 0"):
            store.at(version)
    assert store.at(-1).version == 0


def test_appends_from_stale_snapshots_are_rebased(place):
    url, options = place
    stale = create(url, options)
    first, second = counted(0), counted(1)
    ahead = append(stale, first, "a")
    both = append(stale, second, "b")
    assert both.version == 2
    assert both.load_block(1) == block_of(first + second, both.new_segment().layout, 1)
    assert [shard.url for shard in both.ledger()] == ["a", "b"]
    with pytest.raises(ShardsAlreadyCounted, match="1 shard is counted already: a;") as told:
        append(stale, first, "a")
    assert told.value.urls == ("a",)
    with pytest.raises(ShardsAlreadyCounted):
        append(ahead, first, "b")
    assert MomentStore.open(url, storage_options=options).version == 2


def test_eight_writers_lose_nothing(tmp_path):
    store = create(str(tmp_path / "store"))
    parts = [counted(seed) for seed in range(8)]
    refused = []

    def write(number):
        # every shard is given by two writers
        for shard in (number, (number + 1) % 8):
            snapshot = MomentStore.open(store.url)
            try:
                append(snapshot, parts[shard], str(shard))
            except ShardsAlreadyCounted as error:
                refused.extend(error.urls)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latest = store.latest()
    assert sorted(map(int, refused)) == list(range(8))
    assert (latest.version, len(latest.ledger())) == (8, 8)
    assert latest.load() == sum(parts[1:], parts[0])


def test_skipped_shards_alone_are_a_commit(store):
    empty = counted(documents=0)
    writer, files = unsealed(store, empty)
    nothing = writer.seal(empty.length_histogram, [], files)
    after = store.append(nothing, "bad night", [("s3://a", "not UTF-8")])
    assert after.commit.segments == ()
    assert after.latest().commit.skipped == (("s3://a", "not UTF-8"),)
    assert store.append(None, skipped=[("b", "gone")]).version == 2
    with pytest.raises(InvalidInput, match="neither counted nor skipped shards"):
        store.append(None)


def test_segments_that_do_not_fit_are_refused(store):
    segment = sealed(store, counted(), "a")
    with pytest.raises(ForeignStatistics, match="count the shards with the store's basis"):
        store.append(replace(segment, basis="0" * 64))
    large = replace(segment.reference, largest=2**61)
    grown = store.append(replace(segment, reference=large))
    other = sealed(store, counted(1), "b")
    with pytest.raises(BoundExceeded, match="above 2\\^62"):
        grown.append(replace(other, reference=replace(other.reference, largest=2**61)))
    assert store.latest().version == 1


def test_a_store_pickles_without_its_caches(store):
    store = append(store, counted(), "a")
    assert len(store.vocabulary.terms) == N_WORDS
    content = pickle.dumps(store)
    assert len(content) < 6000
    assert pickle.loads(content).load() == counted()


def seal_and_wait(url, told):
    store = MomentStore.open(url)
    segment = sealed(store, counted(1), "b")
    told.send("sealed")
    time.sleep(60)
    store.append(segment)


def test_a_writer_killed_before_its_commit_leaves_the_last_one(store):
    store = append(store, counted(0), "a")
    heard, told = forking().Pipe(duplex=False)
    writer = forking().Process(target=seal_and_wait, args=(store.url, told))
    writer.start()
    assert heard.poll(60)
    assert heard.recv() == "sealed"
    writer.kill()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    opened = MomentStore.open(store.url)
    assert opened.version == 1
    assert len(opened.folder.names("segments")) == 2
    assert opened.load() == counted(0)
    assert opened.verify() == []
    assert append(opened, counted(1), "b").load() == counted(0) + counted(1)


def test_models_never_change(store):
    store = append(store, counted(), "a")
    with pytest.raises(StoreError, match="no model at version 1; fit one"):
        store.load_model()
    first, second = store.save_model("b.1", model_of(0)), store.save_model("a", model_of(1))
    assert [*second.models] == ["b.1", "a"]
    assert [model.version for model in second.models.values()] == [1, 1]
    assert same_model(second.load_model(), model_of(1))
    assert same_model(second.load_model("b.1"), model_of(0))
    for stale in (store, first, second):
        with pytest.raises(StoreError, match=r"'b.1'; models never change, choose a new"):
            stale.save_model("b.1", model_of(2))
    assert same_model(store.latest().load_model("b.1"), model_of(0))
    with pytest.raises(StoreError, match="no model 'c'; it has b.1, a"):
        second.load_model("c")
    for name in ("../a", "", ".hidden", "a/b", "a b"):
        with pytest.raises(InvalidInput, match="cannot be named"):
            second.save_model(name, model_of())


def files_of(store):
    root = Path(store.url)
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_damage_to_any_file_is_found_by_verify(store):
    store = append(store, counted(), "a").save_model("m", model_of())
    paths = [path for path in files_of(store) if path.name not in ("probe", "reached.json")]
    assert len(paths) > 45
    for number, path in enumerate(paths):
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[(number * 7919) % len(whole)] ^= 1 << number % 8
        other = paths[number - 1].read_bytes()
        for content in (bytes(flipped), other):
            if content != whole:
                path.write_bytes(content)
                assert store.verify(), f"damage to {path} was not found"
        path.unlink()
        assert store.verify(), f"the loss of {path} was not found"
        path.write_bytes(whole)
    assert store.verify() == []
    (Path(store.url) / "segments" / store.commit.segments[0].id / "stray").write_text("")
    [problem] = store.verify()
    assert problem.endswith("stray is not in the manifest")


@pytest.mark.parametrize(
    ("name", "place", "problem"),
    [
        ("word_counts", (0,), "add up to"),
        ("pair_counts", (1, 2), "not symmetric inside the core"),
        ("triple_sketch", (2, 1), "not the sketch of a symmetric tensor"),
        ("pair_counts", (2, 2), "diagonal of pair_counts is not even"),
        ("even_pair_counts", (1, 2), "even_pair_counts is not symmetric"),
        ("even_pair_counts", (1, 1), "diagonal of even_pair_counts is not even"),
        ("even_pair_counts", (3, 0), "even_pair_counts has more than pair_counts"),
        ("codocuments", (1, 2), "codocuments is not symmetric"),
        ("codocuments", (2, 2), "diagonal of codocuments"),
        ("document_frequencies", (3,), "do not fit"),
    ],
)
def test_numbers_that_contradict_each_other_are_found(store, name, place, problem):
    statistics = counted()
    array = statistics.arrays()[name].copy()
    array[place] += 51
    wrong = append(store, replace(statistics, **{name: array}), "a")
    assert any(problem in line for line in wrong.verify())


def test_counts_of_words_that_never_occurred_are_found(store):
    counts = np.zeros((3, N_WORDS), dtype=int)
    counts[:, :3] = 2
    rows = CountBatch.from_csr(counts, VOCABULARY.fingerprint)
    statistics = MomentStatistics.of(rows, BASIS)
    pairs = statistics.pair_counts.copy()
    pairs[3, 0] = 1
    lines = append(store, replace(statistics, pair_counts=pairs), "a").verify()
    assert any("words that never occurred" in line for line in lines)


def test_padding_that_is_not_zero_is_found(store, monkeypatch):
    def padded(array, chunk):
        full = np.full(chunk, 7)
        full[0, : len(array)] = array
        return full

    monkeypatch.setattr("streaming_moments.storage.segments.segments._padded", padded)
    lines = append(store, counted(), "a").verify()
    assert lines
    assert all("the padding of codocuments is not zero" in line for line in lines)


def test_counts_below_zero_are_found(store):
    statistics = counted()
    pairs = statistics.pair_counts.copy()
    pairs[3, 0] = -1
    wrong = append(store, replace(statistics, pair_counts=pairs), "a")
    assert any("pair_counts has counts below zero" in line for line in wrong.verify())


def test_commits_that_contradict_the_rest_are_found(store):
    log = CommitLog(store.folder)
    one, two = (sealed(store, counted(seed), "a").reference for seed in range(2))
    twice = log.extend(store.commit, lambda head: head.successor("append", "", segments=(one, two)))
    assert store.latest().verify() == ["shard a is counted more than once"]
    more = replace(one, documents=one.documents + 1)
    log.extend(twice, lambda head: head.successor("append", "", segments=(more,)))
    [problem] = store.latest().verify()
    assert "in its ledger" in problem
    log.extend(
        store.latest().commit,
        lambda head: replace(head.successor("append", "", segments=()), parent="0" * 32),
    )
    assert store.latest().verify() == ["commit 3 does not follow commit 2"]


def test_segments_of_another_basis_are_found(store):
    other = Basis(np.eye(CORE, 2, dtype=np.int8), N_WORDS, VOCABULARY.fingerprint)
    layout = replace(store.new_segment().layout, foundation=CountsFoundation(other, True))
    writer = replace(store.new_segment(), layout=layout)
    statistics = counted(basis=other)
    files = [
        record
        for index in range(store.row_blocks)
        for record in writer.write_block(block_of(statistics, layout, index))
    ]
    segment = writer.seal(statistics.length_histogram, [shard_of(statistics, "a")], files)
    forged = store.append(replace(segment, basis=BASIS.fingerprint))
    [problem] = forged.verify()
    assert problem.endswith("has another basis or vocabulary")


def test_manifests_that_leave_the_store_are_refused(store):
    store = append(store, counted(), "a")
    [segment] = store.commit.segments
    path = Path(store.url) / "segments" / segment.id / "manifest.json"
    content = unseal(path.read_bytes(), "")
    content["files"]["../../../../etc/passwd"] = [1, "0" * 64]
    path.write_bytes(seal(content))
    with pytest.raises(StoreError, match="differs from the committed manifest"):
        store.load()
    assert store.verify()


def test_formats_of_later_versions_are_refused_by_name(store):
    path = Path(store.url) / "format.json"
    content = unseal(path.read_bytes(), "")
    path.write_bytes(seal({**content, "min_reader": 7}))
    with pytest.raises(FormatError, match=r"store format 7, and this version supports 6; upgrade"):
        MomentStore.open(store.url)
    path.write_bytes(seal({**content, "min_writer": 7, "of a later version": [1]}))
    reader = MomentStore.open(store.url)
    assert reader.format.unknown == {"of a later version": [1]}
    for snapshot in (reader, store):
        with pytest.raises(FormatError, match=r"needs a version of streaming-moments .* format 7"):
            append(snapshot, counted(), "a")
    for wrong in (b"{}", b"[]", b"\xff", b"", seal({"format": 1, "min_reader": 1})):
        path.write_bytes(wrong)
        with pytest.raises(StoreError, match=r"format\.json is"):
            MomentStore.open(store.url)


def test_unknown_keys_survive_an_append(store):
    path = Path(store.url) / "commits" / f"{0:020d}.json"
    path.write_bytes(seal({**unseal(path.read_bytes(), ""), "of a later version": {"x": 1}}))
    append(MomentStore.open(store.url), counted(), "a")
    after = unseal(store.folder.read(f"commits/{1:020d}.json"), "")
    assert after["of a later version"] == {"x": 1}


def test_storage_options_are_written_and_shown_nowhere(place, capsys):
    url, options = place
    store = append(create(url, options), counted(), "a").save_model("m", model_of())
    shown = [repr(store), str(store), repr(store.new_segment()), capsys.readouterr().out]
    if url.startswith("s3"):
        with pytest.raises(StoreError, match="bucket .* does not exist") as told:
            MomentStore.open("s3://no-such-bucket/x", storage_options=options)
        shown.append(str(told.value))
    assert not [text for text in shown if SECRET in text]
    fs, root = fsspec.core.url_to_fs(url, **(options or {}))
    paths = fs.find(root)
    assert len(paths) > 45
    assert not [path for path in paths if SECRET.encode() in fs.cat_file(path)]


def test_segments_travel(store):
    segment = pickle.loads(pickle.dumps(sealed(store, counted(), "a")))
    assert isinstance(segment, Segment)
    assert store.append(segment).load() == counted()


def test_relative_paths_mean_the_same_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = create("here")
    monkeypatch.chdir("/")
    assert store.latest().url == str(tmp_path / "here")
    assert Folder.at(f"file://{tmp_path}/here") == store.folder
