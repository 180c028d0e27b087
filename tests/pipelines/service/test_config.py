"""The configuration: each default, and the ends of what each key takes."""

from dataclasses import asdict, fields
from datetime import timedelta

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.nightly import config as nightly_config
from streaming_moments.pipelines.nightly.config import ClusterSection, NightlyConfig, read_config
from streaming_moments.pipelines.service import config
from streaming_moments.pipelines.service.config import (
    ListenSection,
    ServiceConfig,
    night_of,
    read_service,
    service_of,
    unused_options,
)

SECRET = {"key": "planted-secret"}


def of(**content):
    return service_of({"store": "s", **content}, "service.toml")


def test_what_is_not_given_has_its_default():
    assert asdict(of()) == {
        "store": "s",
        "inbox": None,
        "tokens": None,
        "tag": "published",
        "window": timedelta(milliseconds=50),
        "refresh": timedelta(seconds=2),
        "listen": {
            "host": "127.0.0.1",
            "port": 8080,
            "certificate": None,
            "key": None,
            "origins": (),
        },
        "limits": {
            "body": 16 * 2**20,
            "document": 2**20,
            "documents": 10_000,
            "texts": 1000,
            "days": 366,
            "inbox": 2**30,
            "inbox_age": timedelta(minutes=15),
            "seconds": timedelta(seconds=30),
            "requests": 64,
            "connections": 1000,
            "drain": timedelta(seconds=30),
        },
        "accumulate": {
            "within": True,
            "seal_after": timedelta(seconds=10),
            "seal_documents": 10_000,
            "seal_bytes": 64 * 2**20,
            "lock_expiry": timedelta(minutes=5),
            "hung_after": timedelta(hours=1),
            "night": None,
            "refit_documents": None,
            "refit_every": None,
        },
        "keep": {"keys": timedelta(days=90), "documents": None},
        "cluster": asdict(ClusterSection()),
        "documents": None,
        "sample_documents": True,
        "storage_options": {},
    }
    assert night_of(of()) is None


def test_a_file_is_read_as_its_content(tmp_path):
    (tmp_path / "service.toml").write_text('store = "s"\n[limits]\ndocuments = 5\n')
    assert read_service(tmp_path / "service.toml") == of(limits={"documents": 5})


def test_an_inbox_lies_beside_the_store_unless_it_is_named():
    assert of(store="s/").inbox_url == "s-inbox"
    assert of(inbox="elsewhere").inbox_url == "elsewhere"


@pytest.mark.parametrize(
    ("section", "key", "taken", "refused"),
    [
        ("listen", "port", (0, 65_535), (-1, 65_536)),
        ("limits", "seconds", ("1ms",), ("0s",)),
        ("limits", "document", ("16MiB",), (16 * 2**20 + 1,)),
        ("keep", "keys", ("1d",), ("23h",)),
        ("keep", "documents", ("1d",), ("23h",)),
        ("accumulate", "lock_expiry", ("1s", "365d"), ("0s", "366d")),
    ],
)
def test_a_value_at_the_end_of_its_range_is_taken_and_the_next_is_refused(
    section, key, taken, refused
):
    for value in taken:
        assert getattr(getattr(of(**{section: {key: value}}), section), key) is not None
    for value in refused:
        with pytest.raises(InvalidInput, match=rf"\[{section}\] {key} is ") as told:
            of(**{section: {key: value}})
        assert "timedelta" not in str(told.value)


@pytest.mark.parametrize("inbox", ["s", "./s/", "s/inbox", "s/../s/a/b"])
def test_an_inbox_in_the_folder_of_the_store_is_refused(inbox):
    with pytest.raises(InvalidInput, match="is in the folder of the store.* such as s-inbox"):
        of(inbox=inbox)
    assert of(inbox="s2").inbox_url == "s2"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"listen": {"prot": 1}}, "[listen] has no key 'prot'; did you mean 'port'?"),
        (
            {"keep": {"zzz": 1}},
            "[keep] has no key 'zzz'; only keys, documents",
        ),
        (
            {"listen": {"key": "k"}},
            "[listen] key is given without certificate; add certificate, a PEM file",
        ),
        (
            {"listen": {"origins": ["https://a"]}},
            "origins: pages of other web sites may call the service only with tokens; give tokens",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_section_and_key(content, told):
    with pytest.raises(InvalidInput) as refused:
        of(**content)
    assert told in str(refused.value).removeprefix("service.toml: ")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_only_this_machine_needs_no_tokens(host, loopback):
    assert ListenSection(host=host).is_loopback is loopback
    assert of(tokens="tokens.json", listen={"host": host}).listen.host == host
    if loopback:
        assert of(listen={"host": host}).tokens is None
    else:
        with pytest.raises(InvalidInput, match="there are no tokens"):
            of(listen={"host": host})


def test_what_belongs_together_is_given_together():
    both = {"certificate": "c", "key": "k"}
    assert of(listen=both).listen.key == "k"
    assert of(tokens="t", listen={"origins": ["https://a"]}).listen.origins == ("https://a",)
    night = {"night": "n", "refit_documents": 1}
    assert of(accumulate=night).accumulate.refit_documents == 1
    assert of(accumulate={"night": "n", "refit_every": "1h"}).accumulate.night == "n"
    with pytest.raises(
        InvalidInput, match="night is given without a time when it runs; add refit_"
    ):
        of(accumulate={"night": "n"})
    for alone in ({"refit_documents": 1}, {"refit_every": "1h"}):
        with pytest.raises(InvalidInput, match="is given without a nightly run; add the conf"):
            of(accumulate=alone)


def test_each_of_the_two_configurations_is_recognised_in_place_of_the_other(tmp_path):
    night, service = tmp_path / "night.toml", tmp_path / "service.toml"
    night.write_text('store = "s"\nshards = "*"\noutput = "r"\n[refit]\ntopics = 2\n')
    service.write_text('store = "s"\ntokens = "t"\n[listen]\nport = 80\n')
    with pytest.raises(InvalidInput) as refused:
        read_service(night)
    assert str(refused.value) == (
        f"{night} is the configuration of a night, for `streaming-moments nightly {night}`; give "
        "the configuration of a service, such as service.toml"
    )
    with pytest.raises(InvalidInput) as refused:
        read_config(service)
    assert str(refused.value) == (
        f"{service} is the configuration of a service, for `streaming-moments serve {service}`; "
        "give the configuration of a night, such as night.toml"
    )
    read_service(service)
    read_config(night)
    # each key that marks one is of that one alone
    nights, services = (
        {one.name for one in fields(kind)} for kind in (NightlyConfig, ServiceConfig)
    )
    assert config._NIGHT.marks <= nights - services
    assert nightly_config._SERVICE.marks <= services - nights


def test_no_secret_is_shown():
    assert "planted-secret" not in repr(of(storage_options=SECRET))
    assert of(storage_options=SECRET).storage_options == SECRET


def test_storage_options_that_neither_paths_nor_shards_use_are_named():
    given = {"store": "s", "storage_options": {"key": "hushhush"}}
    config = service_of(given, "s.toml")
    line = unused_options(config, ["/shards/a"])
    assert line.startswith("[storage_options] key has no effect, because all paths are local")
    assert "hushhush" not in line
    assert not unused_options(config, ["/shards/a", "s3://shards/b"])
    assert not unused_options(service_of({"store": "s"}, "s.toml"), ["/shards/a"])
    assert not unused_options(service_of(given | {"inbox": "s3://b/i"}, "s.toml"), [])
