"""Shard tables: equal to lists of shards after slicing, joining and pickling."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.storage.files.urls import is_utf8, shard_name
from streaming_moments.storage.shard_table import ShardTable
from streaming_moments.storage.shards import Shard


@st.composite
def named(draw):
    """A shard with one of few names; some are not UTF-8, and look like another name."""
    source = draw(st.sampled_from(["/a", "/b/", "/c\udce9", "/c\\xe9", "http://h/x?sig=7f", "/é"]))
    name = shard_name(source)
    etag = draw(st.none() | st.sampled_from(["d41d", "0x8D"]))
    return Shard(name, draw(st.integers(0, 2**40)), etag, "" if name == source else source)


SHARDS = st.lists(named(), max_size=12)


def rows(shards):
    return [(one.url, one.size, one.etag, one.read_at) for one in shards]


@given(SHARDS, st.slices(12))
def test_rows_come_out_as_they_went_in(shards, part):
    table = ShardTable.of(iter(shards))
    assert rows(table) == rows(shards)
    assert rows(table[part]) == rows(shards[part])
    assert rows(pickle.loads(pickle.dumps(table[part]))) == rows(shards[part])
    assert [table[place] for place in range(-len(shards), len(shards))] == shards * 2
    assert table == shards
    assert table.sizes.tolist() == [one.size for one in shards]
    marked = [f"etag:{s.etag}" if s.etag and not s.url.endswith("/") else None for s in shards]
    assert table.marks.to_pylist() == marked


def test_a_slice_is_sent_alone():
    table = ShardTable.of(Shard(f"s3://bucket/{place}", place) for place in range(100_000))
    assert len(pickle.dumps(table[7:107])) < 10_000


@given(st.lists(SHARDS, max_size=3))
def test_joined_tables_have_each_shard_once_as_it_was_listed_last(lists):
    each = [one for shards in lists for one in shards]
    last = {one.url if is_utf8(one.source) else one.source: one for one in each}
    joined = rows(ShardTable.joined(map(ShardTable.of, lists)))
    assert sorted(joined, key=str) == sorted(rows(last.values()), key=str)
    assert [url for url, *_ in joined] == sorted(url for url, *_ in joined)
