"""Back ends of storage: one row for each, with all names of its client."""

import errno
import os
import uuid

import fsspec
import pytest
from s3_server import S3Server, with_bucket
from s3fs import S3FileSystem

from streaming_moments.errors import ShardError, StoreError
from streaming_moments.storage.files.backends import (
    BACKENDS,
    backend_of,
    client_options,
    remedy_of,
)
from streaming_moments.storage.files.filesystems import open_file_system
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards

PROTOCOLS = [name for one in BACKENDS for name in sorted(one.protocols)]


def test_a_protocol_is_of_one_back_end():
    assert len(PROTOCOLS) == len(set(PROTOCOLS))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_client_of_a_protocol_has_its_row_by_any_of_its_names(protocol):
    try:
        client = fsspec.get_filesystem_class(protocol)
    except ImportError:
        pytest.skip(f"no client of {protocol} is installed")
    found = backend_of(client)
    assert protocol in found.protocols
    names = {client.protocol} if isinstance(client.protocol, str) else {*client.protocol}
    assert names <= found.protocols


def test_small_files_of_object_stores_get_a_connection_each():
    fs, _ = open_file_system("s3://bucket/store", {"key": "k", "config_kwargs": {"retries": {}}})
    assert fs.config_kwargs == {"max_pool_connections": 64, "retries": {}}
    own = {"config_kwargs": {"max_pool_connections": 3}}
    assert client_options("s3", own) == own
    assert client_options("memory", {}) == {}


def test_what_is_not_in_the_table_is_looked_at_before_it_is_created():
    assert backend_of(fsspec.get_filesystem_class("zip")).creates == "look"


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "Unable to locate credentials); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or"),
        ({"AWS_PROFILE": "absent"}, "set AWS_PROFILE to a profile of ~/.aws/config, or unset it"),
        ({"AWS_ENDPOINT_URL": "localhost:9000"}, "begin AWS_ENDPOINT_URL with http:// or https://"),
    ],
)
def test_an_error_of_the_environment_names_the_variable_to_set(
    monkeypatch, tmp_path, environment, told
):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    files = {"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"}
    places = {name: str(tmp_path / file) for name, file in files.items()}
    for name, text in {**environment, **places, "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, text)
    S3FileSystem.clear_instance_cache()
    with pytest.raises(ShardError) as missed:
        list_shards(["s3://bucket/shards/*.txt"])
    assert told in str(missed.value)
    with pytest.raises(StoreError) as missed:
        Folder.at("s3://bucket/store").find("a.txt")
    assert told in str(missed.value)
    S3FileSystem.clear_instance_cache()


def test_an_unknown_option_of_the_client_is_named_with_the_place_to_correct_it():
    with pytest.raises(
        StoreError, match="'endpoint_ur'.*'endpoint_url'.*correct or remove this option"
    ):
        Folder.at("s3://bucket/store", {"endpoint_ur": "x"}).find("a.txt")


def test_a_missing_permission_of_a_local_disk_names_the_user_and_the_owner(tmp_path):
    tmp_path.chmod(0o750)
    user = f"check the permissions: this process runs as user {os.geteuid()}"
    owner = f"{tmp_path} belongs to user {tmp_path.stat().st_uid} (mode 750)"
    for place in (tmp_path, tmp_path / "store" / ".a.txt.partial"):
        error = PermissionError(errno.EACCES, "Permission denied", str(place))
        assert remedy_of(error) == f"{user}, and {owner}"
    assert remedy_of(PermissionError(errno.EPERM, "Operation not permitted")) == user
    assert remedy_of(PermissionError("Access Denied")) == (
        "check the credentials and their permissions"
    )


def test_a_file_on_s3_is_read_in_one_request(monkeypatch):
    server, asked, call = S3Server(), [], S3FileSystem._call_s3
    server.start()
    options = with_bucket(*server.get_host_and_port(), "bucket")
    # in capitals it is the same scheme
    folder = Folder.at(f"S3://bucket/{uuid.uuid4().hex}", options)
    folder.write("a.txt", b"law")
    folder.write("empty.txt", b"")

    async def noted(fs, method, *given, **named):
        asked.append(method)
        return await call(fs, method, *given, **named)

    monkeypatch.setattr(S3FileSystem, "_call_s3", noted)
    assert folder.find("a.txt") == b"law"
    assert folder.find_all(["a.txt", "empty.txt", "b.txt"]) == [b"law", b"", None]
    assert folder.find_all(["a.txt"], [2]) == [b"la"]
    assert asked == ["get_object"] * 5
    server.stop()
