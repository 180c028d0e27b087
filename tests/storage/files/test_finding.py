"""Finding one by one gives the same files as fsspec's listings."""

import os
import uuid
from datetime import UTC, datetime

import fsspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from s3_server import S3Server

from streaming_moments.storage.files.listings import pages
from streaming_moments.storage.files.listings.finding import find_each, glob_each

NAMES = ("a.txt", "b.jsonl", "t[1]/a.txt", "t1/sub/c.txt", ".hid/d.txt", "t1/.e", "u/v/w/x.txt")


@pytest.fixture
def tree(tmp_path):
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "link").symlink_to(tmp_path / "t1")
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path)


PATTERNS = [
    *("*", "*.txt", "**", "**/*.txt", "*/*", "t?/*", "t[[]1]/*", "u/**", "u/**/x.txt", "*/sub/*"),
    *("a.txt/*", "absent/*", ".*", "[!a]*", "*/**"),
]


@pytest.mark.parametrize("folders", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_on_a_local_disk(tree, pattern, folders):
    fs = fsspec.filesystem("file")
    path = f"{tree}/{pattern}"
    expected = fs.glob(f"{path}/" if folders else path, detail=True)
    assert dict(glob_each(fs, path, folders)) == expected


def test_all_below_a_local_folder(tree):
    fs = fsspec.filesystem("file")
    assert dict(find_each(fs, tree)) == fs.find(tree, detail=True)


def test_no_pattern(tree):
    with pytest.raises(ValueError, match="'\\*\\*'"):
        glob_each(fsspec.filesystem("file"), f"{tree}/x**t", False)


@pytest.fixture(scope="module")
def bucket():
    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    fs = fsspec.filesystem(
        "s3",
        key="k",
        secret="s",
        endpoint_url=f"http://{host}:{port}",
        s3_additional_kwargs={"MaxKeys": 2},  # objects a page
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    name = uuid.uuid4().hex  # all servers of a process have the same buckets
    fs.mkdir(name)
    for each in NAMES:
        fs.pipe(f"{name}/{each}", each.encode())
    fs.touch(f"{name}/u/marker/")
    yield fs, name
    server.stop()


@pytest.mark.parametrize("folders", [False, True])
@pytest.mark.parametrize("pattern", [*PATTERNS, "t*/*", "u/v*/*/*.txt", "t1/s*/c.*"])
def test_a_pattern_on_s3_page_by_page(bucket, pattern, folders):
    fs, name = bucket
    path = f"{name}/{pattern}"
    expected = fs.glob(f"{path}/" if folders else path, detail=True)
    assert _told(glob_each(fs, path, folders)) == _told(expected.items())


@pytest.mark.parametrize("below", ["", "/u", "/t1", "/absent"])
def test_all_below_a_folder_on_s3_page_by_page(bucket, below):
    fs, name = bucket
    expected = fs.find(f"{name}{below}", detail=True)
    assert _told(find_each(fs, f"{name}{below}")) == _told(expected.items())


def test_no_time_of_s3_is_left_to_dateutil(bucket):
    fs, name = bucket
    # which has a time zone of its own
    assert {info["LastModified"].tzinfo for _, info in find_each(fs, name)} == {UTC}


@given(st.datetimes(min_value=datetime(1970, 1, 1)).map(lambda moment: f"{moment.isoformat()}Z"))
@example("2026-11-23T00:27:52.000Z")
@example("2026-11-23T00:27:52.123456789Z")
@example("2026-11-23T00:27:52+01:00")
@example("Mon, 23 Nov 2026 00:27:52 GMT")
@example("20261123")
@example("1795393672.5")
@example(1795393672)
def test_a_time_is_read_as_the_client_of_s3_reads_it(told):
    expected = pytest.importorskip("botocore.utils").parse_timestamp(told)
    found = pages._time_of(told)
    assert (found, str(found)) == (expected, str(expected))


def _told(found):
    """Map each name to its listed information, and check that no name is listed twice."""
    listed = [(name, info["type"], info["size"], info.get("ETag")) for name, info in found]
    return sorted(listed, key=str)
