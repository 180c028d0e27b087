"""The configuration: every key is checked before anything runs."""

from datetime import timedelta
from math import inf, nan

import fsspec
import pytest
from s3_server import S3Server

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.jobs.create import PilotOptions
from streaming_moments.pipelines.nightly.config import config_of, read_config
from streaming_moments.pipelines.nightly.gates import GatesSection

LEAST = {"store": "s", "shards": ["a/*.txt"], "output": "r", "refit": {"topics": 5}}


def with_section(name, **keys):
    return {**LEAST, name: {**LEAST.get(name, {}), **keys}}


def test_the_least_configuration_has_defaults_for_the_rest():
    config = config_of(LEAST, "n.toml")
    assert (config.refit.topics, config.refit.alpha0, config.tag) == ((5,), ("auto",), "published")
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
        ({**LEAST, "stoer": "s"}, "the top level has no key 'stoer'; did you mean 'store'?"),
        (
            with_section("metrics", textfile="s3://bucket/a.prom"),
            r"\[metrics\] textfile: s3://bucket/a.prom is not a local file named \*.prom",
        ),
        (with_section("metrics", textfile="/var/a.txt"), "/var/a.txt is not a local file"),
        (with_section("metrics", file="/var/a.prom"), "no key 'file'; did you mean 'textfile'"),
        (
            with_section("refit", topcis=5),
            r"\[refit\] has no key 'topcis'; did you mean 'topics'\?",
        ),
        (
            with_section("gates", min_topic_wieght=0.1),
            r"\[gates\] has no key 'min_topic_wieght'; did you mean 'min_topic_weight'\?",
        ),
        (with_section("rebase", captured=0.1), r"'captured'; did you mean 'min_captured'\?"),
        (with_section("create", topics=3), r"\[create\] has no key 'topics'; did you mean '"),
        ({"store": "s"}, "the top level lacks 'shards'"),
        (
            with_section("refit", topics=0),
            r"\[refit\] topics is 0: write 1 or more",
        ),
        (with_section("refit", topics=[]), r"\[refit\] topics: "),
        (with_section("refit", method="fast"), r"\[refit\] method: .*'joint'"),
        (with_section("refit", topics="many"), r"\[refit\] topics is 'many': write a whole number"),
        (
            with_section("gates", min_topic_weight=2),
            r"\[gates\] min_topic_weight is 2: .* 1",
        ),
        (
            with_section("cluster", memory="much"),
            r"\[cluster\] memory: 'much' is not a size",
        ),
        ({**LEAST, "lock_expiry": "soon"}, "lock_expiry: .*'soon' is not a time"),
        ({**LEAST, "wait": 10}, 'wait: 10 has no unit of time; write for example "10m" for min'),
        ({**LEAST, "wait": "10"}, 'wait: 10 has no unit of time; write for example "10m" for min'),
        ({**LEAST, "wait": 1.5}, "wait: 1.5 has no unit of time"),
        # numbers in quotes, in sections, lists, options of models and beside words
        (with_section("gates", max_held_out_drop="0.05"), r"max_held_out_drop is '0.05': write a"),
        (with_section("gates", min_documents="100"), r"min_documents is '100': write a whole"),
        (with_section("create", max_topics="8"), r"\[create\] max_topics is '8': write a whole"),
        (with_section("create", passage_words="8"), r"passage_words is '8': write a whole"),
        (with_section("refit", topics="5"), r"topics is '5': write a whole number"),
        (with_section("refit", topics=["5", 6]), r"topics is '5': write a whole number"),
        (with_section("refit", alpha0="0.1"), r"alpha0 is '0.1': write a number or 'auto'"),
        (with_section("refit", polish="2"), r"polish is '2': write a whole number or 'auto'"),
        (with_section("refit", refine="3"), r"refine is '3': write a whole number or 'auto'"),
        (with_section("refit", half_life_days="3"), r"half_life_days is '3': write a number"),
        (with_section("update", compact_after="9"), r"compact_after is '9': write a whole"),
        (with_section("growth", outside_above="1e-1"), r"outside_above is '1e-1': write a number"),
        ({**LEAST, "shards": []}, "shards: .* at least 1"),
        (with_section("merge", **{"from": []}), r"\[merge\] from: "),
        (with_section("merge", form=["a"]), r"\[merge\] has no key 'form'; did you mean 'from'"),
        (
            {**LEAST, "merge": {"from": "a"}, "rebase": {"min_captured": 0.1}},
            r"\[rebase\] counts all documents again, .* leave \[rebase\] out",
        ),
    ],
)
def test_what_is_wrong_is_named_with_the_nearest_key(content, said):
    with pytest.raises(InvalidInput, match=rf"^n\.toml: .*{said}") as told:
        config_of(content, "n.toml")
    assert "\n" not in str(told.value)


def test_texts_that_look_like_numbers_stay_texts():
    config = config_of(
        {**LEAST, "store": "7", "cluster": {"memory": "1024"}, "create": {"stop_words": ["8"]}},
        "n.toml",
    )
    assert (config.store, config.cluster.memory) == ("7", 1024)
    assert config.create.stop_words == ("8",)


def test_a_hub_may_count_nothing_itself():
    config = config_of({**LEAST, "shards": [], "merge": {"from": "a", "max_age": "2d"}}, "n.toml")
    assert config.merge.from_ == ("a",)
    assert config.merge.max_age.days == 2


def test_phrases_are_checked_with_the_other_options_of_words():
    create = {"phrases": ["c++ code", "a b"], "tokeniser": r"regex:[\w+#]+", "min_length": 1}
    made = config_of({**LEAST, "create": create}, "n.toml").create.counting.policy
    assert made.phrases == (("a", "b"), ("c++", "code"))
    with pytest.raises(InvalidInput, match="the phrase 'a b' has 'a', which is too short"):
        config_of({**LEAST, "create": {"phrases": ["a b"]}}, "n.toml")


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


BEYOND = 10**400  # no float


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *[
            ({**LEAST, "tag": tag}, r"tag(: | is )")
            for tag in ("a/b", "", "../x", ".x", "x" * 101, "night-v3", "a\nb")
        ],
        *[
            ({**LEAST, "lock_expiry": time}, r"lock_expiry(: | is )")
            for time in ("999999999999d", "366d", "0s", "9" * 400 + "d")
        ],
        *[({**LEAST, key: ""}, rf"{key}(: | is )") for key in ("store", "output")],
        ({**LEAST, "shards": [""]}, r"shards(: | is )"),
        *[
            (with_section("refit", **{key: value}), rf"\[refit\] {key}(: | is )")
            for key, value in (
                ("alpha0", inf),
                ("alpha0", [0.1, nan]),
                ("alpha0", -1),
                ("alpha0", 1e30),
                ("window_days", 10**12),
                ("window_days", 0),
                ("half_life_days", inf),
                ("half_life_days", nan),
                ("half_life_days", 0),
                ("half_life_days", 1e300),
                ("topics", BEYOND),
                ("seed", -1),
                ("seed", BEYOND),
                ("same_topic_within", nan),
                ("polish", -1),
            )
        ],
        *[
            (with_section("gates", **{key: value}), rf"\[gates\] {key}(: | is )")
            for key in GatesSection.__dataclass_fields__
            for value in (nan, inf, -0.5, BEYOND)
        ],
        *[
            (with_section("rebase", **{key: value}), rf"\[rebase\] {key}(: | is )")
            for key in ("min_captured", "max_outside_share", "max_pair_distance")
            for value in (nan, inf, -0.5, 1.5)
        ],
        (
            with_section("rebase", not_again_for="999999999999d"),
            r"\[rebase\] not_again_for(: | is )",
        ),
        (with_section("growth", outside_above=nan), r"\[growth\] outside_above(: | is )"),
        (with_section("growth", words=0), r"\[growth\] words(: | is )"),
        (with_section("growth", words=BEYOND), r"\[growth\] words(: | is )"),
        (with_section("update", compact_after=-1), r"\[update\] compact_after(: | is )"),
        (with_section("update", compact_by="week"), r"\[update\] compact_by(: | is )"),
        (
            with_section("update", max_document_bytes=0),
            r"\[update\] max_document_bytes(: | is )",
        ),
        (
            with_section("update", max_document_bytes=-5),
            r"\[update\] max_document_bytes(: | is )",
        ),
        (with_section("cluster", memory=-1), r"\[cluster\] memory(: | is )"),
        (with_section("cluster", memory="9" * 400 + "GB"), r"\[cluster\] memory(: | is )"),
        (
            with_section("cluster", worker_timeout="9999999d"),
            r"\[cluster\] worker_timeout(: | is )",
        ),
        (with_section("cluster", scheduler=""), r"\[cluster\] scheduler(: | is )"),
        *[
            (with_section("create", **{key: value}), rf"\[create\] {key}(: | is )")
            for key, value in (
                ("format", "word"),
                ("languages", ["english", "klingon"]),
                ("min_length", 0),
                ("passage_words", 0),
                ("date_pattern", "%Y"),
                ("vocabulary_size", 0),
                ("core", 0),
                ("max_topics", 0),
                ("min_documents", -1),
                ("max_document_fraction", 0),
                ("max_document_fraction", nan),
                ("pilot_documents", 0),
                ("pilot_documents", BEYOND),
                ("text_column", ""),
                ("seed", -1),
            )
        ],
        (
            with_section("refit", polish=1, half_life_days=3),
            ".*polish: passes count all documents",
        ),
        (with_section("refit", polish=1, model="independent"), ".*no passes over records"),
        (with_section("refit", polish="often"), ".*polish"),
        (with_section("create", max_topics=9, core=8), r"\[create\] max_topics is 9"),
        (with_section("create", counts_column="n"), r"\[create\] counts column 'n' needs an ids"),
        (with_section("create", ids_column="n", format="text"), r"\[create\] .* needs parquet"),
        (
            with_section("create", date_column="d", date_pattern="%Y%m%d"),
            r"\[create\] .* a date column or a date pattern, not both",
        ),
        (
            {**with_section("refit", topics=[2, 3]), "create": {"codocuments": False}},
            r".*\[refit\] compares several topics .* codocuments = false from \[create\]",
        ),
        (
            {**with_section("refit", window_days=3), "create": {"date_pattern": "none"}},
            r".*\[refit\] window_days and half_life_days need dates",
        ),
    ],
)
def test_what_no_night_could_use_is_refused_at_reading(content, said):
    with pytest.raises(InvalidInput, match=rf"(?s)^n\.toml: .*{said}"):
        config_of(content, "n.toml")


def test_the_bounds_themselves_are_taken():
    content = {
        **LEAST,
        "tag": "night-view",
        "lock_expiry": "365d",
        "refit": {"topics": 5, "alpha0": [0, 1e6], "window_days": 3652059},
        "gates": {"max_coherence_drop": 0, "min_topic_weight": 1, "min_documents": 0},
        "rebase": {"not_again_for": "0s", "max_outside_share": 1, "min_captured": 0},
        "create": {"max_topics": 8, "core": 8, "max_document_fraction": 1, "min_documents": 0},
    }
    config = config_of(content, "n.toml")
    assert (config.tag, config.lock_expiry) == ("night-view", timedelta(days=365))
    refit, gates, rebase = config.refit, config.gates, config.rebase
    assert (refit.topics, refit.alpha0, refit.window_days) == ((5,), (0, 1e6), 3652059)
    assert (gates.max_coherence_drop, gates.min_topic_weight, gates.min_documents) == (0, 1, 0)
    assert (rebase.not_again_for, rebase.max_outside_share, rebase.min_captured) == (
        timedelta(0),
        1,
        0,
    )
    pilot = config.create.pilot
    assert (pilot.max_topics, pilot.core) == (8, 8)
    assert (pilot.max_document_fraction, pilot.min_documents) == (1, 0)


# Each of the bounds above, a step beyond it.
BEYOND = [
    ("lock_expiry", "366d"),
    ("refit", {"topics": 0}),
    ("refit", {"alpha0": [0, 1.0001e6]}),
    ("refit", {"window_days": 3652060}),
    ("refit", {"window_days": 0}),
    ("gates", {"max_coherence_drop": -0.001}),
    ("gates", {"min_topic_weight": 1.001}),
    ("gates", {"min_documents": -1}),
    ("rebase", {"not_again_for": "-1s"}),
    ("rebase", {"max_outside_share": 1.001}),
    ("rebase", {"min_captured": -0.001}),
    ("create", {"max_topics": 9, "core": 8}),
    ("create", {"max_document_fraction": 1.001}),
    ("create", {"min_documents": -1}),
]


@pytest.mark.parametrize(("key", "value"), BEYOND, ids=str)
def test_a_step_beyond_the_bounds_is_refused(key, value):
    content = with_section(key, **value) if isinstance(value, dict) else {**LEAST, key: value}
    with pytest.raises(InvalidInput, match=key):
        config_of(content, "n.toml")


def test_a_night_on_a_bucket_that_is_not_there_says_so(run, tmp_path):
    server = S3Server()
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"key": "k", "secret": "secret", "endpoint_url": f"http://{host}:{port}"}
        fsspec.filesystem("s3", **options).mkdir("there")
        for absent in ("store", "output"):
            places = {
                name: f"s3://{'absent' if name == absent else 'there'}/{name}"
                for name in ("store", "output")
            }
            told = [f'{name} = "{url}"' for name, url in places.items()]
            (tmp_path / "n.toml").write_text(
                "\n".join(
                    [
                        *told,
                        'shards = "s3://there/*.txt"',
                        "[refit]",
                        "topics = 2",
                        "[storage_options]",
                        *(f'{name} = "{value}"' for name, value in options.items()),
                    ]
                )
            )
            code, _, err = run("nightly", tmp_path / "n.toml")
            assert code == 2, err
            assert f"{places[absent]}: the bucket 'absent' does not exist; create it" in err
            assert "fault" not in err
    finally:
        server.stop()


def test_what_is_auto_is_found_by_halves():
    told = {"store": "s", "shards": "*.txt", "output": "r"}
    found = config_of({**told, "refit": {"topics": "auto", "refine": "auto"}}, "n").refit
    assert (found.auto, found.topics, found.further) == (
        {"topics": "auto", "refine": "auto"},
        (1,),
        {},
    )
    made = {"kind": "vectors", "halves": False}
    spectral = {"topics": "auto", "model": "gaussian_mixture"}
    found = config_of({**told, "create": made, "refit": spectral}, "n").refit
    assert (found.auto, found.options(1, 1.0).topics) == ({"topics": "auto"}, 1)
    by_spectrum = {"topics": "auto", "model": "factors"}
    found = config_of({**told, "create": made, "refit": by_spectrum}, "n").refit
    assert (found.auto, found.options(1, 1.0).topics) == ({"topics": "auto"}, 0)
    numbers = config_of({**told, "refit": {"topics": [5, 8], "refine": "auto"}}, "n").refit
    assert (numbers.auto, numbers.topics) == ({"refine": "auto"}, (5, 8))
    for refit, made, problem in (
        (
            {"topics": "auto", "model": "poisson"},
            {},
            "auto works only for models 'topics' and 'views'",
        ),
        ({"topics": "auto", "alpha0": [0.1, 1]}, {}, "auto needs one alpha0"),
        (
            {"topics": "predict", "model": "factors"},
            {},
            "predict works only for models 'topics' and 'views'",
        ),
        ({"topics": "auto"}, {"halves": False}, r"\[refit\] topics is auto.*give a number"),
        ({"topics": 5, "auto": ["refine"]}, {}, r"\[refit\] has no key 'auto'"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            config_of({**told, "refit": refit, "create": made}, "n")


def test_a_hub_adds_no_words_and_counts_no_documents_again():
    merging = {**LEAST, "merge": {"from": "berlin"}}
    assert config_of(LEAST, "n.toml").growing is not None
    assert config_of(merging, "n.toml").growing is None
    assert config_of({**merging, "growth": {"words": 4}}, "n.toml").growing is not None
    for name, section, said in (
        ("create", {}, "create the store by `streaming-moments create STORE --like SITE`"),
        ("rebase", {}, r"\[rebase\] counts all documents again"),
        ("refit", {"topics": 5, "polish": 2}, r"\[refit\] polish reads all documents again"),
    ):
        with pytest.raises(InvalidInput, match=said):
            config_of({**merging, name: section}, "n.toml")
