"""Segments: data is read exactly as it was written, and damage is an error, never zeros."""

import hashlib
import os
import pickle
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
import zarr

from streaming_moments.errors import ForeignStatistics, InvalidInput, StoreError
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.storage.files.arrays import magnitude
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commits import Lineage
from streaming_moments.storage.log.layout import SegmentLayout, row_blocks_for
from streaming_moments.storage.log.ledger import (
    Ledger,
    ShardRecord,
    ShardsAlreadyCounted,
    read_ledger,
    table_of,
)
from streaming_moments.storage.log.manifests import FileRecord, files_from_json, files_to_json
from streaming_moments.storage.log.record_files import table_from_parquet, table_to_parquet
from streaming_moments.storage.segments.blocks import (
    block_of,
    read_stored_blocks,
    read_totals,
    sum_block,
)
from streaming_moments.storage.segments.foundations import read_foundation, write_foundation
from streaming_moments.storage.segments.segments import SegmentWriter

N_WORDS, CORE, BLOCKS = 23, 17, 5
SEGMENT = "0" * 31 + "1"
BEGUN = datetime.now(UTC)


def basis_of(n_words=N_WORDS, core=CORE, columns=3):
    rng = np.random.default_rng(7)
    return Basis(rng.integers(-127, 128, (core, columns)).astype(np.int8), n_words)


def statistics_of(basis, documents=12, seed=0):
    counts = np.random.default_rng(seed).poisson(0.6, (documents, basis.n_words))
    return MomentStatistics.of(CountBatch.from_csr(counts), basis)


def records_of(statistics, url="a"):
    histogram = statistics.length_histogram
    return [ShardRecord(url, 10, "sha256:00", histogram.n_documents, histogram.C1)]


def written(folder, statistics, blocks=BLOCKS, segment=SEGMENT):
    foundation = CountsFoundation(statistics.basis, statistics.codocuments is not None)
    layout = SegmentLayout(foundation, blocks)
    writer = SegmentWriter(folder, segment, layout, folder.clock())
    files = [
        record
        for index in range(blocks)
        for record in writer.write_block(block_of(statistics, layout, index))
    ]
    return writer, files


@pytest.fixture
def folder(tmp_path):
    return Folder.at(str(tmp_path))


@pytest.fixture
def sealed(folder):
    statistics = statistics_of(basis_of())
    writer, files = written(folder, statistics)
    segment = writer.seal(statistics.length_histogram, records_of(statistics), files)
    return statistics, writer.layout, segment.reference


def test_blocks_come_back_as_they_were_written(folder, sealed):
    statistics, layout, reference = sealed
    for index in range(BLOCKS):
        expected = block_of(statistics, layout, index)
        assert sum_block(folder, [reference], layout, index) == expected
    assert read_totals(folder, reference, layout) == statistics.totals
    assert reference.largest >= max(map(magnitude, statistics.arrays().values()))


def test_plain_zarr_reads_a_segment(folder, sealed, tmp_path):
    statistics, _, _ = sealed
    group = zarr.open_group(tmp_path / "segments" / SEGMENT, mode="r")
    pairs = group["pair_counts"][...]
    assert pairs.shape == (BLOCKS, -(-N_WORDS // BLOCKS), CORE)
    for word in range(N_WORDS):
        row = pairs[word % BLOCKS, word // BLOCKS]
        np.testing.assert_array_equal(row, statistics.pair_counts[word])
    kinds = [codec["name"] for codec in group["pair_counts"].metadata.to_dict()["codecs"]]
    assert kinds == ["bytes", "blosc", "crc32c"]
    kinds = [codec["name"] for codec in group["triple_sketch"].metadata.to_dict()["codecs"]]
    assert kinds == ["bytes", "crc32c"]


def test_blocks_share_no_file(folder):
    _, files = written(folder, statistics_of(basis_of()))
    assert len({record.path for record in files}) == len(files) == 6 * BLOCKS


def test_writers_travel_to_workers_without_showing_options(folder):
    secret = "planted-secret-9d2e"
    layout = SegmentLayout(CountsFoundation(basis_of(), True), BLOCKS)
    writer = SegmentWriter(Folder.at("memory://travel", {"token": secret}), SEGMENT, layout, BEGUN)
    assert secret not in repr(writer)
    copy = pickle.loads(pickle.dumps(writer))
    assert copy == writer
    assert copy.folder.storage_options == {"token": secret}


def test_a_block_written_twice_counts_once(folder):
    statistics = statistics_of(basis_of())
    writer, files = written(folder, statistics)
    again = writer.write_block(block_of(statistics, writer.layout, 2))
    shards = records_of(statistics)
    segment = writer.seal(statistics.length_histogram, shards, [*files, *again])
    assert sum_block(folder, [segment.reference], writer.layout, 2) == block_of(
        statistics, writer.layout, 2
    )


def test_a_block_written_twice_with_other_content_is_refused(folder):
    statistics = statistics_of(basis_of())
    writer, files = written(folder, statistics)
    other = writer.write_block(block_of(statistics_of(basis_of(), seed=1), writer.layout, 2))
    with pytest.raises(StoreError, match="written twice with different content"):
        writer.seal(statistics.length_histogram, records_of(statistics), [*files, *other])


def test_a_block_that_was_not_written_is_named(folder):
    statistics = statistics_of(basis_of())
    writer, files = written(folder, statistics)
    fewer = [record for record in files if record.path != "triple_sketch/c.3.0.0"]
    with pytest.raises(StoreError, match="row block 3 is not written"):
        writer.seal(statistics.length_histogram, records_of(statistics), fewer)


def test_shards_must_add_up_to_the_statistics(folder):
    statistics = statistics_of(basis_of())
    writer, files = written(folder, statistics)
    [record] = records_of(statistics)
    short = replace(record, documents=record.documents - 1)
    with pytest.raises(InvalidInput, match="add up to 11 documents"):
        writer.seal(statistics.length_histogram, [short], files)
    with pytest.raises(InvalidInput, match="given twice"):
        writer.seal(statistics.length_histogram, [record, record], files)


def test_statistics_of_another_kind_are_refused(folder):
    statistics = statistics_of(basis_of())
    writer, _ = written(folder, statistics)
    with pytest.raises(ForeignStatistics, match="gather them with the store's basis"):
        writer.write_block(statistics_of(basis_of(columns=2)))
    with pytest.raises(ForeignStatistics, match="counted with the rows in 1 blocks"):
        writer.write_block(statistics)
    without = replace(block_of(statistics, writer.layout, 0), codocuments=None)
    with pytest.raises(ForeignStatistics, match="codocuments=True"):
        writer.write_block(without)
    with pytest.raises(InvalidInput, match="are not all rows"):
        block_of(block_of(statistics, writer.layout, 0), writer.layout, 0)


def damage_matrix(path, other):
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 16
    yield "flip", bytes(flipped)
    yield "cut", whole[:-1]
    yield "longer", whole + b"0"
    yield "empty", b""
    yield "zero", bytes(len(whole))
    yield "delete", None
    if other.read_bytes() != whole:
        yield "swap", other.read_bytes()


FILES = [
    ("zarr.json", "manifest.json"),
    ("manifest.json", "zarr.json"),
    ("word_counts/c.0.0", "word_counts/c.1.0"),
    ("pair_counts/zarr.json", "triple_sketch/zarr.json"),
    ("pair_counts/c.0.0.0", "pair_counts/c.1.0.0"),
    ("triple_sketch/c.0.0.0", "triple_sketch/c.1.0.0"),
    ("codocuments/c.0.0.0", "codocuments/c.1.0.0"),
    ("document_frequencies/c.0.0", "document_frequencies/c.1.0"),
    ("length_histogram/c.0.0", "word_counts/c.0.0"),
]


@pytest.mark.parametrize(("name", "other"), FILES)
def test_damage_to_any_file_of_a_block_names_it(folder, sealed, tmp_path, name, other):
    _, layout, reference = sealed
    segment = tmp_path / "segments" / SEGMENT
    path, whole = segment / name, (segment / name).read_bytes()
    for _, content in damage_matrix(path, segment / other):
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(StoreError, match=name.replace(".", r"\.")):
            read_stored_blocks(folder, reference, layout, [0])
        path.write_bytes(whole)
    read_stored_blocks(folder, reference, layout, [0])


def test_a_stale_copy_of_a_whole_segment_is_found(folder, sealed, tmp_path):
    _, layout, reference = sealed
    other = statistics_of(basis_of(), seed=5)
    writer, files = written(folder, other, segment="0" * 31 + "2")
    writer.seal(other.length_histogram, records_of(other), files)
    shutil.rmtree(tmp_path / "segments" / SEGMENT)
    shutil.copytree(tmp_path / "segments" / writer.id, tmp_path / "segments" / SEGMENT)
    with pytest.raises(StoreError, match="differs from the committed manifest"):
        read_stored_blocks(folder, reference, layout, [0])


def test_crc_alone_finds_damage_for_other_readers_of_zarr(sealed, tmp_path):
    path = tmp_path / "segments" / SEGMENT / "triple_sketch" / "c.0.0.0"
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)
    group = zarr.open_group(tmp_path / "segments" / SEGMENT, mode="r")
    with pytest.raises(ValueError, match="checksum"):
        group["triple_sketch"][0]


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "a/../b", "a//b", "a\\b"])
def test_paths_that_leave_the_store_are_refused(folder, sealed, tmp_path, path):
    _, layout, reference = sealed
    manifest = tmp_path / "segments" / SEGMENT / "manifest.json"
    content = unseal(manifest.read_bytes(), "")
    content["files"][path] = [1, "0" * 64]
    forged = seal(content)
    manifest.write_bytes(forged)
    forged_reference = replace(reference, manifest=hashlib.sha256(forged).hexdigest())
    with pytest.raises(StoreError, match="leaves its folder"):
        read_stored_blocks(folder, forged_reference, layout, [0])
    with pytest.raises(StoreError, match="no valid list of files"):
        files_from_json({"a": [1]}, "manifest.json")


def test_a_pickled_array_is_not_read(folder, tmp_path):
    basis = basis_of()
    foundation = CountsFoundation(basis, True)
    write_foundation(folder, foundation)
    lineage = Lineage("", basis.fingerprint, BLOCKS, True, {}, halves=True, halves_by_content=True)
    assert read_foundation(folder, lineage) == foundation
    place = tmp_path / "basis" / basis.fingerprint
    np.save(place / "Q.npy", np.array([{}], dtype=object), allow_pickle=True)
    files = files_to_json([FileRecord.of("Q.npy", (place / "Q.npy").read_bytes())])
    content = {"n_words": N_WORDS, "vocabulary": "", "files": files}
    (place / "basis.json").write_bytes(seal(content))
    with pytest.raises(StoreError, match="is not a valid basis"):
        read_foundation(folder, lineage)


def test_an_empty_histogram_and_uneven_blocks(folder):
    basis = basis_of(n_words=7, core=3, columns=2)
    layout = SegmentLayout(CountsFoundation(basis, True), 5)
    writer = SegmentWriter(folder, SEGMENT, layout, BEGUN)
    zero = MomentStatistics.zero(basis)
    files = [f for i in range(5) for f in writer.write_block(block_of(zero, layout, i))]
    segment = writer.seal(zero.length_histogram, [], files)
    assert sum_block(folder, [segment.reference], layout, 4) == MomentStatistics.zero(
        basis, RowBlock(4, 5)
    )


def test_blocks_of_a_new_store_are_of_the_stated_size():
    eye = np.eye(2000, 8, dtype=np.int8)
    assert row_blocks_for(CountsFoundation(Basis(eye[:3, :2], 5), True)) == 5
    blocks = row_blocks_for(CountsFoundation(Basis(eye, 20_000), True))
    assert 16 << 20 < -(-20_000 // blocks) * 2000 * 8 <= 32 << 20


def test_a_killed_writer_leaves_no_half_written_file(folder, tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        folder.write("a.json", b"{}")
    assert not (tmp_path / "a.json").exists()


def test_ledger_of_a_hundred_thousand_shards(folder):
    records = [
        ShardRecord(f"s3://corpus/part-{i:06d}.parquet", i, f"etag:{i:032x}", 3, 9)
        for i in range(100_000)
    ]
    content = table_to_parquet(table_of(records))
    ledger = Ledger({SEGMENT: table_from_parquet(content, "shards.parquet")})
    assert len(ledger) == 100_000
    assert ledger.find(records[77_777].url) == records[77_777]
    assert ledger.find("elsewhere") is None
    assert ledger.counted(["elsewhere", records[5].url]) == (records[5].url,)
    assert ledger.repeated() == ()
    assert next(iter(ledger)) == records[0]


def test_ledger_names_what_is_counted_twice():
    table = table_of([ShardRecord("a", 1, "sha256:0", 1, 1)])
    assert Ledger({"1": table, "2": table}).repeated() == ("a",)
    error = pickle.loads(pickle.dumps(ShardsAlreadyCounted(tuple("abcdefg"))))
    assert str(error).startswith("7 shards are counted already: a, b, c, d, e and 2 more;")


def test_ledgers_read_only_what_is_not_known(folder, sealed):
    statistics, _, reference = sealed
    ledger = read_ledger(folder, [reference], Ledger({}))
    assert list(ledger) == records_of(statistics)
    folder.write(f"segments/{SEGMENT}/shards.parquet", b"")
    assert read_ledger(folder, [reference], ledger).find("a") is not None
    with pytest.raises(StoreError, match=r"shards\.parquet does not have"):
        read_ledger(folder, [reference], Ledger({}))
    with pytest.raises(StoreError, match="is not a table of shard records"):
        table_from_parquet(b"PAR1", "shards.parquet")


@pytest.mark.parametrize(
    "wrong", [{"fingerprint": "md5:0"}, {"tokens": -1}, {"url": "ftp://me:pass@host/x"}]
)
def test_records_are_checked(wrong):
    with pytest.raises(InvalidInput):
        ShardRecord(
            **{"url": "a", "size": 1, "fingerprint": "etag:0", "documents": 1, "tokens": 1} | wrong
        )
