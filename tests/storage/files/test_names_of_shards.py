"""Files of a folder have the same names as in listings of shards."""

import pytest

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards

OF_BUCKETS = {
    "s3a://bucket/in": "s3://bucket/in",
    "gcs://bucket/in": "gs://bucket/in",
    "az://bucket/in": "abfs://bucket/in",
}


@pytest.mark.parametrize("url", OF_BUCKETS)
def test_a_protocol_of_several_names_is_known_by_the_first(url):
    options = {"account_name": "nobody"} if url.startswith("az") else {"anon": True}
    options = {"token": "anon"} if url.startswith("gcs") else options
    assert Folder.at(url, options).shard("a.txt") == f"{OF_BUCKETS[url]}/a.txt"


def test_a_folder_of_this_machine_and_of_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in ("in", "file://" + str(tmp_path / "in"), "memory://names/in"):
        folder = Folder.at(url)
        folder.write("a.txt", b"law")
        (listed,) = list_shards([f"{url}/a.txt"])
        assert folder.shard("a.txt") == listed.url
