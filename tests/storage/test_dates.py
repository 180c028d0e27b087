"""Dates of shards: in their URLs, in columns of Parquet, in fields of JSON Lines."""

import json
from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_shards import parquet, put

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.storage.dates import DateRange, DateSource
from streaming_moments.storage.documents import days_of
from streaming_moments.storage.shards import ShardFormat

FORM, COLUMN = ShardFormat(), DateSource(column="day")
days = st.dates(date(1990, 1, 1), date(2060, 12, 31))


@given(days, st.sampled_from(["%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "d=%d.%m.%Y"]))
def test_a_day_in_a_url_is_found_by_its_pattern(day, pattern):
    url = f"s3://corpus/{day.strftime(pattern)}/part-00017.parquet"
    assert DateSource(pattern=pattern).in_url(url) == DateRange(day, day)
    if pattern in ("%Y-%m-%d", "%Y/%m/%d"):
        assert DateSource().in_url(url) == DateRange(day, day)
    assert DateSource(pattern="none").in_url(url) is None


@pytest.mark.parametrize(
    "url",
    ["s3://c/part-1.parquet", "s3://c/2026-13-45.txt", "s3://c/12026-11-21.txt", "s3://c/2026-11"],
)
def test_what_is_no_date_is_none(url):
    assert DateSource().in_url(url) is None


def test_of_several_days_in_a_url_the_last_counts():
    url = "s3://exports-2026-01-01/2026/11/20/2026-11-21.txt"
    assert str(DateSource().in_url(url)) == "2026-11-21"


def test_patterns_that_say_too_little_are_refused():
    with pytest.raises(InvalidInput, match=r"'%Y-%m' needs %Y, %m and %d"):
        DateSource(pattern="%Y-%m")
    with pytest.raises(InvalidInput, match="a date column or a date pattern, not both"):
        DateSource("day", "%Y%m%d")


@given(st.lists(days, min_size=1, max_size=6))
@settings(max_examples=15)
def test_columns_of_every_kind_give_first_and_last_day(found):
    expected = DateRange(min(found), max(found))
    moments = [datetime(d.year, d.month, d.day, 23, 30, tzinfo=UTC) for d in found]
    east = timezone(timedelta(hours=5))
    columns = {
        "dates": pa.array([*found, None], pa.date32()),
        "times": pa.array([*(m.replace(tzinfo=None) for m in moments), None], pa.timestamp("us")),
        "zoned": pa.array([*moments, None], pa.timestamp("ms", tz="Asia/Tokyo")),
        "texts": pa.array([*(m.isoformat() for m in moments), None]),
        "words": pa.array([*(d.isoformat() for d in found), None]).dictionary_encode(),
    }
    content = parquet(2, **columns)
    shard = put("memory://days", "a.parquet", content)
    for name in columns:
        assert days_of(shard, FORM, DateSource(column=name)) == expected, name
    lines = [json.dumps({"day": d.isoformat()}) for d in found]
    lines += [json.dumps({"day": m.astimezone(east).isoformat()}) for m in moments]
    lines += ["", json.dumps({"day": None}), "{}"]
    shard = put("memory://days", "a.jsonl", "\n".join(lines).encode())
    assert days_of(shard, FORM, COLUMN) == expected


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.parquet", parquet(text=["x"]), r"no column 'day'; its columns are \['text"),
        ("a.parquet", parquet(day=[1.5]), "'day' is of type double, expected dates"),
        ("a.parquet", parquet(day=["soon"]), "a date .* give dates such as 2026"),
        ("a.parquet", parquet(day=pa.array([None], pa.date32())), "holds no dates"),
        ("a.parquet", b"PAR1 not", "cannot be read"),
        ("a.jsonl", b'{"day": "soon"}', "line 1: field 'day' .* give a date such as"),
        ("a.jsonl", b'{"day": 7}', "line 1: field 'day' does not begin with a date"),
        ("a.jsonl", b"{", "line 1 is not JSON"),
        ("a.jsonl", b'{"text": "x"}', "holds no dates"),
        ("a.csv", b"text,day\n", "leave out the shard if it has no documents"),
        ("a.txt", b"2026-11-21", "format text, which has no column 'day'"),
    ],
)
def test_dates_that_cannot_be_read_name_the_shard_and_the_remedy(name, content, said):
    shard = put("memory://days", f"bad/{name}", content)
    with pytest.raises(ShardError, match=said):
        days_of(shard, FORM, COLUMN)


ZONED = {
    "2026-11-21T23:30:00-05:00": "2026-11-22",
    "2026-11-21T01:30:00+05:00": "2026-11-20",
    "2026-11-21 23:30:00.5Z": "2026-11-21",
    "20261121T233000-0500": "2026-11-22",
    "2026-11-21T23:30:00": "2026-11-21",
    "2026-11-21 - Zurich, +5 degrees": "2026-11-21",
    "2026-11-21": "2026-11-21",
}


def as_shards(text, place):
    """A document and its day as text, in every format with columns of texts."""
    several = {
        "a.parquet": parquet(2, day=pa.array([text])),
        "b.parquet": parquet(2, day=pa.array([text, None]).dictionary_encode()),
        "c.parquet": parquet(2, day=pa.array([text], pa.large_string())),
        "d.jsonl": json.dumps({"day": text}).encode(),
        "e.csv": f'n,day\n1,"{text}"\n'.encode(),
        "f.tsv": f"n\tday\n1\t{text}\n".encode(),
    }
    return {name: put(f"memory://{place}", name, content) for name, content in several.items()}


@pytest.mark.parametrize(("text", "day"), ZONED.items())
def test_one_instant_as_text_is_of_one_day_in_every_format(text, day):
    found = {
        name: str(days_of(one, FORM, COLUMN)) for name, one in as_shards(text, "zoned").items()
    }
    assert found == dict.fromkeys(found, day)


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    st.integers(-23 * 60, 23 * 60),
    st.sampled_from("T "),
)
@settings(max_examples=30)
def test_texts_of_moments_are_of_the_day_of_the_moment(moment, minutes, between):
    moment = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = str(moment.astimezone(UTC).date())
    text = moment.isoformat(between)
    found = {
        name: str(days_of(one, FORM, COLUMN)) for name, one in as_shards(text, "drawn").items()
    }
    assert found == dict.fromkeys(found, expected)


def test_a_store_of_an_earlier_version_goes_on_by_its_own_rule():
    earlier = DateSource.from_json({"column": "day", "pattern": None})
    assert (earlier.zones, earlier.to_json()) == (False, {"column": "day", "pattern": None})
    assert DateSource.from_json(COLUMN.to_json()) == COLUMN
    assert DateSource.from_json({}) == DateSource()
    assert "zones" not in DateSource().to_json()
    several = as_shards("2026-11-21T23:30:00-05:00", "earlier")
    found = {name: str(days_of(one, FORM, earlier)) for name, one in several.items()}
    assert found.pop("d.jsonl") == "2026-11-22"
    assert set(found.values()) == {"2026-11-21"}


@pytest.mark.parametrize("text", ["0001-01-01T00:30+05:00", "9999-12-31T23:30-05:00", "soon"])
def test_a_text_of_no_day_is_refused_in_every_format(text):
    for shard in as_shards(text, "none").values():
        with pytest.raises(ShardError, match="does not begin with a date"):
            days_of(shard, FORM, COLUMN)
