"""Appended: finds the bytes appended to a counted file, or that the file has changed."""

import gzip
import uuid

import fsspec
import pytest

from streaming_moments.errors import ShardError
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of
from streaming_moments.storage.operations.appended import (
    Appended,
    Longer,
    appended_to,
    counted_part,
    counted_shards,
    is_longer,
)
from streaming_moments.storage.shards import Shard, ShardFormat, fingerprint


@pytest.fixture
def path():
    return f"/{uuid.uuid4().hex}.txt"


def write(path, content):
    fsspec.filesystem("memory").pipe(path, content)
    return Shard(f"memory://{path}", len(content))


def record(part):
    return ShardRecord(part.url, part.size, fingerprint(part), 1, 1)


def came(path, counted, content, bound=100):
    """The part appended to a file after some bytes were counted."""
    records = (record(write(path, counted)),)
    return appended_to(Longer(write(path, content), records, ShardFormat(), bound))


def test_nothing_came_to_a_file_that_is_as_it_was(path):
    assert came(path, b"law\nsea\n", b"law\nsea\n") == Appended(None, 0)
    # nor behind a line without its end
    assert came(path, b"law\nsea", b"law\nsea") == Appended(None, 0)
    assert came(path, b"law\nsea", b"law\nsea\n") == Appended(None, 0)
    assert came(path, b"law\nsea\n", b"law\n") is None
    assert came(path, b"law\nsea", b"law\nseal") is None
    assert came(path, b"law\nsea", b"law\nsea\r") is None


def test_whole_records_that_came_are_a_part_and_the_rest_waits(path):
    part = came(path, b"law\n", b"law\nsea\nship\nta")
    assert part == Appended(Shard(f"memory://{path}#bytes=4", 9), 2)
    assert part.part.read_at == ""
    assert came(path, b"law\n", b"law\nta") == Appended(None, 2)
    assert came(path, b"law\n", b"law\nta", 2) == Appended(None, 2)
    with pytest.raises(ShardError, match="record that begins at byte 4 has no end within 1 bytes"):
        came(path, b"law\n", b"law\nta", 1)
    with pytest.raises(ShardError, match="record that begins at byte 8 has no end within 1 bytes"):
        came(path, b"law\n", b"law\nsea\nta", 1)


def test_a_part_follows_the_parts_before_it_and_is_read_where_the_file_is(path):
    content = b"law\nsea\nship\n"
    first = record(write(path, content[:4]))
    write(path, content[:8])
    records = (first, record(Shard(f"memory://{path}#bytes=4", 4)))
    write(path, content)
    shard = Shard("s3://elsewhere/a.txt", len(content), None, f"memory://{path}")
    named = tuple(
        ShardRecord(f"s3://elsewhere/a.txt{end}", one.size, one.fingerprint, 1, 1)
        for end, one in zip(("", "#bytes=4"), records, strict=True)
    )
    found = appended_to(Longer(shard, named, ShardFormat(), 100))
    assert found.part == Shard("s3://elsewhere/a.txt#bytes=8", 5)
    assert found.part.read_at == f"memory://{path}#bytes=8"
    write(path, content[:-1])
    shorter = Shard(f"memory://{path}", 7)
    assert appended_to(Longer(shorter, records, ShardFormat(), 100)) is None


def test_files_that_do_not_grow_by_records_are_others(path):
    packed = path + ".gz"
    content = gzip.compress(b"law\n")
    assert came(packed, content, content + gzip.compress(b"sea\n")) is None
    parquet = path.replace(".txt", ".parquet")
    assert came(parquet, b"PAR1", b"PAR1PAR1") is None
    web = Longer(
        Shard("http://127.0.0.1:9/a.txt", 9),
        (ShardRecord("http://127.0.0.1:9/a.txt", 4, "sha256:0", 1, 1),),
        ShardFormat(),
        100,
    )
    assert appended_to(web) is None


def test_a_file_may_have_grown_if_it_is_longer_and_only_its_bytes_tell():
    record = ShardRecord("/a.txt", 10, "sha256:0", 1, 1)
    assert [is_longer(Shard("/a.txt", size), record) for size in (9, 10, 11)] == [
        False,
        False,
        True,
    ]
    assert not is_longer(Shard("/a.txt", 11, "d41d"), record)
    assert not is_longer(Shard("/a/", 11), record)


def test_of_a_file_that_grew_each_part_that_was_counted_is_a_shard():
    records = [
        ShardRecord(url, size, "sha256:0", 1, 1)
        for url, size in (
            ("/a.txt", 10),
            ("/a.txt#bytes=10", 5),
            ("/b.txt", 10),
            ("/c.txt#document", 3),
            ("/d.txt", 10),
            ("/e.txt#bytes=4", 6),
        )
    ]
    ledger = Ledger({"0a": table_of(records)})
    a, e = Shard("/a.txt", 30), Shard("/e.txt", 10, None, "/mnt/e.txt")
    same, longer, unknown = Shard("/b.txt", 10), Shard("/d.txt", 12), Shard("/f.txt", 5)
    text, elsewhere = Shard("/c.txt", 3, "x"), Shard("/c.txt", 3, "x", "/mnt/c.txt")

    def counted(*shards):
        return list(counted_shards(ledger, shards))

    assert counted(same, unknown) == [same, unknown]
    assert counted(a) == [counted_part(a, records[0]), counted_part(a, records[1])]
    several = counted(longer, e, text, elsewhere)
    assert several == [
        Shard("/d.txt", 10),
        Shard("/e.txt#bytes=4", 6),
        *[Shard("/c.txt#document", 3, "x")] * 2,
    ]
    # in which shards that are equal may differ
    places = ["/d.txt#bytes=0", "/mnt/e.txt#bytes=4", "", "/mnt/c.txt#document"]
    assert [one.read_at for one in several] == places


def test_what_comes_behind_the_listed_end_is_not_seen(path):
    counted = (record(write(path, b"law")),)
    write(path, b"law\nsea\nship\n")
    for size, found in ((3, Appended(None, 0)), (4, Appended(None, 0)), (7, Appended(None, 3))):
        shard = Shard(f"memory://{path}", size)
        assert appended_to(Longer(shard, counted, ShardFormat(), 100)) == found
    shard = Shard(f"memory://{path}", 8)
    part = appended_to(Longer(shard, counted, ShardFormat(), 100)).part
    assert part == Shard(f"memory://{path}#bytes=4", 4)
