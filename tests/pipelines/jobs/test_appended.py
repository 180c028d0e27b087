"""Files and folders that grow: what was counted is told by its hash, and what came is new."""

import io
import json
import os
import shutil
import sys
import uuid
from dataclasses import replace

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.interface.opening import open_store
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.listed.compare import compare
from streaming_moments.pipelines.jobs.purge import look_for_purged, purge
from streaming_moments.pipelines.jobs.rebase import present_shards
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.documents import read_chunks
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of
from streaming_moments.storage.operations.appended import (
    Appended,
    Longer,
    appended_to,
    counted_shards,
)
from streaming_moments.storage.shards import Shard, ShardFormat, fingerprint
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
HEADERS = {"csv": "n,text\n", "tsv": "n\ttext\n"}


@pytest.fixture(scope="module")
def empty(tmp_path_factory, planted, embedded):
    """A store that has counted nothing."""
    place = tmp_path_factory.mktemp("appended")
    (place / "pilot.txt").write_text("\n".join(planted[:300]))
    listed = list_shards([str(place / "pilot.txt")])
    store = create(
        str(place / "store"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded)
    )
    return store.url


@pytest.fixture
def store(tmp_path, empty):
    shutil.copytree(empty, tmp_path / "store")
    return MomentStore.open(str(tmp_path / "store"))


def record(kind, text):
    if kind == "lda-c":
        return f"1 {len(text)}:2\n"
    if kind == "jsonl":
        return json.dumps({"text": text}) + "\n"
    if kind in HEADERS:
        return f'7{HEADERS[kind][1]}"{text.replace(" ", chr(10), 1)}"\n'
    return f"{text}\n"


def updated(store, path, cluster, **how):
    apart = store.latest().ledger().find
    listed = list_shards([str(path)], apart=lambda name: apart(name) is None)
    return update(store, listed, Run(cluster), **how)


def counts_of(store, path, cluster):
    """What a file alone adds up to: all but which half a document is of."""
    loaded = updated(store, path, cluster).store.load()
    return arrays_of(loaded)


def arrays_of(loaded):
    names = ("word_counts", "document_frequencies", "pair_counts", "triple_sketch", "codocuments")
    return loaded.n_documents, [getattr(loaded, name) for name in names]


def require_equal(one, other):
    assert one[0] == other[0]
    for mine, yours in zip(one[1], other[1], strict=True):
        np.testing.assert_array_equal(mine, yours)


def test_parts_without_their_beginning_are_counted_no_second_time(tmp_path, embedded):
    log = tmp_path / "a.txt"
    log.write_text("law sea\nship tax\n")
    part = ShardRecord(f"{log}#bytes=8", 9, f"sha256:{'0' * 64}", 1, 2)
    ledger, listed = Ledger({"0a": table_of([part])}), list_shards([str(log)])
    with pytest.raises(InvalidInput, match=r"a\.txt is the same file as .*a\.txt#bytes=8, which"):
        compare(ledger, listed, Run(embedded), ShardFormat())
    assert [one.url for one in counted_shards(ledger, listed)] == [part.url]


def test_of_two_that_count_what_came_one_wins(tmp_path, store, planted, embedded, monkeypatch):
    log = tmp_path / "a.txt"
    log.write_text(f"{planted[0]}\n")
    store = updated(store, log, embedded).store
    log.write_text(f"{planted[0]}\n{planted[1]}\n")
    appending, append = [planted[2]], MomentStore.append

    def other_first(self, *given):
        if appending:
            text = appending.pop()
            with log.open("a") as stream:
                stream.write(f"{text}\n")
            updated(MomentStore.open(store.url), log, embedded)
        return append(self, *given)

    monkeypatch.setattr(MomentStore, "append", other_first)
    result = updated(store, log, embedded)
    assert (result.counted, result.already) == (0, 1)
    assert updated(store, log, embedded).counted == 0
    assert store.latest().length_histogram().n_documents == 3


@pytest.mark.parametrize("kind", ["text", "jsonl", "csv", "tsv", "lda-c"])
@settings(max_examples=40, deadline=None)
@given(
    documents=st.lists(st.sampled_from(["law sea", "ship", "tax law"]), min_size=1, max_size=6),
    places=st.lists(st.floats(0, 1), max_size=4).map(sorted),
)
def test_a_file_that_is_cut_anywhere_has_its_records_once(kind, documents, places):
    suffix, fs = FORMATS[kind].suffixes[0], fsspec.filesystem("memory")
    path = f"/{uuid.uuid4().hex}{suffix}"
    shard = Shard(f"memory://{path}", 0)
    head = HEADERS.get(kind, "") + record(kind, documents[0])
    whole = (head + "".join(record(kind, text) for text in documents[1:])).encode()

    def read(part):
        chunks = [chunk for chunk, _ in read_chunks(part, ShardFormat())]
        if kind == "lda-c":
            return [ids for chunk in chunks for ids in chunk.ids.tolist()]
        return [text for chunk in chunks for text in chunk.cast(pa.large_binary()).to_pylist()]

    records, found = [], []
    for end in [len(head), *(int(len(whole) * place) for place in places), len(whole)]:
        fs.pipe(path, whole[: max(end, len(head))])
        now = replace(shard, size=max(end, len(head)))
        part = now
        if records:
            came = appended_to(Longer(now, tuple(records), ShardFormat(), 100))
            part = came.part
        if part is not None:
            found += read(part)
            records.append(ShardRecord(part.url, part.size, fingerprint(part), 1, 1))
    assert came.waiting == 0
    assert found == read(now)
    assert sum(one.size for one in records) == len(whole)
    fs.pipe(path, b"!" + whole[1:])
    assert appended_to(Longer(now, tuple(records), ShardFormat(), 100)) is None


def counted_in_parts(path, ends, content, shard):
    """Records of a file that was counted up to some ends, one after the other."""
    records = []
    for end in ends:
        path.write_bytes(content[:end])
        now = replace(shard, size=end)
        part = appended_to(Longer(now, tuple(records), ShardFormat(), 100)).part if records else now
        records.append(ShardRecord(part.url, part.size, fingerprint(part), 1, 1))
    path.write_bytes(content)
    return tuple(records)


@pytest.mark.parametrize("place", [0, 9, 19])
def test_each_part_of_a_file_that_was_counted_must_be_as_it_was(tmp_path, place):
    path, content = tmp_path / "a.txt", b"law sea 0\nlaw sea 1\nlaw sea 2\nnew\n"
    shard = Shard(str(path), len(content))
    records = counted_in_parts(path, (10, 20, 30), content, shard)
    asked = Longer(shard, records, ShardFormat(), 100)
    assert appended_to(asked).part == Shard(f"{path}#bytes=30", 4)
    path.write_bytes(content[:place] + b"!" + content[place + 1 :])
    assert appended_to(asked) is None


@pytest.mark.parametrize(
    ("end", "first"),
    [(b"\n", 8), (b"\r\n", 9), (b"\r\n\r\n", 9), (b" tax\n", None), (b"s\n", None)],
)
def test_a_line_that_was_counted_may_only_end_later(tmp_path, end, first):
    path = tmp_path / "a.txt"
    content = b"law sea" + end + b"ship\n"
    shard = Shard(str(path), len(content))
    records = counted_in_parts(path, (7,), content, shard)
    came = appended_to(Longer(shard, records, ShardFormat(), 100))
    if first is None:
        assert came is None
    else:
        assert (came.part, came.waiting) == (
            Shard(f"{path}#bytes={first}", len(content) - first),
            0,
        )


@pytest.mark.parametrize("bound", [9, 8])
def test_a_record_without_its_end_waits_up_to_the_bound(tmp_path, bound):
    path, content = tmp_path / "a.txt", b"law\nsea\nship tax "
    shard = Shard(str(path), len(content))
    records = counted_in_parts(path, (4,), content, shard)
    asked = Longer(shard, records, ShardFormat(), bound)
    if bound == 9:
        assert appended_to(asked) == Appended(Shard(f"{path}#bytes=4", 4), 9)
        return
    with pytest.raises(ShardError, match="record that begins at byte 8 has no end within 8 bytes"):
        appended_to(asked)


def test_a_file_that_came_in_parts_adds_up_as_a_whole(tmp_path, store, planted, embedded):
    whole = "".join(record("csv", text) for text in planted[:6])
    log, twin = tmp_path / "a.csv", tmp_path / "twin.csv"
    other = MomentStore.open(shutil.copytree(store.url, tmp_path / "other").as_uri())
    first = "".join(record("csv", text) for text in planted[:2])
    for content in (first, whole):
        log.write_text(HEADERS["csv"] + content)
        store = updated(store, log, embedded).store
    twin.write_text(HEADERS["csv"] + whole)
    assert len(store.ledger()) == 2
    require_equal(arrays_of(store.load()), counts_of(other, twin, embedded))
    assert store.verify() == []


def test_what_waits_for_its_end_of_line_is_said(run, tmp_path, store, planted):
    log = tmp_path / "a.txt"
    log.write_text("".join(f"{text}\n" for text in planted[:3]))
    assert run("update", store.url, log)[0] == 0
    with log.open("a") as stream:
        stream.write(f"{planted[3]}\n{planted[4]}")
    code, out, err = run("update", store.url, log)
    assert code == 0
    assert "counted 1 shard (1 document," in out
    waiting = f"a.txt: its last {len(planted[4])} bytes are not a whole line yet"
    assert f"{waiting}; a later update counts them" in err
    first = len("".join(f"{text}\n" for text in planted[:3]))
    urls = {record.url for record in store.latest().ledger()}
    assert urls == {str(log), f"{log}#bytes={first}"}
    code, out, err = run("update", store.url, log)
    assert "no new shards" in out
    assert "a later update counts them" in err


def test_a_file_whose_old_part_changed_is_refused(tmp_path, store, planted, embedded):
    log = tmp_path / "a.txt"
    log.write_text("".join(f"{text}\n" for text in planted[:3]))
    store = updated(store, log, embedded).store
    log.write_text("".join(f"{text}\n" for text in planted[1:6]))
    with pytest.raises(InvalidInput, match=r"counted with other content: 1 shard: .*a\.txt was"):
        updated(store, log, embedded)
    log.write_text("".join(f"{text}\n" for text in planted[:2]))
    with pytest.raises(InvalidInput, match="counted with other content: 1 shard"):
        updated(store, log, embedded)


def test_a_last_record_that_goes_on_is_refused_and_replaced(tmp_path, store, planted, embedded):
    log, twin = tmp_path / "a.txt", tmp_path / "twin.txt"
    log.write_text(f"{planted[0]}\n{planted[1][:30]}")
    (tmp_path / "b.txt").write_text(f"{planted[9]}\n")
    shutil.copytree(store.url, tmp_path / "other")
    both = list_shards([str(log), str(tmp_path / "b.txt")])
    store = update(store, both, Run(embedded)).store
    for path in (log, twin):
        path.write_text(f"{planted[0]}\n{planted[1]}\n{planted[2]}\n")
    with pytest.raises(InvalidInput, match="counted with other content"):
        updated(store, log, embedded)
    # the file still holds what is to be taken away
    store = updated(store, log, embedded, old=[]).store
    other = MomentStore.open(str(tmp_path / "other"))
    other = updated(other, tmp_path / "b.txt", embedded).store
    require_equal(arrays_of(store.load()), counts_of(other, twin, embedded))


def test_a_file_that_grew_is_forgotten_and_replaced_with_all_its_parts(
    tmp_path, store, planted, embedded
):
    log = tmp_path / "a.jsonl"
    (tmp_path / "b.txt").write_text(f"{planted[9]}\n{planted[10]}\n")
    store = updated(store, tmp_path / "b.txt", embedded).store
    before = store.load()
    for text in planted[:3]:
        with log.open("a") as stream:
            stream.write(record("jsonl", text))
        store = updated(store, log, embedded).store
    assert len(store.ledger()) == 4
    present, missing = present_shards(store, Run(embedded), False)
    assert (len(present), missing) == (4, {})
    other = MomentStore.open(shutil.copytree(store.url, tmp_path / "other").as_uri())
    assert forget(store, list_shards([str(log)]), Run(embedded)).load() == before
    # each part is alone in a segment, so its content need not be there
    log.write_text(record("jsonl", planted[20]))
    with pytest.raises(InvalidInput, match="counted with other content"):
        updated(other, log, embedded)
    replaced = updated(other, log, embedded, old=[]).store
    assert len(replaced.ledger()) == 2
    assert replaced.load().n_documents == before.n_documents + 1
    assert forget(replaced, list_shards([str(log)]), Run(embedded)).load() == before


def test_folders_of_texts_take_new_files(run, tmp_path, store, planted, embedded):
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    for number, text in enumerate(planted[:3]):
        (folder / f"{number}.txt").write_text(text)
    (folder / "none.txt").write_text("")
    (folder / "unknown.txt").write_text("zzz")
    assert "counted 5 shards (5 documents" in run("update", store.url, folder)[1]
    (folder / "deep" / "new.md").write_text(planted[5])
    code, out, _ = run("update", store.url, f"{folder}/")
    assert (code, "counted 1 shard (1 document," in out) == (0, True)
    assert "5 counted before" in out
    whole = sorted(record.url for record in store.latest().ledger())
    assert whole[-1] == f"{folder}/unknown.txt#document"
    (folder / "0.txt").write_text(planted[7])
    code, _, err = run("update", store.url, folder)
    assert code == 2
    assert "0.txt#document was counted as" in err
    (folder / "0.txt").write_text(planted[0])
    assert run("update", store.url, folder / "1.txt")[0] == 2, "the same file by the line"
    assert run("forget", store.url, folder / "1.txt", folder / "0.txt")[0] == 0
    assert len(store.latest().ledger()) == 4
    assert run("forget", store.url, folder)[0] == 2, "some are counted no longer"
    assert run("purge", store.url, folder)[0] == 0
    assert len(store.latest().ledger()) == 0
    assert look_for_purged(store.latest(), [str(folder)]).traces == ()


def test_a_folder_that_an_earlier_version_counted_as_one_shard_stays_one(
    tmp_path, store, planted, embedded
):
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, text in enumerate(planted[:3]):
        (folder / f"{number}.txt").write_text(text)
    store = update(store, list_shards([str(folder)]), Run(embedded)).store
    assert updated(store, folder, embedded).already == 1
    (folder / "3.txt").write_text(planted[3])
    with pytest.raises(InvalidInput, match="counted with other content: 1 shard"):
        updated(store, folder, embedded)


def test_all_of_a_file_that_grew_is_purged(tmp_path, store, planted, embedded):
    log = tmp_path / "a.txt"
    log.write_text(f"{planted[0]}\n")
    store = updated(store, log, embedded).store
    log.write_text(f"{planted[0]}\n{planted[1]}\n")
    store = updated(store, log, embedded).store
    assert len(store.ledger()) == 2
    purged = purge(store, [str(log)], Run(embedded)).store
    assert len(purged.ledger()) == 0
    assert look_for_purged(purged, [str(log)]).traces == ()


def test_standard_input_is_counted_once_by_its_content(run, tmp_path, store, planted, monkeypatch):
    def piped(content, *more):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return run("update", store.url, "-", *more)

    texts = "".join(f"{text}\n" for text in planted[:3]).encode()
    objects = "".join(record("jsonl", text) for text in planted[3:5]).encode()
    assert "counted 1 shard (3 documents" in piped(texts)[1]
    assert "no new shards" in piped(texts)[1]
    assert "counted 1 shard (2 documents" in piped(objects)[1]
    assert {record.url[:8] for record in store.latest().ledger()} == {"stdin://"}
    assert piped(b"")[0] == 2
    code, _, err = piped(b"", "--scheduler", "tcp://127.0.0.1:1")
    assert (code, "write the documents to a file" in err) == (2, True)
    code, _, err = run("transform", store.url, "-", "--output", tmp_path / "out")
    assert code == 2


def test_names_of_parts_are_no_names_of_files(tmp_path, store, planted, embedded):
    (tmp_path / "a.txt#document").write_text(planted[0])
    with pytest.raises(ShardError, match="reserved for parts of files; rename it"):
        list_shards([f"{tmp_path}/*"])


def test_the_interface_takes_what_grows(tmp_path, store, planted):
    opened = open_store(store.url)
    log = tmp_path / "a.txt"
    log.write_text(f"{planted[0]}\n")
    opened = opened.update(str(log))
    with log.open("a") as stream:
        stream.write(f"{planted[1]}\n")
    opened = opened.update(str(log)).update(str(log))
    assert opened.documents == 2
    assert opened.forget(str(log)).documents == 0
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a").write_text(planted[3])
    opened = opened.update(str(folder))
    (folder / "b").write_text(planted[4])
    assert opened.update(str(folder)).documents == 2
    assert os.listdir(folder)
