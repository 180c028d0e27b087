"""Commands of the service for machines: one JSON object each."""

import json

import pytest

from streaming_moments.pipelines.service.tokens import Role, TokenFile


@pytest.fixture
def config(place):
    path = place / "service.toml"
    path.write_text(f'store = "{place / "store"}"\nlisten = {{ port = 0 }}\n')
    return path


def test_tokens_are_made_listed_and_removed_as_json(run, tmp_path):
    path = tmp_path / "tokens.json"
    code, out, err = run("token", "add", path, "shop", "--role", "writer", "--json")
    made = json.loads(out)
    assert (code, err, made["name"], made["role"], made["file"]) == (
        0,
        "",
        "shop",
        "writer",
        str(path),
    )
    assert TokenFile(path).read().principal_of(made["token"]).role is Role.WRITER
    listed = json.loads(run("token", "list", path, "--json")[1])
    assert listed == {"file": str(path), "tokens": [{"name": "shop", "role": "writer"}]}
    assert made["token"] not in json.dumps(listed)
    removed = json.loads(run("token", "remove", path, "shop", "--json")[1])
    assert removed == {"file": str(path), "name": "shop", "removed": True}
    assert json.loads(run("token", "list", path, "--json")[1])["tokens"] == []
    assert run("token", "add", path, "shop")[1].startswith("sm_"), "without it the token alone"


def test_a_turn_is_told_as_json(run, config, place, serve):
    with serve() as client:
        client.send([{"id": 1, "text": "wa wb wc"}, {"id": 2, "text": "wa wa"}], "k")
    code, out, _ = run("accumulate", config, "--once", "--json")
    told = json.loads(out)
    assert (code, told["sealed"], told["counted"], told["left_out"]) == (0, 2, 2, [])
    assert told["version"] == json.loads(run("status", place / "store", "--json")[1])["version"]
    told = json.loads(run("accumulate", config, "--once", "--json")[1])
    assert (told["sealed"], told["counted"]) == (0, 0)
    code, _, err = run("accumulate", config, "--json")
    assert (code, "--json needs --once; give both" in err) == (2, True)
