"""Files of tokens: what is made, found, refused and held of them."""

import hashlib
import hmac
import json
import os
import stat
from pathlib import Path
from unittest.mock import patch

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.tokens import (
    ANYBODY,
    Principal,
    Role,
    Token,
    Tokens,
    add_token,
    read_tokens,
    remove_token,
)


def test_roles_are_named_in_small_letters_and_each_is_more_than_those_before():
    assert [Role.called(name) for name in ("reader", "writer", "admin")] == sorted(Role)
    assert [int(role) for role in Role] == [1, 2, 3]
    assert Principal("", Role.ADMIN) == ANYBODY
    with pytest.raises(InvalidInput, match=f"no role {'x' * 40!r};"):
        Role.called("x" * 41)


def test_a_token_is_random_and_only_its_hash_is_in_the_file(tmp_path):
    path = tmp_path / "new" / "tokens.json"
    made = [add_token(path, name, Role.WRITER) for name in ("a", "b")]
    assert all(one.startswith("sm_") and len(one) == 3 + 43 for one in made)
    assert made[0] != made[1]
    content = json.loads(path.read_text())
    assert content == {
        "tokens": [
            {"name": name, "role": "writer", "sha256": hashlib.sha256(one.encode()).hexdigest()}
            for name, one in zip("ab", made, strict=True)
        ]
    }
    assert path.read_text().endswith("\n")
    assert {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()} == {0o600}


def test_a_token_is_found_by_its_hash_and_by_all_of_it(monkeypatch):
    digest = hashlib.sha256(b"sm_a").hexdigest()
    tokens = Tokens((Token("me", "admin", digest), Token("other", "reader", "0" * 64)))
    assert tokens.principal_of("sm_a") == Principal("me", Role.ADMIN)
    for wrong in ("sm_b", "", "sm_a ", "\ud800"):
        assert tokens.principal_of(wrong) is None
    assert Tokens().principal_of("sm_a") is None
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: False)
    assert tokens.principal_of("sm_a") is None


@pytest.mark.parametrize(
    "content",
    [b"?", b"\xff", b"[]", b"{}", b'{"tokens": 5}', b'{"tokens": [{"name": "a"}]}'],
)
def test_what_is_no_file_of_tokens_is_told_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "tokens.json"
    path.write_bytes(content)
    for act in (
        lambda: read_tokens(path),
        lambda: add_token(path, "a", Role.READER),
        lambda: remove_token(path, "a"),
    ):
        with pytest.raises(InvalidInput, match="is not a token file; restore it"):
            act()
    assert path.read_bytes() == content


def test_a_role_that_is_none_makes_the_file_none(tmp_path):
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": [{"name": "a", "role": "king", "sha256": "0"}]}))
    with pytest.raises(InvalidInput, match="no role 'king'"):
        read_tokens(path)


def test_names_are_checked_and_each_is_there_once(tmp_path):
    path = tmp_path / "tokens.json"
    with pytest.raises(InvalidInput, match="a b"):
        add_token(path, "a b", Role.READER)
    assert not path.exists()
    add_token(path, "a", Role.READER)
    with pytest.raises(InvalidInput, match=r"there is a token 'a' in .*; remove it by `streaming"):
        add_token(path, "a", Role.ADMIN)
    add_token(path, "b", Role.READER)
    with pytest.raises(InvalidInput, match=f"no token {'x' * 40!r} in"):
        remove_token(path, "x" * 41)
    remove_token(path, "a")
    assert [one.name for one in read_tokens(path)] == ["b"]


def test_a_place_that_cannot_be_written_is_told_and_the_umask_is_as_before(tmp_path):
    (tmp_path / "file").write_text("")
    before = os.umask(0o022)
    try:
        with pytest.raises(InvalidInput, match="cannot be written .*; check the path"):
            add_token(tmp_path / "file" / "tokens.json", "a", Role.READER)
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_tokens(tmp_path / "none")
        place = tmp_path / "tokens.json"
        add_token(place, "a", Role.READER)
        assert os.umask(0o022) == 0o022
        with (
            patch.object(Path, "read_bytes", side_effect=PermissionError(13, "Permission denied")),
            pytest.raises(InvalidInput, match=r"\(Permission denied\); check the permissions"),
        ):
            read_tokens(place)
    finally:
        os.umask(before)


def test_a_disk_that_fails_is_told_and_the_umask_is_as_before(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    place, before = tmp_path / "tokens.json", os.umask(0o022)
    try:
        monkeypatch.setattr("streaming_moments.pipelines.service.tokens.write_whole", full)
        with pytest.raises(InvalidInput, match=r"cannot be written \(No space left on device\)"):
            add_token(place, "a", Role.READER)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
