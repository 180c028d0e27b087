"""URLs: one name for each shard, for any spelling and signature, and no secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.errors import InvalidInput, StoreError, printable
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.storage.files.backends import require_bucket_name
from streaming_moments.storage.files.filesystems import open_file_system
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.urls import (
    is_signed,
    require_no_secret,
    require_no_user,
    shard_name,
    without_secrets,
)
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore

SIGNATURES = {
    "S3": "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F2026&X-Amz-Date=2026&"
    "X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Security-Token=SECRET&X-Amz-Signature=SECRET",
    "S3, second version": "AWSAccessKeyId=AKIA&Signature=SECRET%3D&Expires=1790000000",
    "Google": "X-Goog-Algorithm=GOOG4&X-Goog-Credential=me%40x&X-Goog-Signature=SECRET",
    "Google, second version": "GoogleAccessId=me%40x&Expires=1790000000&Signature=SECRET",
    "Azure": "sv=2024-11-04&ss=b&srt=o&sp=r&se=2026-11-23&st=2026-11-22&spr=https&sr=b&sig=SECRET",
    "Azure, of a user": "skoid=1&sktid=2&skt=3&ske=4&sks=b&skv=5&sv=6&sr=b&sp=r&se=7&sig=SECRET",
    "CloudFront": "Policy=eyJ&Signature=SECRET&Key-Pair-Id=K2J",
}


@pytest.mark.parametrize("service", SIGNATURES)
def test_signatures_are_no_part_of_a_name(service):
    signed = SIGNATURES[service]
    place = "https://host/corpus/a.txt"
    assert shard_name(f"{place}?{signed}") == place
    assert shard_name(f"{place}?versionId=3&{signed}&part=1") == f"{place}?versionId=3&part=1"
    assert is_signed(f"{place}?{signed}")
    assert "SECRET" not in without_secrets(f"cannot get {place}?{signed} now")
    with pytest.raises(
        InvalidInput, match="query; give credentials in the storage options"
    ) as told:
        require_no_secret(f"{place}?{signed}")
    assert "SECRET" not in str(told.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://host/get?sp=1&page=2",
        "https://host/get?Policy=open&Expires=never",
        "https://host/a.txt?SIG=1&signature=2",
        "s3://corpus/a.txt?sig=7f",
        "/corpus/a.txt?X-Amz-Signature=7f",
        "https://[::1]:8080/a.txt",
    ],
)
def test_all_else_is_part_of_it(url):
    assert shard_name(url) == url
    assert not is_signed(url)


def test_hosts_are_spelled_in_one_way():
    for spelling in (
        "http://LOCALHOST/A.txt",
        "HTTP://localhost:80/A.txt",
        "http://localhost/A.txt#2",
    ):
        assert shard_name(spelling) == "http://localhost/A.txt"
    assert shard_name("https://Host:443?x=1") == "https://host?x=1"
    assert shard_name("https://host:80/a") == "https://host:80/a"


@pytest.mark.parametrize(
    "url",
    [
        "http://me:SECRET@host/a.txt",
        "HTTPS://SECRET@host/a.txt",
        "s3://key:SECRET@bucket/a.txt",
        "ftp://me:SEC@RET@host",
        "http://me:SECRET/more@host/a.txt",
        "http://me:SECRET#more@host/a.txt",
        "simplecache::http://me:SECRET@host/a.txt",
        "http://host/a.txt?from=http://me:SECRET@other/",
        "abfs://box:SECRET@account/a.txt",
        "http://me:SEC\nRET@host/a.txt",
    ],
)
def test_users_and_passwords_are_refused_unnamed(url):
    for refuse in (require_no_user, require_no_secret):
        with pytest.raises(InvalidInput, match="give credentials in the storage options") as told:
            refuse(url)
        assert "SEC" not in str(told.value)
        assert told.value.__cause__ is None
        assert told.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    ["a@b.txt", "/corpus/me:you@host.txt", "s3://corpus/me@host.txt", "file:///a@b", "http://h:8/a@b",
     "abfs://box@account.dfs.core.windows.net/a@b.txt", "http://[::1]:8080/a", "memory://a/b@c"],
)  # fmt: skip
def test_other_ats_are_names(url):
    require_no_user(url)


@given(st.text(st.characters(codec=None), max_size=20))
def test_what_is_printed_has_no_control_characters(text):
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert text != shown or text.isprintable()


@given(st.binary(max_size=20))
def test_any_local_name_has_a_name_in_utf_8(content):
    path = "/corpus/" + content.decode(errors="surrogateescape")
    name = shard_name(path)
    name.encode()
    try:
        assert name == "/corpus/" + content.decode()
    except UnicodeDecodeError:
        assert "\\x" in name


@pytest.mark.parametrize("protocol", ["s3", "S3", "s3a", "gs", "gcs", "az", "abfs"])
@pytest.mark.parametrize("rest", ["///corpus/a.txt", "//", "/corpus/a.txt", "corpus/a.txt"])
def test_a_url_of_a_bucket_names_one(protocol, rest):
    url = f"{protocol}:{rest}"
    told = f"names no bucket; write {protocol.lower()}://BUCKET/FOLDER"
    for refused, call in (
        (InvalidInput, lambda: list_shards([url])),
        (InvalidInput, lambda: list_shards([f"{url}/*.txt"])),
        (InvalidInput, lambda: open_file_system(url, None)),
        (StoreError, lambda: MomentStore.open(url)),
    ):
        with pytest.raises(refused, match=told):
            call()
    with pytest.raises(InvalidInput, match=rf"^n\.toml: store: .*{told}"):
        config_of(
            {"store": url, "shards": "*.txt", "output": "r", "refit": {"topics": 5}}, "n.toml"
        )


def test_a_bucket_has_no_space_and_no_wildcard_is_proposed_as_one():
    with pytest.raises(InvalidInput, match="has a space in the name of its bucket"):
        require_bucket_name("s3://my corpus/a.txt")
    with pytest.raises(InvalidInput, match="FOLDER$"):
        require_bucket_name("s3:///*.txt")
    for fine in ("s3://corpus", "s3a.txt", "./s3:/corpus", "memory:///corpus", "a:b", "C:/corpus"):
        assert require_bucket_name(fine) == fine


def test_an_endpoint_that_a_client_refuses_is_no_fault_of_the_package(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    with pytest.raises(StoreError, match="Invalid endpoint.*begin AWS_ENDPOINT_URL with http://"):
        Folder.at("s3://corpus/store").require_bucket()


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("http://localhost:abc", "the port of the endpoint is not a number up to 65535: correct"),
        ("http://localhost:99999", "the port of the endpoint is not a number up to 65535: correct"),
        (
            "http://localhost:9000?a=1",
            "write the endpoint as http://HOST:PORT in AWS_ENDPOINT_URL or the storage",
        ),
    ],
)
def test_an_endpoint_with_a_wrong_port_is_named(endpoint, told, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(StoreError, match=told):
        Folder.at("s3://corpus/store", {"key": "k", "secret": "k", "token": endpoint}).read("a")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"endpont_url": "x"}, r"\(unknown option 'endpont_url'\); did you mean 'endpoint_url'\?"),
        (
            {"client_kwargs": {"endpont_url": "x"}},
            "did you mean 'endpoint_url'.* Otherwise correct or remove",
        ),
        ({"config_kwargs": {"read_timeot": 3}}, "did you mean 'read_timeout'"),
        ({"fish": 3}, r"\(unknown option 'fish'\); correct or remove this option"),
    ],
)
def test_a_misspelt_option_of_a_client_is_named_with_the_nearest(options, told):
    with pytest.raises(StoreError, match=told):
        Folder.at("s3://corpus/store", {"key": "k", "secret": "k"} | options).read("a")
