"""Named documents: in every format, for any cut, with the counts of each passage."""

import csv
import io
import itertools
import json
import uuid
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_shards import COMPRESS, ID_VOCABULARY, TERMS, lda_c, parquet, put, put_as, vocabulary_for

from streaming_moments.errors import ShardError
from streaming_moments.storage.counting.counting import WordIndex
from streaming_moments.storage.counting.ids import IdIndex
from streaming_moments.storage.counting.named import read_named
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import FORMATS, ReadLimits
from streaming_moments.storage.shards import ShardFormat

POLICY = TokenPolicy(1, passage_words=2)
INDEX = WordIndex.of(vocabulary_for(POLICY), POLICY)
FORM = ShardFormat()
texts_of = st.lists(
    st.lists(st.sampled_from([*TERMS, "unheard", "of"]), max_size=7).map(" ".join),
    min_size=1,
    max_size=12,
).filter(any)
names_of = st.none() | st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=5
)
limits = st.builds(
    lambda nbytes, number: ReadLimits(batch_bytes=nbytes, batch_documents=number),
    st.integers(1, 60),
    st.integers(1, 5),
)


def separated(names, texts, delimiter):
    stream = io.StringIO()
    rows = [("who", "text"), *zip(names, texts, strict=True)]
    csv.writer(stream, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
    return stream.getvalue().encode()


def lines(names, texts):
    rows = ({"who": name, "text": text} for name, text in zip(names, texts, strict=True))
    return "".join(json.dumps(row) + "\n\n" for row in rows).encode()


NAMED = {
    "parquet": lambda names, texts: parquet(3, who=pa.array(names, pa.string()), text=texts),
    "jsonl": lines,
    "csv": lambda names, texts: separated(names, texts, ","),
    "tsv": lambda names, texts: separated(names, texts, "\t"),
}


def place():
    return f"memory:///{uuid.uuid4().hex}"


def read(shard, column, bounds=ReadLimits()):
    found = list(read_named(shard, FORM, INDEX, column, bounds))
    assert [one.first for one in found] == [
        0,
        *itertools.accumulate(one.counted.documents for one in found[:-1]),
    ]
    return found


def test_every_format_with_columns_names_documents_here():
    assert {*NAMED} == {kind for kind, form in FORMATS.items() if "text_column" in form.options}


@settings(max_examples=40)
@given(texts_of, st.data(), limits, st.sampled_from(list(itertools.product(NAMED, COMPRESS))))
def test_names_and_passages_are_those_of_their_documents(texts, data, bounds, form):
    kind, suffix = form
    names = data.draw(st.lists(names_of, min_size=len(texts), max_size=len(texts)))
    content = NAMED[kind](names, texts)
    if kind != "parquet":
        content = COMPRESS[suffix](content)
    suffix = "" if kind == "parquet" else suffix
    shard = put(place(), f"a{FORMATS[kind].suffixes[0]}{suffix}", content)
    found = read(shard, "who", bounds)
    absent = "" if kind in ("csv", "tsv") else None
    expected = [
        f"{shard.url}#{row}" if name is None and absent is None else name or ""
        for row, name in enumerate(names)
    ]
    assert [name for one in found for name in one.ids.to_pylist()] == expected
    passages = [POLICY.passages(text) for text in texts]
    outside = [[sum(w not in TERMS for w in words) for words in each] for each in passages]
    assert [n for one in found for n in one.counted.outside.tolist()] == [
        n for each in outside for n in each
    ]
    assert [n for one in found for n in one.counted.summed(one.counted.outside)] == list(
        map(sum, outside)
    )
    known = [n for one in found for n in one.counted.summed(one.counted.batch.lengths).tolist()]
    assert known == [
        sum(map(len, each)) - sum(out) for each, out in zip(passages, outside, strict=True)
    ]


def test_files_of_folders_and_archives_have_their_names_and_lines_their_numbers():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("b.txt", "in/c.txt", ".hidden", "a.txt"):
            archive.writestr(name, "sea")
    packed = put(place(), "a.zip", stream.getvalue())
    assert read(packed, None)[0].ids.to_pylist() == ["a.txt", "b.txt", "in/c.txt"]
    folder = put_as("directory", "texts", "", place(), ["sea", "law", "ship"])
    [found] = read_named(folder, ShardFormat("directory"), INDEX)
    assert found.ids.to_pylist() == ["000", "001", "002"]
    shard = put(place(), "a.txt", b"sea\n\nlaw")
    assert read(shard, None)[0].ids.to_pylist() == [f"{shard.url}#{row}" for row in range(3)]


def test_token_ids_outside_the_vocabulary_are_counted_by_document():
    shard = put(place(), "a.ldac", lda_c([([9, 4], [2, 3]), ([], []), ([5], [7])]))
    [found] = read_named(shard, FORM, IdIndex.of(ID_VOCABULARY))
    assert found.counted.outside.tolist() == [3, 0, 7]
    assert found.counted.batch.lengths.tolist() == [2, 0, 0]
    assert np.array_equal(found.counted.begins, [0, 1, 2])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "a.zip",
            b"PK\x05\x06" + bytes(18),
            "has no id column 'who'; leave out `transform --id-column`",
        ),
        ("a.txt", b"sea", "has no id column 'who'; leave out `transform --id-column`"),
        (
            "a.jsonl",
            b'{"text": "sea"}',
            "line 1 has no field 'who'; choose another with `transform --id-col",
        ),
        ("a.jsonl", b'{"text": "sea", "who": [1]}', "line 1: field 'who' is list, expected"),
        ("a.csv", b"text\nsea", "has no column 'who'; its columns are"),
        ("a.csv", b"who,text\n\xff,sea", "column 'who' of ids has values that are not UTF-8"),
        ("a.parquet", parquet(text=["sea"]), "choose another with `transform --id-column`"),
        ("a.parquet", parquet(text=["sea"], who=[1.5]), "is of type double, expected texts or"),
    ],
)
def test_what_cannot_name_documents_is_said(name, content, said):
    with pytest.raises(ShardError, match=said):
        read(put(place(), name, content), "who")


def test_whole_numbers_name_documents_in_decimal():
    for name, content in (
        ("a.parquet", parquet(text=["sea", "law"], who=pa.array([7, None], pa.int32()))),
        ("a.jsonl", b'{"text": "sea", "who": 7}\n{"text": "law", "who": null}\n'),
    ):
        shard = put(place(), name, content)
        assert read(shard, "who")[0].ids.to_pylist() == ["7", f"{shard.url}#1"]
