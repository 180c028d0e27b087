"""Records: what is taken is read back as it was sent, what is refused is named."""

import json
from datetime import date

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sent_documents import TODAY

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.documents import days_of, read_chunks
from streaming_moments.storage.inbox.fields import text_field, value_field
from streaming_moments.storage.inbox.receipts import new_receipt, receipt_of_key
from streaming_moments.storage.inbox.records import RecordRefused, RecordShape
from streaming_moments.storage.shards import Shard, ShardFormat

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
fields = st.sampled_from(["text", "id", "date", "txt", "year"])
records = values | st.dictionaries(fields, values | st.sampled_from(["2026-11-20", "sea"]))


def line_or_refusal(shape, record):
    try:
        return shape.line(record, 5, TODAY)
    except RecordRefused as refused:
        return refused


@given(
    records,
    st.sampled_from(
        [RecordShape((text_field("body"),), "day"), RecordShape((value_field("year"),))]
    ),
)
@settings(max_examples=100)
def test_anything_is_a_line_or_refused_by_its_field(record, shape):
    found = line_or_refusal(shape, record)
    if isinstance(found, RecordRefused):
        assert (found.place, bool(found.reason)) == (5, True)
        return
    day, line = found
    content = json.loads(line)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    if shape.required == ("year",):
        assert content["year"] == record["year"]
    else:
        assert (content["body"], content["day"]) == (record["text"], day.isoformat())


@pytest.mark.parametrize(
    ("record", "field", "told"),
    [
        ("the sea", "", "a string 'the sea', expected an object"),
        ({}, "text", "missing"),
        ({"text": 5}, "text", "a number, expected a string"),
        ({"text": "a", "id": True}, "id", "a truth value, expected a string or a whole number"),
        ({"text": "a", "id": ""}, "id", "1 to 1000 characters"),
        ({"text": "a", "date": "soon"}, "date", "'soon', expected a text that begins with a date"),
        ({"text": "a", "data": "2026-11-23"}, "data", "did you mean 'date'"),
        ({"text": "a", "zzz": 1}, "zzz", "only text, id, date"),
        ({"text": "\ud800"}, "text", "surrogate"),
        ({"text": "a" * 100}, "text", "above 64 bytes"),
    ],
)
def test_what_is_refused_is_named_with_what_is_taken(record, field, told):
    with pytest.raises(RecordRefused, match=told) as refused:
        RecordShape(line_bytes=64).line(record, 2, TODAY)
    assert refused.value.field == field
    assert "document 2" in str(refused.value)


def test_names_that_would_meet_are_refused():
    for shape in (
        {"counted": (text_field("id"),)},
        {"counted": (text_field("day"),), "date_column": "day"},
        {"counted": (value_field("a"), value_field("a"))},
    ):
        with pytest.raises(InvalidInput, match="must differ"):
            RecordShape(**shape)


def test_a_bad_document_refuses_all_or_is_left_out():
    shape, receipt = RecordShape(), new_receipt(0)
    documents = [{"text": "a"}, {"text": 1}, {"text": "c", "date": "2026-11-20"}]
    with pytest.raises(RecordRefused, match="document 1"):
        shape.submission(documents, receipt, False, TODAY)
    one, bad = shape.submission(documents, receipt, False, TODAY, skip_bad=True)
    assert [refused.place for refused in bad] == [1]
    assert [piece.day.isoformat() for piece in one.pieces] == ["2026-11-20", "2026-11-23"]
    with pytest.raises(InvalidInput, match="no documents"):
        shape.submission([{}], receipt, False, TODAY, skip_bad=True)


@pytest.mark.parametrize(
    ("day", "taken"),
    [("2026-11-24", True), ("2026-11-13", True), ("2026-11-25", False), ("2026-11-12", False)],
)
def test_dates_far_from_the_day_of_arrival_are_refused_where_told(day, taken):
    shape, record = RecordShape(days=10), {"text": "a", "date": day}
    if taken:
        assert shape.line(record, 0, TODAY)[0].isoformat() == day
    else:
        with pytest.raises(RecordRefused, match="10 days before 2026-11-23"):
            shape.line(record, 0, TODAY)


def test_documents_of_too_many_days_are_refused():
    days = [{"text": "a", "date": f"2026-{1 + n // 28:02}-{1 + n % 28:02}"} for n in range(32)]
    with pytest.raises(InvalidInput, match="of 32 days"):
        RecordShape().submission(days, new_receipt(0), False, TODAY)


@pytest.mark.parametrize("shape", [RecordShape(), RecordShape(date_column="day")])
def test_the_day_of_arrival_is_no_other_content(shape):
    def digest(texts, today):
        records = [{"text": text} for text in texts]
        return shape.submission(records, receipt_of_key("k"), True, today)[0].digest

    assert digest(["a", "b"], TODAY) == digest(["a", "b"], date(2026, 11, 24))
    assert digest(["a", "b"], TODAY) != digest(["b", "a"], TODAY)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
@settings(max_examples=50)
def test_the_reader_of_shards_reads_what_was_sent(texts):
    shape = RecordShape((text_field("body"),), date_column="day")
    records = [{"text": text, "id": place} for place, text in enumerate(texts)]
    one, _ = shape.submission(records, new_receipt(0), False, TODAY)
    fsspec.filesystem("memory").pipe("/records/a.jsonl", one.content)
    shard = Shard("memory:///records/a.jsonl", len(one.content))
    form = ShardFormat(text_column="body")
    found = [text for chunk, _ in read_chunks(shard, form) for text in chunk.to_pylist()]
    assert [text.decode() if isinstance(text, bytes) else text for text in found] == texts
    assert str(days_of(shard, form, DateSource("day"))) == TODAY.isoformat()
