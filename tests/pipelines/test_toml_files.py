"""Files in TOML: what is wrong is told alike of a night and of a service."""

import re
from dataclasses import fields
from datetime import date

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.nightly.config import NightlyConfig, config_of, read_config
from streaming_moments.pipelines.service.config import ServiceConfig, read_service, service_of
from streaming_moments.pipelines.toml_files import _section

NIGHT = {"store": "s", "shards": ["a/*.txt"], "output": "r", "refit": {"topics": 5}}
SERVICE = {"store": "s"}
FILES = [
    pytest.param(config_of, NIGHT, id="night"),
    pytest.param(service_of, SERVICE, id="service"),
]
KINDS = [
    pytest.param(NightlyConfig, config_of, NIGHT, id="night"),
    pytest.param(ServiceConfig, service_of, SERVICE, id="service"),
]
READERS = pytest.mark.parametrize("read", [read_config, read_service], ids=["night", "service"])


def refusal(read, content):
    with pytest.raises(InvalidInput) as refused:
        read(content, "n.toml")
    assert "\n" not in str(refused.value)
    assert "Value error" not in str(refused.value)
    return str(refused.value).removeprefix("n.toml: ")


@pytest.mark.parametrize(("read", "least"), FILES)
@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"cluster": {"memory": "much"}}, "[cluster] memory: 'much' is not a size above 0"),
        ({"cluster": {"workers": -3}}, "[cluster] workers is -3: write 0 or more"),
        ({"cluster": {"workers": "two"}}, "[cluster] workers is 'two': write a whole number"),
        ({"cluster": {"scheduler": ""}}, "[cluster] scheduler is '': write text that is not empty"),
        ({"cluster": {"workers": True}}, "[cluster] workers is true: write a whole number"),
        ({"cluster": {"memory": True}}, "[cluster] memory: 'true' is not a size above 0"),
        ({"cluster": {"wrokers": 3}}, "[cluster] has no key 'wrokers'; did you mean 'workers'?"),
        ({"cluster": {"x": 3}}, "[cluster] has no key 'x'; only scheduler, workers, memory, "),
        ({"cluster": 3}, "[cluster] is 3: write a section with keys of its own"),
        ({"cluster": {"x": 3, "y": 4}}, "[cluster] has no key 'x', 'y'; only scheduler, workers"),
        ({"cluter": {}}, "the top level has no key 'cluter'; did you mean 'cluster'?"),
        ({"tag": "a/b"}, "tag: "),
        ({"sample_documents": "yes"}, "sample_documents is 'yes': write true or false"),
        ({"sample_documents": 1}, "sample_documents is 1: write true or false"),
    ],
    ids=str,
)
def test_a_problem_names_section_key_and_value(read, least, keys, told):
    assert refusal(read, least | keys).startswith(told)


@pytest.mark.parametrize(("read", "least"), FILES)
def test_a_misspelled_key_is_not_missing_as_well(read, least):
    rest = {key: value for key, value in least.items() if key != "store"}
    assert refusal(read, rest | {"stoer": "s"}) == (
        "the top level has no key 'stoer'; did you mean 'store'?"
    )
    # a key that resembles nothing does not stand for the missing one
    assert refusal(read, rest | {"x": "s"}).endswith("; the top level lacks 'store'; add it")


def test_a_misspelled_key_of_a_section_is_not_missing_as_well():
    told = refusal(config_of, NIGHT | {"merge": {"form": ["berlin"]}})
    assert told == "[merge] has no key 'form'; did you mean 'from'?"
    rest = {key: value for key, value in NIGHT.items() if key != "refit"}
    assert refusal(config_of, rest) == "the section [refit] is missing"
    told = refusal(config_of, rest | {"refitt": {"topics": 5}})
    assert told == "the top level has no key 'refitt'; did you mean 'refit'?"
    told = refusal(config_of, NIGHT | {"refit": {"topic": 5}})
    assert told == "[refit] has no key 'topic'; did you mean 'topics'?"


WRONG = ("x", -1, 1.5, True, [], {}, "", [1, "x"], float("nan"), 10**30, date(2026, 1, 1), [""])
# words of the library that checks types
FOREIGN = re.compile("should|valid|input|parse|instance|schema|tuple|dictionary|None|True|item")


def keys_of(kind):
    """Section and key of each key; the section is None at the top level."""
    for part in fields(kind):
        inner = _section(kind, part.name)
        if inner is None:
            yield None, part.name
        else:
            yield from ((part.name, one.name.rstrip("_")) for one in fields(inner))


@pytest.mark.parametrize(("kind", "read", "least"), KINDS)
def test_a_wrong_value_of_any_key_gets_one_plain_line(kind, read, least):
    for section, key in keys_of(kind):
        for value in WRONG:
            sections = {"merge": {"from": ["berlin"]}, **least}
            given = {**sections.get(section, {}), key: value} if section else value
            try:
                read({**least, section or key: given}, "n.toml")
            except InvalidInput as error:
                told = str(error).removeprefix("n.toml: ")
                # names of keys and values that are quoted are the user's
                assert not FOREIGN.search(re.sub("'[^']*'|is [^:]*:", "", told)), told
                assert told.count(f"{key} is ") + told.count(f"{key}: ") <= 1, told


@pytest.mark.parametrize(
    ("read", "content", "told"),
    [
        (
            config_of,
            NIGHT | {"refit": {"topics": 5, "polish": 1, "half_life_days": 3}},
            "[refit] polish: passes count all documents equally",
        ),
        (config_of, NIGHT | {"create": {"max_topics": 9, "core": 8}}, "[create] max_topics is 9"),
        (
            service_of,
            SERVICE | {"listen": {"certificate": "c"}},
            "[listen] certificate is given without key",
        ),
        (service_of, SERVICE | {"limits": {"document": "17MiB"}}, "[limits] document is 17,825,"),
        (service_of, SERVICE | {"listen": {"host": "0.0.0.0"}}, "[listen] host '0.0.0.0' accepts"),
        (service_of, SERVICE | {"listen": {"origins": ["a"]}}, "[listen] origins: pages of other"),
    ],
    ids=["polish", "create", "certificate", "document", "host", "origins"],
)
def test_what_does_not_go_together_names_its_section(read, content, told):
    assert refusal(read, content).startswith(told)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"refien": 1}, "[refit] has no key 'refien'; did you mean 'refine'?"),
        ({"further": {}}, "[refit] has no key 'further'; only "),
        (
            {"refien": 1, "polihs": 1},
            "[refit] has no key 'refien'; did you mean 'refine'? "
            "[refit] has no key 'polihs'; did you mean 'polish'?",
        ),
        ({"refine": -1}, "[refit] refine"),
        ({"refine": True}, "[refit] refine is true: write a whole number"),
        ({"topics": [2, True]}, "[refit] topics is true: write a whole number"),
        ({"refine": "x"}, "[refit] refine is 'x': write a whole number or 'auto'"),
        ({"topics": "x"}, "[refit] topics is 'x': write a whole number, a list of them, 'auto' or"),
        ({"topics": -1}, "[refit] topics is -1: write 1 or more"),
        ({"topics": []}, "[refit] topics: write at least 1 of them"),
        ({"polish": "x"}, "[refit] polish is 'x': write a whole number or 'auto'"),
        ({"alpha0": -1}, "[refit] alpha0 is -1.0; give 0 to 1,000,000"),
        ({"same_topic_within": 2}, "[refit] same_topic_within is 2: write at most 1"),
        ({"model": "poisson", "alpha0": 1}, "[refit] alpha0: not an option of model 'poisson'"),
        ({"model": "poison"}, "[refit] model: 'poison' is not one of 'topics', "),
    ],
    ids=str,
)
def test_options_of_a_model_are_keys_of_the_refit(keys, told):
    assert refusal(config_of, NIGHT | {"refit": {"topics": 5, **keys}}).startswith(told)


def test_one_wrong_item_of_a_list_is_one_problem():
    told = refusal(config_of, NIGHT | {"refit": {"topics": [5, "many"]}})
    assert told == "[refit] topics is 'many': write a whole number"


@pytest.mark.parametrize(("read", "least"), FILES)
@pytest.mark.parametrize(
    "keys",
    [
        {"storage_options": "hidden-71c9"},
        {"store": ["s3://key:hidden-71c9@bucket"]},
        {"store": "s3://key:hidden-71c9@bucket"},
    ],
    ids=["options", "list", "url"],
)
def test_a_secret_is_not_shown(read, least, keys):
    assert "hidden-71c9" not in refusal(read, least | keys)


@READERS
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"store = ", "is not TOML"),
        (b"store = " + b"9" * 5000, "is not TOML"),
        (b"store = " + b"[" * 5000, "is not TOML"),
        (b"store = '\xff'", "is not TOML"),
        (None, "No such file"),
    ],
    ids=["half", "long number", "deep", "no text", "absent"],
)
def test_a_file_that_cannot_be_read_is_named(read, tmp_path, content, told):
    path = tmp_path / "n.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=told) as refused:
        read(path)
    assert str(path) in str(refused.value)


@READERS
def test_a_relative_path_that_is_missing_says_where_it_starts(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as refused:
        read("gone.toml")
    assert str(refused.value).endswith(f"check the path, which is relative to {tmp_path}")
    with pytest.raises(InvalidInput, match=r"check the path$"):
        read(tmp_path / "gone.toml")
