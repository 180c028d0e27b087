"""The configuration: every key is checked before anything runs."""

from datetime import timedelta

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.create import PilotOptions
from streaming_moments.pipelines.entry import main
from streaming_moments.pipelines.nightly_config import config_of, read_config

LEAST = {"store": "s", "shards": ["a/*.txt"], "output": "r", "refit": {"topics": 5}}


def with_section(name, **keys):
    return {**LEAST, name: {**LEAST.get(name, {}), **keys}}


def test_the_least_configuration_has_defaults_for_the_rest():
    config = config_of(LEAST, "n.toml")
    assert (config.refit.topics, config.refit.alpha0, config.tag) == ((5,), (0.1,), "published")
    assert (config.create, config.rebase, config.growth, config.metrics) == (None,) * 4
    assert config.update.skip_bad_shards
    assert config.lock_expiry == timedelta(hours=6)


def test_lists_sizes_and_times_are_what_the_command_line_takes():
    content = {
        **LEAST,
        "shards": "a/*.txt",
        "refit": {"topics": [5, 10], "alpha0": [0.1, 1]},
        "cluster": {"memory": "4GB", "workers": 2, "worker_timeout": "90s"},
        "create": {"languages": ["english"], "core": 100, "max_document_fraction": 0.4},
        "rebase": {"not_again_for": "2d", "min_captured": 0.5},
        "update": {"max_document_bytes": "1MiB"},
        "growth": {"words": 40},
    }
    config = config_of(content, "n.toml")
    assert config.shards == ("a/*.txt",)
    assert (config.refit.topics, config.refit.alpha0) == ((5, 10), (0.1, 1.0))
    assert config.cluster.memory == 4 * 10**9
    assert config.cluster.worker_timeout == timedelta(seconds=90)
    assert config.create.pilot == PilotOptions(core=100, max_document_fraction=0.4)
    assert "the" in config.create.policy.stop_words
    assert config.rebase.not_again_for == timedelta(days=2)
    assert config.rebase.bounds.captured == 0.5
    assert (config.growth.outside_above, config.growth.words) == (0.05, 40)
    assert config.update.limits.document_bytes == 1 << 20


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**LEAST, "stoer": "s"}, "the top of it has no key 'stoer', did you mean 'store'?"),
        (
            with_section("metrics", textfile="s3://bucket/a.prom"),
            r"\[metrics\]: textfile: .* s3://bucket/a.prom is no local file \*.prom",
        ),
        (with_section("metrics", textfile="/var/a.txt"), "/var/a.txt is no local file"),
        (with_section("metrics", file="/var/a.prom"), "no key 'file', did you mean 'textfile'"),
        (
            with_section("refit", topcis=5),
            r"\[refit\] has no key 'topcis', did you mean 'topics'\?",
        ),
        (
            with_section("gates", min_topic_wieght=0.1),
            r"\[gates\] has no key 'min_topic_wieght', did you mean 'min_topic_weight'\?",
        ),
        (with_section("rebase", captured=0.1), r"'captured', did you mean 'min_captured'\?"),
        (with_section("create", topics=3), r"\[create\] has no key 'topics', did you mean '"),
        ({"store": "s"}, "the top of it lacks 'shards'"),
        (with_section("refit", topics=0), r"\[refit\]: topics: .* greater than or equal to 1"),
        (with_section("refit", topics=[]), r"\[refit\]: topics"),
        (with_section("refit", method="fast"), r"\[refit\]: method: .*'joint'"),
        (with_section("refit", topics="many"), r"\[refit\]: topics: .* valid integer"),
        (with_section("gates", min_topic_weight=2), r"\[gates\]: min_topic_weight: .* 1"),
        (with_section("cluster", memory="much"), r"\[cluster\]: memory: .*'much' is no size"),
        ({**LEAST, "lock_expiry": "soon"}, "lock_expiry: .*'soon' is no time"),
        ({**LEAST, "shards": []}, "shards: .* at least 1"),
    ],
)
def test_what_is_wrong_is_named_with_the_nearest_key(content, said):
    with pytest.raises(InvalidInput, match=rf"^n\.toml: .*{said}") as told:
        config_of(content, "n.toml")
    assert "\n" not in str(told.value)


def test_secrets_are_not_shown():
    config = config_of({**LEAST, "storage_options": {"key": "hidden-71c9"}}, "n.toml")
    assert "hidden-71c9" not in repr(config)


def test_a_file_that_is_none_is_wrong_input(tmp_path, capsys):
    path = tmp_path / "n.toml"
    with pytest.raises(InvalidInput, match="No such file"):
        read_config(path)
    path.write_text("store = ")
    with pytest.raises(InvalidInput, match="is not TOML"):
        read_config(path)
    path.write_text('store = "s"\nshards = "*"\noutput = "r"\n[refit]\ntopic = 5\n')
    with pytest.raises(SystemExit) as ended:
        main(["nightly", str(path)])
    assert ended.value.code == 2
    assert "did you mean 'topics'?" in capsys.readouterr().err
