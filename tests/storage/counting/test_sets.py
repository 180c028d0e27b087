"""Shards of sets of features: every layout, any cut, and refused shards."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from brute_halves import odd_document

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.sets import SetReader, SetsForm
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.inbox.fields import truth_field
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

NAMES = ("flu", "cough", "rash")
ROWS = [["flu", "cough"], [], ["rash", "rash", "unknown"], ["cough"], None, ["rash", "flu"]]
COUNTED = [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0], [1, 0, 1]]
FEATURES = Vocabulary(NAMES, 3)


def read(path, sets=SetsForm(), features=FEATURES, limits=ReadLimits()):
    [shard] = list_shards([str(path)])
    return list(SetReader(ShardFormat(), sets, features, limits).read(shard)), shard


def rows_of(parts):
    return np.concatenate([part.batch.to_csr().toarray() for part in parts]).tolist()


def lines(path, records):
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_every_layout_of_the_same_rows_counts_the_same(tmp_path):
    lists = tmp_path / "a.parquet"
    pq.write_table(pa.table({"features": ROWS}), lists, row_group_size=2)
    sent = lines(tmp_path / "b.jsonl", [{"features": row} for row in ROWS])
    zipped = lines(tmp_path / "c.jsonl.gz", [{"features": row} for row in ROWS])
    for path in (lists, sent, zipped):
        parts, shard = read(path)
        assert rows_of(parts) == COUNTED
        assert sum(part.outside for part in parts) == 1
        odd = np.concatenate([part.batch.odd for part in parts])
        assert odd.tolist() == [(place + shard.size) % 2 == 1 for place in range(6)]
        by_content = SetReader(ShardFormat(), SetsForm(), FEATURES, by_content=True).read(shard)
        told = np.concatenate([part.batch.odd for part in by_content])
        assert told.tolist() == [odd_document(dict(enumerate(row))) for row in COUNTED]
    table = np.array(COUNTED)
    own = SetsForm(NAMES[::-1])
    for kind in (np.int8, np.float64, bool):
        columns = tmp_path / f"{np.dtype(kind)}.parquet"
        pq.write_table(pa.table(dict(zip(NAMES, table.T.astype(kind), strict=True))), columns)
        parts, _ = read(columns, own)
        assert rows_of(parts) == COUNTED
    truths = [dict(zip(NAMES, map(bool, row), strict=True)) for row in COUNTED]
    assert rows_of(read(lines(tmp_path / "truths.jsonl", truths), own)[0]) == COUNTED
    csv = tmp_path / "d.csv"
    text = "".join(f"{','.join(map(str, row))}\n" for row in COUNTED)
    csv.write_text("flu,cough,rash\n" + text.replace("0,0,0", ",0,"))
    assert rows_of(read(csv, own)[0]) == COUNTED


def test_shards_are_cut_anywhere(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"features": ROWS * 50}), path)
    whole, shard = read(path)
    parts, _ = read(path, limits=ReadLimits(batch_documents=20))
    assert len(parts) > len(whole)
    assert rows_of(parts) == rows_of(whole)
    rest = list(SetReader(ShardFormat(), SetsForm(), FEATURES).read(shard, parts[0].after))
    assert rows_of(rest) == rows_of(parts[1:])


def test_numbers_name_features(tmp_path):
    path = lines(tmp_path / "a.jsonl", [{"ids": [3, 11]}, {"ids": [11, 12]}])
    parts, _ = read(path, SetsForm(("ids",)), Vocabulary(("11", "3"), 2))
    assert rows_of(parts) == [[1, 1], [1, 0]]


def test_columns_of_features_that_are_not_counted_lie_outside(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"flu": [1, 0], "new": [1, 1]}), path)
    parts, _ = read(path, SetsForm(("flu", "new")), Vocabulary(("flu",), 1))
    assert rows_of(parts) == [[1], [0]]
    assert parts[0].outside == 2


@pytest.mark.parametrize(
    ("column", "refusal"),
    [
        ([0, 2], "column 'flu' holds '2', but must be 1"),
        ([0.5, 0], "column 'flu' holds '0.5'"),
        (["1", "no"], "column 'flu' holds 'no'"),
        ([[1], [0]], "column 'flu' is of type list"),
    ],
)
def test_other_columns_are_refused(tmp_path, column, refusal):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"flu": column, "rash": [0, 1]}), path)
    with pytest.raises(ShardError, match=refusal):
        read(path, SetsForm(("flu", "rash")))


def test_columns_are_named_once():
    with pytest.raises(InvalidInput, match="the columns of features are a, a"):
        SetsForm(("a", "a"))
    form = SetsForm(("a", "b"))
    assert SetsForm.from_json(form.to_json()) == form


def test_what_is_sent_of_a_feature_is_true_or_false():
    field = truth_field("flu")
    assert [field.written(value) for value in (True, False, 0, 1.0, None)] == [1, 0, 0, 1, 0]
    for value in ("yes", 2, [1]):
        with pytest.raises(InvalidInput, match="expected true, false, 0 or 1"):
            field.written(value)
