"""Shards that are counted elsewhere are found in columns as one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.content_marks import tells_content
from streaming_moments.storage.log.forgotten import Forgotten, ForgottenShard
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of
from streaming_moments.storage.merging.counted_once import (
    counted_elsewhere,
    fresh_records,
    refusal,
    without_copies,
)

MARKS = [*(f"sha256:{number:064x}" for number in range(3)), "sha256:1", "etag:1-2"]
NAMES = ("a", "b", "c", "t/", "t/a", "t/b", "a#document")
RECORDS = st.builds(
    ShardRecord,
    st.sampled_from(NAMES),
    st.integers(1, 2),
    st.sampled_from(MARKS),
    st.integers(0, 1),
    st.integers(0, 1),
)
SEGMENTS = st.lists(RECORDS, max_size=6, unique_by=lambda one: one.url)


def part(letter, sign=1, origin=None):
    return SegmentReference(letter * 32, "0" * 64, 1, 1, 1, 7, sign=sign, origin=origin)


@settings(max_examples=30)
@given(SEGMENTS, SEGMENTS)
def test_of_new_records_those_counted_elsewhere_are_found(counted, news):
    others = Ledger({"a": table_of(counted)})
    contents = {(one.fingerprint, one.size) for one in counted if tells_content(one.fingerprint)}
    above = dict(others.overlaps([one.url for one in news]))
    wanted = [
        place
        for place, one in enumerate(news)
        if one.url in {other.url for other in counted}
        or one.url in above
        or (one.documents and (one.fingerprint, one.size) in contents)
    ]
    places, names = counted_elsewhere(others, table_of(news))
    assert places.tolist() == wanted
    assert set(names) <= {other.url for other in counted}


@settings(max_examples=30)
@given(SEGMENTS, SEGMENTS, SEGMENTS)
def test_segments_are_left_out_if_others_count_all_their_documents(counted, one, two):
    two = [record for record in two if record.url not in {other.url for other in one}]
    ledger = Ledger({"b" * 32: table_of(one), "c" * 32: table_of(two)})
    gone, names = without_copies([part("b"), part("c")], ledger, Ledger({"a": table_of(counted)}))
    marks = {(other.url, other.fingerprint) for other in counted}
    contents = {(o.fingerprint, o.size) for o in counted if tells_content(o.fingerprint)}
    for letter, records in (("b", one), ("c", two)):
        full = [record for record in records if record.documents]
        copied = [
            (record.url, record.fingerprint) in marks
            or (record.fingerprint, record.size) in contents
            for record in full
        ]
        assert (letter * 32 in gone) == (bool(full) and all(copied))
        assert {record.url for record in full} <= set(names) or letter * 32 not in gone


def test_fresh_is_what_a_difference_of_segments_adds():
    a, b, c = (ShardRecord(name, 1, "sha256:1", 1, 1) for name in "abc")
    tables = {"a": [a, b], "b": [b], "c": [a, c], "d": [c]}
    ledger = Ledger({letter * 32: table_of(records) for letter, records in tables.items()})
    plus, minus = part("a"), part("b", -1)
    # of a and b one was forgotten; then both are summed up with a new one, or it comes back
    for news, wanted in (([part("c")], "c"), ([plus], "b"), ([plus, minus, part("d")], "c")):
        fresh = fresh_records(ledger, news, [plus, minus])
        assert fresh["url"].to_pylist() == [wanted]
    assert fresh_records(ledger, [part("c")], [part("c")]).num_rows == 0


def test_what_was_forgotten_here_is_refused_unless_it_is_wanted_again():
    ledger = Ledger({"a" * 32: table_of([ShardRecord("a", 1, "sha256:1", 1, 1)])})
    parts, fresh = [part("a", origin="rome")], ledger.table
    gone = Forgotten().with_forgotten([ForgottenShard("a", "sha256:1", 1)])
    assert "rome counts shards that must not" in refusal(parts, ledger, gone, fresh, "rome")[0]
    assert refusal(parts, ledger, gone, fresh, "rome", again=True) is None
