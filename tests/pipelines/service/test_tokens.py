"""Tokens: no change of their file is lost, and none that is gone from it lets anybody in."""

import hmac
import os
import stat
import time

import pytest
from forking import forking

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service import tokens
from streaming_moments.pipelines.service.tokens import (
    Role,
    Token,
    TokenFile,
    Tokens,
    add_token,
    read_tokens,
    remove_token,
)

SEVERAL = 25
NOBODY = b'{"tokens": []}'


def add(path, barrier):
    for number in range(SEVERAL):
        barrier.wait()
        add_token(path, f"new{number}", Role.READER)


def remove(path, barrier):
    for number in range(SEVERAL):
        barrier.wait()
        remove_token(path, f"old{number}")


def test_of_two_that_change_the_file_at_once_neither_undoes_the_other(tmp_path):
    path = tmp_path / "tokens.json"
    for number in range(SEVERAL):
        add_token(path, f"old{number}", Role.ADMIN)
    context = forking()
    barrier = context.Barrier(2)
    several = [context.Process(target=one, args=(path, barrier)) for one in (add, remove)]
    for process in several:
        process.start()
    for process in several:
        process.join(120)
        assert process.exitcode == 0
    names = {token.name for token in read_tokens(path)}
    assert names == {f"new{number}" for number in range(SEVERAL)}


def test_only_its_owner_reads_the_file_and_others_keep_their_umask(tmp_path):
    path, before = tmp_path / "tokens.json", os.umask(0o022)
    try:
        add_token(path, "a", Role.READER)
        modes = {name: (tmp_path / name).stat().st_mode for name in os.listdir(tmp_path)}
        assert "tokens.json" in modes
        assert {stat.S_IMODE(mode) for mode in modes.values()} == {0o600}
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o600, 0o400])
def test_a_file_keeps_the_permissions_that_its_owner_gave_it(tmp_path, mode):
    path = tmp_path / "tokens.json"
    add_token(path, "a", Role.READER)
    path.chmod(mode)
    add_token(path, "b", Role.READER)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    remove_token(path, "a")
    assert (stat.S_IMODE(path.stat().st_mode), len(read_tokens(path))) == (mode, 1)


def test_a_file_keeps_its_owner_or_is_closed_to_the_other_group(tmp_path, monkeypatch):
    path, given = tmp_path / "tokens.json", []
    add_token(path, "a", Role.READER)
    path.chmod(0o664)
    earlier = os.stat_result((*path.stat()[:4], 4711, 4712, *path.stat()[6:]))
    monkeypatch.setattr(os, "chown", lambda *told: given.append(told))
    tokens._keep_owner(str(path), path.stat())
    assert given == []
    tokens._keep_owner(str(path), earlier)
    assert given == [(str(path), 4711, 4712)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o664

    def refused(*told):
        raise PermissionError(1, "no")

    monkeypatch.setattr(os, "chown", refused)
    tokens._keep_owner(str(path), earlier)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_change_outlasts_a_power_cut(tmp_path, monkeypatch):
    """The name of the new file is synced with the folder that holds it."""
    synced, fsync = [], os.fsync
    place = os.stat(tmp_path).st_ino

    def noted(descriptor):
        names = {read_names(path) for path in [tmp_path / "tokens.json"]}
        synced.append((os.fstat(descriptor).st_ino, names))
        fsync(descriptor)

    def read_names(path):
        return tuple(token.name for token in read_tokens(path)) if path.exists() else ()

    monkeypatch.setattr(os, "fsync", noted)
    add_token(tmp_path / "tokens.json", "a", Role.READER)
    assert (place, {("a",)}) in synced
    remove_token(tmp_path / "tokens.json", "a")
    assert (place, {()}) in synced[synced.index((place, {("a",)})) :]


def test_a_file_behind_a_link_is_changed_where_it_is(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "tokens.json").symlink_to(tmp_path / "real" / "tokens.json")
    add_token(tmp_path / "tokens.json", "a", Role.READER)
    assert (tmp_path / "tokens.json").is_symlink()
    assert [token.name for token in read_tokens(tmp_path / "real" / "tokens.json")] == ["a"]


def test_what_is_not_there_is_not_removed(tmp_path):
    path = tmp_path / "none" / "tokens.json"
    with pytest.raises(InvalidInput, match="cannot be read"):
        remove_token(path, "a")
    assert not path.parent.exists()
    add_token(path, "a", Role.READER)
    with pytest.raises(InvalidInput, match="no token 'b'"):
        remove_token(path, "b")
    with pytest.raises(InvalidInput, match="there is a token 'a'"):
        add_token(path, "a", Role.READER)


def test_a_file_is_read_again_though_its_time_and_size_are_the_same(tmp_path):
    path = tmp_path / "tokens.json"
    made = add_token(path, "a", Role.READER)
    file, content, before = TokenFile(path), path.read_bytes(), path.stat()
    assert file.read().principal_of(made).name == "a"
    assert file.read() is file.read()
    with open(path, "r+b") as there:
        there.write(NOBODY.ljust(len(content)))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino, after.st_size) == (
        before.st_mtime_ns,
        before.st_ino,
        before.st_size,
    )
    assert file.read().principal_of(made) is None
    path.write_bytes(content)
    assert file.read().principal_of(made).role is Role.READER


def test_however_many_there_are_one_is_compared(monkeypatch):
    compared, compare = [], hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda *two: compared.append(two) or compare(*two))
    several = Tokens(tuple(Token(f"t{n}", "reader", f"{n:064x}") for n in range(100_000)))
    assert several.principal_of("sm_none") is None
    assert len(compared) <= 1


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff", b'{"tokens": [{"name": "a"}]}', None]
)
def test_without_a_file_that_can_be_read_nobody_is_let_in(serve, place, content):
    path = place / "tokens.json"
    made = add_token(path, "me", Role.ADMIN)
    whole = path.read_bytes()
    told = {"Authorization": f"Bearer {made}"}
    with serve(tokens=str(path)) as client:
        assert client("GET", "/v1/status", headers=told).status_code == 200
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        client.service.current.look_at_tokens()
        answer = client("GET", "/v1/status", headers=told)
        assert (answer.status_code, int(answer.headers["Retry-After"]) > 0) == (503, True)
        assert "token file" in answer.json()["detail"]
        ready = client("GET", "/readyz")
        assert (ready.status_code, ready.json()["problems"]) == (503, ["tokens"])
        assert client("GET", "/healthz").status_code == 200
        path.write_bytes(NOBODY)
        client.service.current.look_at_tokens()
        assert client("GET", "/v1/status", headers=told).status_code == 401
        path.write_bytes(whole)
        client.service.current.look_at_tokens()
        assert client("GET", "/v1/status", headers=told).status_code == 200


def test_a_removed_token_is_refused_while_the_storage_hangs(serve, place, monkeypatch):
    """Its file is looked at by a thread of its own."""
    path = place / "tokens.json"
    made = add_token(path, "me", Role.ADMIN)
    told = {"Authorization": f"Bearer {made}"}
    with serve(tokens=str(path), refresh="20ms") as client:
        current = client.service.current
        with current._looking:  # as a look at a storage that does not answer does
            assert client("GET", "/v1/status", headers=told).status_code == 200
            remove_token(path, "me")
            deadline = time.monotonic() + 60
            while client("GET", "/v1/status", headers=told).status_code == 200:
                assert time.monotonic() < deadline
            assert client("GET", "/v1/status", headers=told).status_code == 401
