"""The store of format 1, as it was written once, is read and written on by every later version."""

import hashlib
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from forgery import reforged, resealed
from written_stores import V1, content_of, counted, format_of

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.jobs.rebase import pilot_of
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.sealed import unseal
from streaming_moments.storage.log import format as format_module
from streaming_moments.storage.log.format import FormatError
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.compaction import commit_compaction, seal_sum, write_sum
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.operations.lineages import give_up, stage
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

WORD_COUNTS = {
    0: [0, 0, 0],
    1: [2, 4, 1],
    2: [7, 7, 4],
    3: [7, 7, 4],
    4: [11, 9, 5],
    5: [9, 5, 4],
    6: [9, 5, 4],
    7: [9, 5, 4],
}
LATEST = {
    "word_counts": [9, 5, 4],
    "document_frequencies": [4, 3, 3],
    "pair_counts": [[18, 7], [7, 4], [12, 3]],
    "triple_sketch": [
        [1263821, 542672, 448656],
        [172123, 135884, 394814],
        [591114, 228841, 176125],
    ],
    "codocuments": [[4, 2], [2, 3]],
}


@pytest.fixture
def copy(tmp_path):
    # bytes alone, as a clone keeps neither times nor modes
    for path, content in content_of(V1).items():
        (tmp_path / "v1" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "v1" / path).write_bytes(content)
    return tmp_path / "v1"


def test_the_files_are_those_that_were_written():
    listed = sorted(content_of(V1).items())
    lines = "".join(f"{path} {hashlib.sha256(data).hexdigest()}\n" for path, data in listed)
    assert len(listed) == 156
    assert hashlib.sha256(lines.encode()).hexdigest() == (
        "4ab2b74778087995d5dd693b8fe01a2d3776410fffc2d43e1894e84a6ccabe27"
    )


def test_every_version_of_format_1_is_read_as_it_was_written():
    before = content_of(V1)
    store = MomentStore.open(str(V1))
    assert store.verify() == []
    assert store.version == 7
    for version, words in WORD_COUNTS.items():
        opened = MomentStore.open(str(V1), version)
        assert opened.load().word_counts.tolist() == words
        assert opened.verify() == []
    statistics = store.load()
    assert {name: array.tolist() for name, array in statistics.arrays().items()} == LATEST
    assert statistics.length_histogram.lengths.tolist() == [1, 2, 3, 6]
    assert statistics.length_histogram.documents.tolist() == [1, 1, 1, 2]
    assert store.length_histogram() == statistics.length_histogram
    assert [part.sign for part in store.commit.segments] == [1, 1, -1]
    assert content_of(V1) == before


def test_what_format_1_says_of_words_and_basis_is_read():
    store = MomentStore.open(str(V1))
    assert store.vocabulary.terms == ("law", "sea", "ship")
    assert (store.vocabulary.core, store.vocabulary.token_ids) == (2, None)
    assert store.policy == TokenPolicy(stop_words=("and", "the"), min_length=3)
    assert store.form == ShardFormat("text")
    assert store.basis.matrix.tolist() == [[127, 31], [-58, 127]]
    assert store.basis.fingerprint == (
        "872203ef519f3c1ba1d72bfd69721139bbb021a9d89e99aa382e9625ceb81833"
    )
    assert store.vocabulary.fingerprint == (
        "761a3e2456b0092c46660b71b76122d72065ce760462cfaeb1edcef0495ec848"
    )
    assert (store.row_blocks, store.codocuments, store.format.single_writer) == (3, True, False)


def test_ledger_and_log_of_format_1_are_read():
    store = MomentStore.open(str(V1))
    assert list(store.ledger()) == [
        ShardRecord("s3://corpus/b.txt", 30, "etag:b", 3, 11, 3),
        ShardRecord("s3://corpus/c.txt", 20, "sha256:" + "c" * 64, 2, 7, 2),
    ]
    log = store.log()
    assert [(c.version, c.operation, c.message, c.documents, c.tokens, c.shards) for c in log] == [
        (7, "tag", "tag live: first", 5, 18, 2),
        (6, "model", "by hand", 5, 18, 2),
        (5, "forget", "without a", 5, 18, 2),
        (4, "append", "third", 7, 25, 3),
        (3, "compact", "sum of two", 5, 18, 2),
        (2, "append", "second", 5, 18, 2),
        (1, "append", "first", 2, 7, 1),
        (0, "create", "v1", 0, 0, 0),
    ]
    assert log[3].skipped == (("s3://corpus/d.txt", "line 1 is no text"),)
    assert log[0].time == "2026-11-21T14:49:52.048+00:00"


def test_models_and_tags_of_format_1_are_read(capsys):
    store = MomentStore.open(str(V1))
    assert [*store.models] == ["first"]
    assert (store.models["first"].version, dict(store.commit.tags)) == (5, {"live": "first"})
    model = store.load_model("live")
    assert model.topics.tolist() == [[0.5, 0.125], [0.25, 0.375], [0.25, 0.5]]
    assert model.weights.tolist() == [0.75, 0.25]
    assert (model.alpha0, model.method, model.documents) == (0.5, "given", 0)
    batch = CountBatch.from_csr(np.array([[5, 0, 0], [0, 2, 3]]))
    assert model.assign(batch).tolist() == [0, 1]
    with pytest.raises(SystemExit):
        main(["topics", str(V1), "--model", "live", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert (shown["model"], len(shown["topics"])) == ("first", 2)


def test_format_1_is_written_on(copy):
    before = content_of(copy)
    store = MomentStore.open(str(copy))
    state = store.load()
    more = counted(store, [[1, 2, 3], [2, 0, 2]])
    shard = ShardRecord("s3://corpus/e.txt", 5, "etag:e", 2, 10, 0)
    grown = store.append_statistics(more, [shard], "written on")
    assert grown.load() == state + more
    assert grown.load().word_counts.tolist() == [12, 7, 9]
    grown = grown.save_model("second", grown.load_model("first"))
    sources, writer = grown.commit.segments, grown.new_segment()
    files = [file for i in range(grown.row_blocks) for file in write_sum(writer, sources, i)]
    summed = commit_compaction(grown, sources, seal_sum(grown, writer, files))
    assert (len(summed.commit.segments), summed.version) == (1, 10)
    back = rollback(summed, 7)
    opened = MomentStore.open(str(copy))
    assert opened.commit == back.commit
    assert opened.load() == state
    assert opened.verify() == []
    assert MomentStore.open(str(copy), 10).load() == state + more
    # nothing that was there is written again
    assert before.items() <= content_of(copy).items()


def test_versions_that_cannot_weigh_documents_are_kept_out(copy, monkeypatch):
    first = {"format": 1, "min_reader": 1, "min_writer": 1, "install": "0.1.0"}
    second = {"format": 2, "min_reader": 2, "min_writer": 2, "install": "0.2.0"}
    new = {"of a later version": {"x": [1, None]}}
    resealed(copy / "format.json", lambda content: {**content, **new})
    store = MomentStore.open(str(copy))
    assert pilot_of(store).length_weights == "pooled"
    state, words = store.load(), (store.vocabulary, store.policy)
    store = stage(store, *words, store.basis, {})
    assert format_of(copy) == first
    weights = LengthWeights(np.array([4, 4, 3, 2, 1]))
    weighted = replace(store.basis, weights=weights)
    store = stage(give_up(store), *words, weighted, {})
    assert format_of(copy) == second
    assert unseal((copy / "format.json").read_bytes(), "")["of a later version"] == {"x": [1, None]}
    # nothing but the format has changed as yet
    assert MomentStore.open(str(copy)).load() == state
    new = str(copy.parent / "new")
    made = MomentStore.create(new, *words, weighted, store.form, halves=False)
    assert format_of(made.url) == second
    shard = ShardRecord("s3://corpus/e.txt", 5, "etag:e", 2, 10, 0)
    made = made.append_statistics(counted(made, [[1, 2, 3], [2, 0, 2]]), [shard])
    assert made.load().weighted_counts.tolist() == [1 + 2, 2, 3 + 2]
    assert MomentStore.open(made.url).basis.weights == weights
    assert made.verify() == []
    plain = MomentStore.create(
        str(copy.parent / "plain"),
        *words,
        replace(weighted, weights=POOLED),
        store.form,
        halves=False,
    )
    assert format_of(plain.url) == first
    # as version 0.1.0 would open them
    monkeypatch.setattr(format_module, "READS", 1)
    monkeypatch.setattr(format_module, "WRITES", 1)
    assert MomentStore.open(plain.url).version == 0
    for place in (copy, made.url):
        with pytest.raises(FormatError, match=r"supports store format 2, .* to 0\.2\.0 or later$"):
            MomentStore.open(str(place))


def test_a_weighted_store_tells_damage_of_its_weighted_counts(tmp_path):
    weights = LengthWeights(np.array([4, 4, 3, 2, 1]))
    store = MomentStore.open(str(V1))
    basis = replace(store.basis, weights=weights)
    made = MomentStore.create(
        str(tmp_path / "w"), store.vocabulary, store.policy, basis, store.form
    )
    whole = counted(made, [[1, 2, 1], [2, 0, 1]])
    for wrong in ([1, 1, 1], [9, 9, 9]):
        spoilt = replace(whole, weighted_counts=np.array(wrong))
        shard = ShardRecord(f"s3://corpus/{wrong}.txt", 5, "etag:e", 2, 7, 0)
        said = made.append_statistics(spoilt, [shard]).verify()
        assert any("weighted_counts" in line for line in said), said


@pytest.mark.parametrize("key", ["min_reader", "min_writer"])
@pytest.mark.parametrize("install", ["9.1.0", "", None, "rm -rf /"])
def test_a_later_format_is_refused_with_the_version_to_install(copy, key, install):
    news = {key: 7, "format": 7, "install": install, "sealed otherwise": [1]}
    path = copy / "format.json"
    resealed(path, lambda content: {**content, **news})
    before = content_of(copy)
    remedy = "upgrade streaming-moments" + (" to 9.1.0 or later" if install == "9.1.0" else "")
    said = rf"supports store format 7, and this version supports 6; {remedy}$"
    if key == "min_reader":
        with pytest.raises(FormatError, match=said):
            MomentStore.open(str(copy))
    else:
        store = MomentStore.open(str(copy))
        assert store.load().word_counts.tolist() == WORD_COUNTS[7]
        shard = ShardRecord("s3://corpus/e.txt", 5, "etag:e", 1, 6, 0)
        segment = store.write_segment(counted(store, [[1, 2, 3]]), [shard])
        for write in (
            lambda: store.append(segment),
            lambda: store.save_model("second", store.load_model()),
            lambda: rollback(store, 0),
        ):
            with pytest.raises(FormatError, match=said):
                write()
        assert len(list((copy / "commits").glob("*.json"))) == 8
    assert before.items() <= content_of(copy).items()


def test_a_damaged_format_is_not_mistaken_for_a_later_one(copy):
    path = copy / "format.json"
    whole = path.read_bytes()
    later = 0
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(StoreError, match=r"format\.json.* restore it from a copy$") as told:
            MomentStore.open(str(copy))
        later += isinstance(told.value, FormatError)
    assert later > 0, "no flip made it look like a later format"


def test_keys_of_later_versions_stay_in_every_part_that_is_written_again(copy):
    store = MomentStore.open(str(copy))
    new = {"of a later version": {"x": [1, None]}}
    reforged(
        copy,
        f"segments/{store.commit.segments[0].id}/manifest.json",
        lambda content: {**content, **new},
    )
    reforged(
        copy,
        f"models/first/{store.models['first'].id}/manifest.json",
        lambda content: {**content, **new},
    )
    resealed(copy / "format.json", lambda content: {**content, **new})
    resealed(copy / f"basis/{store.basis.fingerprint}/basis.json", lambda c: {**c, **new})
    resealed(copy / f"vocabulary/{store.vocabulary.fingerprint}.json", lambda c: {**c, **new})
    resealed(
        copy / f"commits/{7:020d}.json",
        lambda content: {
            **content,
            **new,
            "lineage": {**content["lineage"], **new},
            "segments": [{**part, **new} for part in content["segments"]],
            "models": {name: {**part, **new} for name, part in content["models"].items()},
        },
    )
    before = content_of(copy)
    opened = MomentStore.open(str(copy))
    assert opened.verify() == []
    shard = ShardRecord("s3://corpus/e.txt", 5, "etag:e", 1, 6, 0)
    opened.append_statistics(counted(opened, [[1, 2, 3]]), [shard])
    written = unseal((copy / f"commits/{8:020d}.json").read_bytes(), "")
    kept = [
        written,
        written["lineage"],
        *written["segments"][:3],
        *written["models"].values(),
    ]
    assert [part["of a later version"] for part in kept] == 6 * [new["of a later version"]]
    # what is not written again holds them anyway
    assert before.items() <= content_of(copy).items()
    assert MomentStore.open(str(copy)).verify() == []


def test_the_files_are_kept_by_git():
    git = shutil.which("git")
    if git is None or not (V1.parents[2] / ".git").exists():
        pytest.skip("not in a clone")
    names = [str(path) for path in V1.rglob("*") if path.is_file()]
    found = subprocess.run(
        [git, "check-ignore", "--stdin"],
        input="\n".join(names),
        capture_output=True,
        text=True,
        cwd=V1.parents[2],
        timeout=60,
    )
    assert (found.stdout, found.returncode) == ("", 1)
    assert not [path for path in V1.rglob("*") if path.is_dir() and not any(path.iterdir())]
