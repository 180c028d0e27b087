"""Records: accepted documents are read as they were sent, and errors name the refused ones."""

import hashlib
import json
import pickle
from datetime import date

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sent_documents import TODAY

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.documents import days_of, read_chunks
from streaming_moments.storage.inbox.fields import (
    counts_field,
    ids_field,
    text_field,
    value_field,
)
from streaming_moments.storage.inbox.receipts import new_receipt, receipt_of_key
from streaming_moments.storage.inbox.records import RecordRefused, RecordShape, Unreadable
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
        ({"text": "a", "date": "2026-02-30"}, "date", "the calendar has no '2026-02-30'; correct"),
        ({"text": "a", "date": "0000-01-01T10:00"}, "date", "the calendar has no '0000-01-01T1"),
        ({"text": "a", "data": "2026-11-23"}, "data", "did you mean 'date'"),
        ({"text": "a", "zzz": 1}, "zzz", "the fields are text, id, date"),
        ({"text": "\ud800"}, "text", "surrogate"),
        ({"text": "a" * 100}, "text", "exceeds 64 bytes"),
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
    with pytest.raises(InvalidInput, match="no valid documents"):
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
        late = r"2026-11-25, in the future: today is 2026-11-23 \(UTC\).* correct it$"
        early = "10 days before 2026-11-23 .* count older documents with"
        with pytest.raises(RecordRefused, match=late if day > "2026-11-24" else early):
            shape.line(record, 0, TODAY)


def test_a_line_is_as_long_as_the_bound_and_no_longer():
    record = {"text": "a" * 52}
    assert len(RecordShape(line_bytes=64).line(record, 0, TODAY)[1]) == 64
    with pytest.raises(RecordRefused, match="exceeds 63 bytes"):
        RecordShape(line_bytes=63).line(record, 0, TODAY)


def test_an_id_is_as_long_as_the_bound_and_no_longer():
    shape = RecordShape()
    assert shape.line({"text": "a", "id": "i" * 1000}, 0, TODAY)[1].count(b"i") == 1001
    for name in ("i" * 1001, ""):
        with pytest.raises(RecordRefused, match="must have 1 to 1000 characters"):
            shape.line({"text": "a", "id": name}, 0, TODAY)


@pytest.mark.parametrize(
    ("record", "judged"),
    [
        ({"ids": [1], "counts": [1 << 15]}, False),
        ({"ids": [1], "counts": [(1 << 15) + 1]}, True),
        ({"ids": [1, 2], "counts": [1 << 14, (1 << 14) + 1]}, True),
        ({"ids": [1] * ((1 << 15) + 1)}, True),
        ({"ids": [1]}, False),
    ],
)
def test_documents_of_many_tokens_are_judged(record, judged):
    asked = []

    def judge(line):
        asked.append(line)
        return "it is too much"

    shape = RecordShape((ids_field("w"), counts_field("n")), judge=judge)
    if judged:
        with pytest.raises(RecordRefused, match="field 'ids': it is too much"):
            shape.line(record, 3, TODAY)
        [line] = asked
        assert json.loads(line)["w"] == record["ids"]
    else:
        assert shape.line(record, 3, TODAY)[0] == TODAY
        assert asked == []


@pytest.mark.parametrize("more", [0, 1])
def test_long_lines_are_judged(more):
    around = len(b'{"text":""}\n')
    shape = RecordShape(judge=lambda line: f"it has {len(line)} bytes")
    record = {"text": "a" * ((1 << 15) - around + more)}
    if more:
        with pytest.raises(RecordRefused, match=r"document 0, field 'text': it has 32769 bytes"):
            shape.line(record, 0, TODAY)
    else:
        assert len(shape.line(record, 0, TODAY)[1]) == 1 << 15


def test_counts_are_as_many_as_ids_or_ones():
    shape = RecordShape((ids_field("w"), counts_field("n")))
    assert json.loads(shape.line({"ids": [7, 8]}, 0, TODAY)[1]) == {"w": [7, 8], "n": [1, 1]}
    sent = {"ids": [7, 8], "counts": [3, 4]}
    assert json.loads(shape.line(sent, 0, TODAY)[1]) == {"w": [7, 8], "n": [3, 4]}
    with pytest.raises(
        RecordRefused, match="'counts': it has 1 entries, expected 2, as many as 'ids'"
    ):
        shape.line({"ids": [7, 8], "counts": [3]}, 0, TODAY)


def test_where_nothing_is_taken_the_first_reason_is_said():
    shape = RecordShape()
    with pytest.raises(InvalidInput) as refused:
        shape.submission([{}, {"text": 1}], new_receipt(0), False, TODAY, skip_bad=True)
    assert str(refused.value) == (
        "there are no valid documents; document 0, field 'text': it is missing; send at least one"
    )
    with pytest.raises(InvalidInput, match="^there are no valid documents; send at least one$"):
        shape.submission([], new_receipt(0), False, TODAY)


def test_a_document_that_is_no_object_is_said_without_a_field():
    with pytest.raises(RecordRefused) as refused:
        RecordShape().line([], 4, TODAY)
    assert str(refused.value) == "document 4: it is a list, expected an object with text"


def test_a_name_that_is_no_field_is_shown_by_its_beginning():
    with pytest.raises(RecordRefused, match="the fields are text, id, date") as refused:
        RecordShape().line({"text": "a", "z" * 99: 1}, 0, TODAY)
    assert refused.value.field == "z" * 60


def test_documents_of_too_many_days_are_refused():
    days = [{"text": "a", "date": f"2026-{1 + n // 28:02}-{1 + n % 28:02}"} for n in range(32)]
    one, _ = RecordShape().submission(days[1:], new_receipt(0), False, TODAY)
    assert len(one.pieces) == 31
    with pytest.raises(InvalidInput, match="have 32 dates"):
        RecordShape().submission(days, new_receipt(0), False, TODAY)


@pytest.mark.parametrize("shape", [RecordShape(), RecordShape(date_column="day")])
def test_the_day_of_arrival_is_no_other_content(shape):
    def digest(texts, today):
        records = [{"text": text} for text in texts]
        return shape.submission(records, receipt_of_key("k"), True, today)[0].digest

    assert digest(["a", "b"], TODAY) == digest(["a", "b"], date(2026, 11, 24))
    assert digest(["a", "b"], TODAY) != digest(["b", "a"], TODAY)


def test_a_content_has_the_digest_that_claims_of_it_have():
    """Lines that an earlier version wrote under the same key have the same content."""
    several = [{"text": "a"}, {"text": "b", "date": "2026-11-20"}]
    told = b'0 0\n{"text":"a"}\n1 %d\n{"text":"b"}\n' % date(2026, 11, 20).toordinal()
    one, _ = RecordShape().submission(several, receipt_of_key("k"), True, TODAY)
    assert one.digest == hashlib.sha256(told).hexdigest()


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


def test_a_line_has_up_to_8_mib_and_shapes_that_judge_alike_are_one():
    around = len(b'{"text":""}\n')
    record = {"text": "a" * ((8 << 20) - around)}
    assert len(RecordShape().line(record, 0, TODAY)[1]) == 8 << 20
    with pytest.raises(RecordRefused, match="field 'text': the document exceeds 8,388,608 bytes"):
        RecordShape().line({"text": record["text"] + "a"}, 0, TODAY)
    judging = RecordShape(judge=lambda line: None, light=7)
    assert (judging, repr(judging)) == (RecordShape(), repr(RecordShape()))


@pytest.mark.parametrize("shape", [RecordShape(), RecordShape(date_column="day")])
def test_another_day_or_another_place_is_another_content(shape):
    def digest(*records):
        return shape.submission(records, receipt_of_key("k"), True, TODAY, skip_bad=True)[0].digest

    undated, bad = {"text": "a"}, {"txt": "b"}
    dated = [{"text": "a", "date": f"2026-11-{day}"} for day in (20, 21, 23)]
    contents = [(undated,), *((one,) for one in dated), (bad, undated), (undated, undated)]
    assert len({digest(*records) for records in contents}) == len(contents)
    assert digest(undated, bad) == digest(undated)
    assert digest(*dated) == digest(*dated)


def test_a_refusal_comes_from_another_process_as_it_is():
    refused = RecordRefused(place=2, field="text", reason="it is missing", id="7")
    again = pickle.loads(pickle.dumps(refused))
    assert (str(again), again.place, again.id) == (str(refused), 2, "7")


def test_what_is_left_out_is_known_by_the_id_that_it_was_sent_under():
    ids = ["seven", 7, "x" * 1001, ["7"], 7.5, None]
    sent = [{"txt": "", "id": one} for one in ids]
    _, bad = RecordShape().submission(
        [*sent, {"txt": ""}, "id", {"text": "a"}], new_receipt(0), False, TODAY, skip_bad=True
    )
    assert [one.id for one in bad] == ["seven", "7", "x" * 1000, *[None] * 5]
    assert [(one.place, one.field) for one in bad[:2]] == [(0, "txt"), (1, "txt")]


def test_a_document_that_cannot_be_read_is_refused_with_the_reason():
    with pytest.raises(RecordRefused) as refused:
        RecordShape().line(Unreadable("it is no JSON"), 3, TODAY)
    assert str(refused.value) == "document 3: it is no JSON"
