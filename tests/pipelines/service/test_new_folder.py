"""serve --init: a folder in which a service runs as it is."""

import errno
import json
import os
import re
import tomllib
from datetime import date
from pathlib import Path

import pytest
from page_scripts import printed_by

from streaming_moments.pipelines.command_line.new_folders import service as service_folder
from streaming_moments.pipelines.command_line.new_folders import writing
from streaming_moments.pipelines.command_line.new_folders.service import write_folder
from streaming_moments.pipelines.nightly.config import read_config
from streaming_moments.pipelines.service.config import night_of, read_service
from streaming_moments.pipelines.service.tokens import Role, TokenFile
from streaming_moments.storage import MomentStore

FILES = ["README.md", "documents", "night.toml", "service.toml", "tokens.json"]


@pytest.fixture
def shop(run, tmp_path, monkeypatch):
    """The folder that the command wrote, as the current one, with what the command printed."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run("serve", "--init", "shop")
    assert (code, err) == (0, "")
    monkeypatch.chdir(tmp_path / "shop")
    return out


def test_from_the_folder_to_a_topic_page_and_the_next_night(run, shop, start, monkeypatch):
    token = re.search(r"sm_\S+", shop)[0]
    # the commands that it prints, but for the server, which runs in this process
    commands = re.findall(r"^  streaming-moments (.*?)(?:  +#.*)?$", shop, re.MULTILINE)
    assert commands == ["nightly night.toml", "serve service.toml"]
    # and those of its README, from top to bottom
    blocks = re.findall(
        r"^```sh\n(.*?)^```", Path("README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert [f"streaming-moments {one}\n" for one in commands] == blocks[:2]
    another, curl = blocks[2:]
    assert printed_by(another).startswith("sm_")
    for early in (("serve", "service.toml"), ("accumulate", "service.toml", "--once")):
        code, out, err = run(*early)
        assert (code, out) == (2, "")
        assert "`streaming-moments nightly night.toml` creates it and publishes a model" in err
    code, out, err = run(*commands[0].split())
    assert (code, out) == (0, "published; 4 shards counted, model night-v4\n")
    assert "the service has no documents yet" in err
    assert "matches nothing" not in err
    store = MomentStore.open("store")
    assert store.policy.languages == ("english",)
    [report] = Path("reports").glob("night-*.json")
    assert "Found English in the sample and removed" in report.read_text(encoding="utf-8")
    content = tomllib.loads(Path("service.toml").read_text(encoding="utf-8"))
    with start({**content, "listen": {"port": 0}}) as client:
        client.session.headers["Authorization"] = f"Bearer {token}"
        page = client("GET", "/topics/0").text
        assert any(theme in page for theme in ("harbour", "judge", "oven"))
        # no page of the new service is empty
        assert 'id="period-panels"' in client("GET", "/time").text
        assert "Chosen: 3 topics, of 4 numbers from 2 to 6." in client("GET", "/choice").text
        monkeypatch.setenv("TOKEN", token)
        moved = curl.replace("localhost:8080", f"127.0.0.1:{client.port}")
        assert json.loads(printed_by(moved))["state"] == "accepted"
        sent = [{"id": str(n), "text": "the ship in the harbour and the storm"} for n in range(8)]
        assert client.send(sent, "others").status_code == 202
        assert client.session.headers.pop("Authorization")
        assert client("GET", "/v1/topics").status_code == 401
    assert run("accumulate", "service.toml", "--once")[0] == 0
    assert store.latest().commit.documents == 309
    # the documents that the service counted are those that the night would find
    code, out, _ = run("nightly", "night.toml")
    assert (code, store.latest().commit.documents) == (0, 309)
    assert out.startswith("published; 0 shards counted, model night-v")
    assert len(store.latest().models) == 2


def test_the_configurations_are_of_each_other(shop):
    service = read_service("service.toml")
    night = night_of(service)
    assert night.store == service.store
    assert night.shards[1] == f"{service.inbox_url}/sealed/**/*.jsonl"
    assert night == read_config("night.toml")
    token = re.search(r"sm_\S+", shop)[0]
    assert TokenFile("tokens.json").read().principal_of(token).role is Role.ADMIN
    assert token not in Path("tokens.json").read_text(encoding="utf-8")


def test_the_examples_are_of_the_days_before(tmp_path):
    write_folder(tmp_path / "new", date(2026, 3, 1))
    shards = sorted((tmp_path / "new" / "documents").iterdir())
    documents = [json.loads(line) for shard in shards for line in shard.open(encoding="utf-8")]
    assert len({one["id"] for one in documents}) == len(documents) == 300
    days = sorted({one["date"] for one in documents})
    assert days == ["2026-02-08", "2026-02-15", "2026-02-22", "2026-03-01"]
    # the store takes the day of a shard from its name
    assert [shard.name for shard in shards] == [f"{day}.jsonl" for day in days]


def contents(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_current_folder_may_be_that_of_a_service(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("serve", "--init", ".")[0] == 0
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == FILES
    assert read_service("service.toml").tokens == "tokens.json"


def test_it_writes_over_nothing(run, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("serve", "--init", tmp_path / "empty")[0] == 0
    assert sorted(path.name for path in (tmp_path / "empty").glob("[!.]*")) == FILES
    before = contents(tmp_path / "empty")
    (tmp_path / "file").write_text("mine")
    for taken in ("empty", "file"):
        code, out, err = run("serve", "--init", tmp_path / taken)
        assert (code, out) == (2, "")
        assert "is not an empty folder; give another name" in err
    assert before == contents(tmp_path / "empty")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_may_not_be_made_names_permissions(run, tmp_path, monkeypatch):
    def denied(*_, dir):
        assert dir == tmp_path  # a folder that does not exist would hide the reason
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(dir))

    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(writing, "TemporaryDirectory", lambda prefix, dir: denied(dir=dir))
    code, _, err = run("serve", "--init", tmp_path / "new")
    assert (code, "new cannot be written (Permission denied); check the perm" in err) == (2, True)


def test_a_write_that_fails_leaves_no_file(run, tmp_path, monkeypatch):
    def full(*_):
        # it comes with all files, so that a kill leaves none of it
        assert not (tmp_path / "new").exists()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(service_folder, "add_token", full)  # the last file
        code, out, err = run("serve", "--init", tmp_path / "new")
    assert (code, out) == (2, "")
    assert "new cannot be written (No space left on device); free some space" in err
    assert [*tmp_path.iterdir()] == []
    assert run("serve", "--init", tmp_path / "new")[0] == 0


@pytest.mark.parametrize("arguments", [(), ("service.toml", "--init", "new")])
def test_it_takes_a_configuration_or_a_new_folder(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("serve", *arguments)
    assert (code, out) == (2, "")
    assert "give either CONFIG, or --init FOLDER" in err
    assert not (tmp_path / "new").exists()
