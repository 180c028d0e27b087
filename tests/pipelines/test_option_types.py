"""Options are read as Dask reads them, and what is none is refused where it is read."""

from dataclasses import fields
from datetime import timedelta

import click
import pytest
from click.testing import CliRunner
from dask.utils import byte_sizes, parse_bytes, parse_timedelta, timedelta_sizes
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import create_store
from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines import CountingOptions, KindOptions, PilotOptions
from streaming_moments.pipelines.cluster.cluster import budget_of, limit_for
from streaming_moments.pipelines.command_line.every_command import cli
from streaming_moments.pipelines.option_types import Bytes, Duration
from streaming_moments.pipelines.quantities import size_text


def read(kind, value):
    return kind.convert(value, None, None)


def test_a_gigabyte_is_a_thousand_megabytes_and_a_gibibyte_is_1024_mebibytes():
    assert read(Bytes(), "4GB") == read(Bytes(), "4 gb") == 4 * 10**9
    assert read(Bytes(), "4GiB") == 4 << 30
    assert read(Bytes(), "1000000") == read(Bytes(), 1_000_000) == 10**6
    assert read(Duration(), "1.5h") == timedelta(minutes=90)


@given(st.floats(0.1, 1000), st.sampled_from(sorted(byte_sizes)))
def test_sizes_are_those_of_dask(number, unit):
    text = f"{number:f}{unit}"
    if parse_bytes(text) >= 1:
        assert read(Bytes(), text) == parse_bytes(text) or parse_bytes(text) >= 1 << 63


@given(st.floats(0, 500), st.sampled_from(sorted(timedelta_sizes)))
def test_times_are_those_of_dask(number, unit):
    text = f"{number:f} {unit}"
    assert read(Duration(), text) == timedelta(seconds=parse_timedelta(text))


@given(st.integers(1, 1 << 53) | st.integers(1, 4096).map(lambda number: number << 20))
def test_a_size_is_read_back_to_the_byte(size):
    assert read(Bytes(), size_text(size)) == size


@given(st.integers(1, 1 << 50))
def test_the_limit_that_a_plan_names_holds_the_budget_and_no_lower_one_does(budget):
    assert budget_of(limit_for(budget)) >= budget > budget_of(limit_for(budget) - (1 << 20))


NO_SIZES = (*("", "much", "GB", "-5GB", "nan", "nanGB", "inf", "infMB", "1e400GB", "9" * 400), *(
    "8589934592GiB", "5 foos", ".5GB", "0", "0.1B", "0x10", 0, -1, True, 1.5, 10**30, None
))  # fmt: skip


@pytest.mark.parametrize("value", NO_SIZES, ids=lambda value: str(value)[:20])
def test_what_is_no_size_is_refused(value):
    with pytest.raises(click.BadParameter, match=r"not a size .*write for example 512MB"):
        read(Bytes(), value)


NO_TIMES = (*("", "soon", "h", "-5h", "nan", "nans", "infd", "1e400s", "999999999999d", "6"), *(
    "5 foos", ".5h", 6, True, 1.5, None
))  # fmt: skip


@pytest.mark.parametrize("value", NO_TIMES, ids=str)
def test_what_is_no_time_is_refused(value):
    with pytest.raises(click.BadParameter, match="(a|of) time.*write for example"):
        read(Duration(), value)


@given(st.text(max_size=12) | st.from_regex(r"[0-9.e+-]{1,6} ?[a-zA-Z]{0,4}", fullmatch=True))
def test_any_text_is_read_or_refused(text):
    for kind in (Bytes(), Duration()):
        try:
            found = read(kind, text)
        except click.BadParameter:
            continue
        assert found >= (1 if isinstance(found, int) else timedelta(0))


CREATE, REFIT = ("create", "absent", "absent.txt"), ("refit", "absent", "--topics", "3")


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        *((CREATE, "--max-document-fraction", value) for value in ("nan", "0", "7")),
        *((CREATE, option, "0") for option in ("--core", "--passage-words", "--min-length")),
        *((CREATE, option, "1" + 30 * "0") for option in ("--vocabulary-size", "--max-topics")),
        *((CREATE, option, "-1") for option in ("--min-documents", "--workers", "--seed")),
        (CREATE, "--seed", str(1 << 64)),
        (CREATE, "--pilot-documents", "0"),
        (CREATE, "--memory", "1e400GB"),
        (CREATE, "--max-document-bytes", "-8MB"),
        *((REFIT, "--alpha0", value) for value in ("inf", "nan", "1e7", "-1", "much")),
        *((REFIT, "--half-life", value) for value in ("inf", "nan", "0", "1000000000000")),
        *((REFIT, "--name", value) for value in ("a/b", "", "../x", ".x", 101 * "x")),
        (REFIT, "--since", "1000000000000"),
        (REFIT, "--worker-timeout", "999999999999d"),
        (("select", "absent", "--topics", "3"), "--alpha0", "0.1,inf"),
        (("gc", "absent"), "--grace", "999999999999d"),
        (("plan", "absent.txt"), "--within", "1e300h"),
        (("topics", "absent"), "--relevance", "nan"),
        (("rebase", "absent"), "--max-document-fraction", "nan"),
    ],
    ids=str,
)  # fmt: skip
def test_what_no_command_could_use_is_refused_before_anything_is_read(command, option, value):
    # the store and the shards are not there: who reads them says so
    ran = CliRunner().invoke(cli, [*command, option, value])
    assert ran.exit_code == 2
    assert f"Invalid value for '{option}'" in ran.output


@pytest.mark.parametrize("name", ["a/b", "", "../x", "night\n"])
def test_a_name_that_no_tag_may_have_is_refused_before_the_store_is_opened(name):
    for arguments in ((name, "model"), ("night", name)):
        ran = CliRunner().invoke(cli, ["tag", "absent", *arguments])
        assert ran.exit_code == 2
        assert "cannot be named" in ran.output


def test_what_takes_auto_too_says_so():
    ran = CliRunner().invoke(cli, ["refit", "nowhere", "--topics", "many"])
    assert "'many' is not a whole number, nor 'auto', nor 'predict'." in ran.output
    ran = CliRunner().invoke(cli, ["refit", "nowhere", "--seed", "many"])
    assert "'many' is not a whole number.\n" in ran.output


@pytest.mark.parametrize("options", [CountingOptions, PilotOptions, KindOptions])
def test_options_in_python_have_the_ranges_of_those_of_commands(options):
    numbers = [own.name for own in fields(options) if type(own.default) in (int, float)]
    numbers += ["passage_words"] * (options is CountingOptions)
    numbers += ["sketch_columns"] * (options is KindOptions)
    assert numbers
    for name in numbers:
        for wrong in (-3, float("nan")):
            with pytest.raises(InvalidInput, match=f"{name} of {options.__name__} is {wrong}; giv"):
                options(**{name: wrong})


def test_options_in_python_name_the_argument_that_fits(tmp_path):
    with pytest.raises(
        TypeError, match="CountingOptions has no argument pasage_words; give passag"
    ):
        CountingOptions(pasage_words=3)
    english = CountingOptions(languages="english")
    with pytest.raises(InvalidInput, match=r"is 'english'; give \('english',\)$"):
        create_store(str(tmp_path), ["law tax"], source="a", counting=english)
