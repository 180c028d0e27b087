"""The ledger: names of earlier versions, copies, folders, and refused commits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.log.ledger import (
    CopiesCounted,
    Ledger,
    ShardRecord,
    ShardsAlreadyCounted,
    table_of,
)
from streaming_moments.storage.shard_table import ShardTable
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import append, create, forget, record, segment

SIGNED = "http://Host:80/a.txt?X-Amz-Expires=60&X-Amz-Signature=7f&part=1"
MD5 = "etag:d41d8cd98f00b204e9800998ecf8427e"


@pytest.fixture
def store(tmp_path):
    return create(tmp_path / "store")


def test_a_name_kept_with_its_signature_is_found_by_the_one_without(store):
    append(store, {SIGNED: 1, "/corpus/b.txt": 2})
    opened = MomentStore.open(store.url)
    name = "http://host/a.txt?part=1"
    assert {one.url for one in opened.ledger()} == {name, "/corpus/b.txt"}
    assert opened.ledger().counted([name]) == (name,)
    with pytest.raises(ShardsAlreadyCounted, match="part=1"):
        append(opened, {name: 1})
    without = MomentStore.open(forget(opened, {name: 1}).url)
    assert [one.url for one in without.ledger()] == ["/corpus/b.txt"]
    assert without.verify() == []


def of(url, mark, size=3):
    return ShardRecord(url, size, mark, 1, 1)


@pytest.mark.parametrize(
    ("mark", "size", "told"),
    [
        (MD5, 3, True),
        (MD5 + "-12", 3, True),
        ("etag:1B2M2Y8AsgTpgAmY7PhCfg==", 3, True),
        ("sha256:" + "0" * 64, 3, True),
        (MD5, 4, False),
        ("etag:65f1a2b3-1f4", 3, False),
        ("etag:0x8DC5A2B3C4D5E6F", 3, False),
        ('etag:W/"d41d8cd98f00b204e9800998ecf8427e', 3, False),
    ],
)
def test_copies_are_told_by_marks_of_content_and_sizes(mark, size, told):
    ledger = Ledger({"0": table_of([of("a", mark), of("x", "sha256:" + "1" * 64)])})
    new = of("b", mark, size)
    assert ledger.copies([new]) == ((("b", "a"),) if told else ())
    assert ((mark, size) in ledger.contents()) == told
    # once it is counted, too, and of two new ones all but the first
    grown = Ledger({**ledger.tables, "1": table_of([new, of("c", mark, size)])})
    assert grown.copies([new, of("c", mark, size)]) == (
        (("b", "a"), ("c", "a")) if told else (("c", "b"),) * (size == 4)
    )
    assert grown.copies([of("a", mark)], away={"b", "c"}) == ()


def test_folders_and_what_is_in_them_overlap():
    ledger = Ledger({"0": table_of([of("/t/", MD5), of("s3://b/x/a.txt", MD5), of("/tt/a", MD5)])})
    assert ledger.overlaps(["/t/sub/a.txt", "/t", "/t/", "/tt/", "s3://b/y.txt"]) == (
        ("/t/sub/a.txt", "/t/"),
        ("/tt/", "/tt/a"),
    )
    assert ledger.overlaps(["s3://b/", "s3://b/x/a.txt"]) == (("s3://b/", "s3://b/x/a.txt"),)


PATHS = st.lists(st.sampled_from(["/t", "/t/", "/t/a", "/t/b/", "/t/b/c", "/tt/", "/u/t/"]))


@given(PATHS, PATHS)
def test_overlaps_are_those_of_prefixes(counted, urls):
    ledger = Ledger({"0": table_of([of(url, MD5) for url in dict.fromkeys(counted)])})
    expected = {
        (url, other)
        for url in urls
        for other in counted
        if url != other
        and (
            (other.endswith("/") and url.startswith(other))
            or (url.endswith("/") and other.startswith(url))
        )
    }
    assert set(ledger.overlaps(urls)) == expected
    given_as_column = ShardTable.of(Shard(url, 3) for url in urls).urls
    assert ledger.overlaps(given_as_column) == ledger.overlaps(urls)


@given(PATHS, PATHS)
def test_records_beside_urls_are_those_found_one_by_one(counted, urls):
    records = [of(url, MD5, place) for place, url in enumerate(dict.fromkeys(counted))]
    ledger = Ledger({str(place): table_of([one]) for place, one in enumerate(records)})
    beside = ledger.beside(urls).to_pylist()
    found = [ledger.find(url) for url in urls]
    assert [row["size"] is not None and ShardRecord(**row) for row in beside] == [
        one is not None and one for one in found
    ]


def test_contents_of_some_sizes():
    ledger = Ledger({"0": table_of([of("a", MD5, 1), of("b", MD5, 2), of("c", "etag:x", 2)])})
    assert ledger.contents(np.array([2, 3, 2])) == {(MD5, 2): "b"}
    assert ledger.contents() == {(MD5, 1): "a", (MD5, 2): "b"}


def test_commits_refuse_overlaps_and_copies_whoever_was_quicker(store, monkeypatch):
    stale = store
    append(store, {"/t/": 1, "/x.txt": 2})
    with pytest.raises(InvalidInput, match=r"/t/a\.txt lies within /t/, which is counted"):
        append(stale, {"/t/a.txt": 3})
    with pytest.raises(InvalidInput, match=r"/ holds /t/, which is counted; / holds /x\.txt"):
        append(stale, {"/": 3})
    monkeypatch.setattr("streaming_moments.storage.log.ledger.tells_content", lambda mark: True)
    copy = segment(stale, {"/y.txt": 2})
    with pytest.raises(CopiesCounted, match=r"/y\.txt has the same content as /x\.txt"):
        stale.append(copy, unique=True)
    assert stale.latest().version == 1
    assert stale.append(copy).version == 2
    twins = segment(stale, {"/z.txt": 5, "/w.txt": 5})
    with pytest.raises(CopiesCounted, match=r"/w\.txt has the same content as /z\.txt"):
        stale.append(twins, unique=True)
    assert record("/y.txt", 2) in set(stale.latest().ledger())
