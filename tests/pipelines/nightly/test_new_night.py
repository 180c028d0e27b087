"""nightly --init: a folder in which a night runs as it is, and what schedules it."""

import builtins
import configparser
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streaming_moments.pipelines.command_line.new_folders.night import UNIT, configuration
from streaming_moments.pipelines.nightly.config import read_config
from streaming_moments.storage import MomentStore

FILES = ["documents", "environment", "night.toml", "schedule"]
COMMAND = re.compile(r"^  streaming-moments (.*?)(?:  +#.*)?$", re.MULTILINE)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_the_folder_to_the_page_of_a_published_model(run, here, monkeypatch):
    code, out, err = run("nightly", "--init", "nights")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in Path("nights").iterdir()) == FILES
    monkeypatch.chdir("nights")
    [command] = COMMAND.findall(out)
    code, out, err = run(*command.split())
    assert (code, out) == (0, "published; 4 shards counted, model night-v4\n")
    # the last line says what to open
    assert Path(err.splitlines()[-1].removeprefix("page: ")).parent.name == "reports"
    assert Path(err.splitlines()[-1].removeprefix("page: ")).exists()
    assert "effective documents are few" in err
    # a night has keys and no options
    assert "`[create] languages" in err
    assert "create --" not in err
    assert "night-v4" in MomentStore.open("store").models
    assert Path("reports/index.html").exists()
    page = Path("reports/latest.html").read_text(encoding="utf-8")
    assert any(theme in page for theme in ("harbour", "judge", "oven"))
    # of the choices that the first night has made
    assert "are few" not in run(*command.split())[2]


def test_shards_and_results_may_be_anywhere(run, here):
    shards = ("texts/*.jsonl", "s3://corpus/shards/*.parquet")
    given = [one for url in shards for one in ("--shards", url)]
    code, out, _ = run("nightly", "--init", "nights", *given, "--results", "s3://corpus/")
    assert code == 0
    assert "set -a; . ./environment" in out
    assert sorted(path.name for path in Path("nights").iterdir()) == FILES[1:]
    config = read_config("nights/night.toml")
    # of the folder of the command, because a night runs in its own
    assert config.shards == (f"{here}/texts/*.jsonl", "s3://corpus/shards/*.parquet")
    assert (config.store, config.output) == ("s3://corpus/store", "s3://corpus/reports")
    assert config.refit.topics == (5, 10, 20)
    assert run("nightly", "--init", "there", "--results", "results")[0] == 0
    config = read_config("there/night.toml")
    assert (config.store, config.shards) == (f"{here}/results/store", ("documents/*.jsonl",))


def test_a_new_night_says_which_patterns_match_nothing_now(run, here):
    Path("a.txt").write_text("a ship in the harbour")
    code, out, err = run("nightly", "--init", "some", "--shards", "*.txt", "--shards", "b/*.txt")
    assert code == 0
    assert err == (
        f"warning: no file matches b/*.txt (relative to {here}) now; correct shards in "
        "some/night.toml, or write the documents before the first night\n"
    )
    assert out.startswith("Wrote a night to some")
    assert "gone.txt: does not exist" in run("nightly", "--init", "no", "--shards", "gone.txt")[2]
    assert run("nightly", "--init", "far", "--shards", "s3://bucket/*.txt")[2] == ""


@pytest.mark.parametrize("files", [("b.txt",), ("b.txt", "c.txt"), ("b.txt", "c.txt", "d.txt")])
def test_a_pattern_without_quotes_is_named_as_such(run, here, files):
    # the shell has put the names in place of the pattern
    code, out, err = run("nightly", "--init", "new", "--shards", "a.txt", *files)
    assert (code, out, os.listdir()) == (2, "", [])
    assert "put the pattern of --shards in quotes, such as --shards 'documents/*.jsonl'" in err


def stubbed(monkeypatch, folder):
    """A command that writes its arguments and an environment variable into a file beside it."""
    folder.mkdir()
    command = folder / "streaming-moments"
    command.write_text('#!/bin/sh\necho "$PWD" "$@" "$AWS_PROFILE"\n')
    command.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))


NAMES = ["nights", "the nights, 100% of $HOME"]


@pytest.mark.linux
@pytest.mark.parametrize("name", NAMES)
def test_cron_runs_the_night_of_its_folder(run, here, monkeypatch, name):
    with monkeypatch.context() as patched:
        stubbed(patched, here / f"bin of {name}")
        assert run("nightly", "--init", name)[0] == 0
    environment = here / name / "environment"
    assert environment.stat().st_mode & 0o777 == 0o600
    environment.write_text(environment.read_text().replace("# AWS_PROFILE=", "AWS_PROFILE=topics"))
    _, line = (here / name / "schedule" / "crontab").read_text().splitlines()
    # cron gives the command after a bare % as input
    command = re.split(r"(?<!\\)%", line.split(maxsplit=5)[5])[0].replace(r"\%", "%")
    ran = subprocess.run(["/bin/sh", "-c", command], env={}, cwd="/", capture_output=True)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert (here / name / "night.log").read_text() == f"{here}/{name} nightly night.toml topics\n"


@pytest.mark.linux
@pytest.mark.parametrize("name", NAMES)
def test_systemd_finds_nothing_wrong_with_the_units(run, here, monkeypatch, name):
    with monkeypatch.context() as patched:
        stubbed(patched, here / "bin of $100%")
        assert run("nightly", "--init", name)[0] == 0
    schedule = here / name / "schedule"
    parser = configparser.RawConfigParser()
    parser.optionxform = str
    parser.read(schedule / f"{UNIT}.service")
    service = parser["Service"]
    assert service["WorkingDirectory"] == str(here / name).replace("%", "%%")
    program = str(here / "bin of $100%" / "streaming-moments").replace("%", "%%")
    assert service["ExecStart"] == f'"{program}" nightly night.toml'
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    units = sorted(str(path) for path in schedule.glob(f"{UNIT}.*"))
    checked = subprocess.run([analyze, "verify", "--man=no", *units], capture_output=True)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")


def test_a_folder_of_reports_that_cannot_be_written_ends_the_night_at_once(run, here, monkeypatch):
    assert run("nightly", "--init", ".")[0] == 0
    config = Path("night.toml")
    text = config.read_text(encoding="utf-8")
    Path("file").write_text("mine")
    config.write_text(text.replace('"reports"', '"file/reports"'), encoding="utf-8")
    code, out, err = run("nightly", "night.toml")
    assert (code, out) == (2, "")
    assert "file/reports is not a folder: it is a file, or within a file; check the path" in err
    config.write_text(text, encoding="utf-8")
    made = builtins.open

    def closed(path, *how, **named):
        if f"{here}/reports" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return made(path, *how, **named)

    monkeypatch.setattr(builtins, "open", closed)  # root may write everywhere
    code, out, err = run("nightly", "night.toml")
    assert (code, out) == (2, "")
    assert "Permission denied" in err
    assert [path.name for path in Path("store").iterdir()] == ["locks"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give either CONFIG, or --init FOLDER"),
        (("night.toml", "--init", "new"), "give either CONFIG, or --init FOLDER"),
        (("night.toml", "--shards", "*.txt"), "--shards and --results belong to --init"),
        (("--init", "taken"), "taken exists and is not an empty folder"),
        (("--init", "new", "--shards", "s3:///corpus"), "s3:///corpus names no bucket"),
        (("--init", "new", "--results", "s3:/corpus"), "s3:/corpus names no bucket"),
        (("--init", "new", "--results", "s3://key:hidden@b"), "holds a password"),
    ],
    ids=str,
)
def test_wrong_arguments_write_nothing(run, here, arguments, told):
    Path("taken").write_text("mine")
    code, out, err = run("nightly", *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert "hidden" not in err
    assert os.listdir() == ["taken"]


def test_a_path_is_text_of_toml(here):
    odd = 'a "quoted"\\ path/é*.txt'
    text = configuration([odd])
    (here / "night.toml").write_text(text, encoding="utf-8")
    assert read_config("night.toml").shards == (f"{here}/{odd}",)
    assert json.dumps(odd, ensure_ascii=False)[1:-1] in text


def test_an_error_names_the_key_that_mends_it(run, here, monkeypatch):
    run("nightly", "--init", "nights")
    monkeypatch.chdir("nights")
    night = Path("night.toml")
    night.write_text(night.read_text().replace('# text_column = "text"', 'text_column = "body"'))
    code, _, err = run("nightly", "night.toml")
    assert (code, "choose another with `[create] text_column`" in err) == (2, True)
    assert "choose another with `[create] text_column`" in Path("reports/latest.html").read_text()
