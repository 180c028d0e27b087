"""A store of a newer format: every command refuses in one line, before it does any work."""

import json

import pytest
from forgery import resealed

from streaming_moments.storage.operations.history import tag
from streaming_moments.testing.small_store import append, create, model_of

READING = {
    "log": ("log", "{store}"),
    "verify": ("verify", "{store}"),
    "diff": ("diff", "{store}", "0", "1"),
    "topics": ("topics", "{store}"),
    "status": ("status", "{store}"),
    "select": ("select", "{store}", "--topics", "2"),
    "transform": ("transform", "{store}", "{shard}", "--output", "{out}"),
    "gc --dry-run": ("gc", "{store}", "--dry-run"),
}
WRITING = {
    "update": ("update", "{store}", "{shard}"),
    "refit": ("refit", "{store}", "--topics", "2"),
    "forget": ("forget", "{store}", "{shard}"),
    "rollback": ("rollback", "{store}", "0"),
    "rollback --model": ("rollback", "{store}", "--model"),
    "tag": ("tag", "{store}", "next", "m"),
    "compact": ("compact", "{store}"),
    "grow": ("grow", "{store}", "{shard}"),
    "rebase": ("rebase", "{store}"),
    "gc": ("gc", "{store}"),
    "nightly": ("nightly", "{config}"),
}


@pytest.fixture
def place(tmp_path):
    store = append(append(create(tmp_path / "store"), {"a": 1}), {"b": 2})
    store = store.save_model("m", model_of(0)).save_model("n", model_of(1))
    tag(tag(store, "published", "m"), "published", "n")
    (tmp_path / "shard.txt").write_text("law and sea\nship and tax\n")
    night = {"store": tmp_path / "store", "output": tmp_path / "reports"}
    lines = [f"{key} = {json.dumps(str(value))}" for key, value in night.items()]
    shards = f"shards = [{json.dumps(str(tmp_path / 'shard.txt'))}]"
    refit = "[refit]\ntopics = 2\nalpha0 = 1.0\n"
    (tmp_path / "night.toml").write_text("\n".join([*lines, shards, refit]))
    return tmp_path


def files(root):
    found = (path for path in root.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in found if "locks" not in path.parts}


@pytest.mark.parametrize("key", ["min_reader", "min_writer"])
def test_every_command_says_which_version_to_install(run, place, key):
    resealed(
        place / "store" / "format.json",
        lambda content: {**content, "format": 7, key: 7, "install": "9.1.0"},
    )
    before = files(place / "store")
    names = {"store": "store", "shard": "shard.txt", "config": "night.toml", "out": "out"}
    paths = {name: place / path for name, path in names.items()}
    for command, arguments in {**(READING if key == "min_reader" else {}), **WRITING}.items():
        code, _, told = run(*(argument.format(**paths) for argument in arguments))
        assert code == 2, f"{command}: {told}"
        line = told.strip().splitlines()[-1]
        assert (
            "supports store format 7, and this version supports 6; upgrade streaming-moments "
            "to 9.1.0" in line
        )
        assert files(place / "store") == before, f"{command} has written"
    if key == "min_writer":
        for command, arguments in READING.items():
            told = run(*(argument.format(**paths) for argument in arguments))[2]
            assert "store format" not in told, command
