"""Tokens: each gives its user the rights of a role; a file has their hashes."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.files.backends import remedy_of
from streaming_moments.storage.files.local_files import sync, write_whole
from streaming_moments.storage.log.layout import require_name

# each token begins with this prefix, so that scanners for secrets recognise a leaked token
_PREFIX = "sm_"
_BYTES = 32


class Role(IntEnum):
    """Role of a token; each role includes the rights of the roles above it in this list."""

    READER = 1
    WRITER = 2
    ADMIN = 3

    @classmethod
    def called(cls, name: str) -> Role:
        """Return the role with a name in lower case; raise InvalidInput for any other name."""
        try:
            return cls[name.upper()]
        except KeyError as error:
            raise InvalidInput(
                f"there is no role {name[:40]!r}; give reader, writer or admin"
            ) from error


@dataclass(frozen=True)
class Token:
    """A token as it is stored.

    name : name of its owner; appears in logs and in idempotency keys
    role : "reader", "writer" or "admin"
    sha256 : hash of the token, hexadecimal; it does not reveal the token, which has 32 random bytes
    """

    name: str
    role: str
    sha256: str


@dataclass(frozen=True)
class Principal:
    """The user who sent a request; `name` is that of the token, empty if tokens are not used."""

    name: str
    role: Role


@dataclass(frozen=True)
class Tokens:
    """The tokens of a file; no two have the same name."""

    several: tuple[Token, ...] = ()

    def principal_of(self, presented: str) -> Principal | None:
        """Return the user who has a token; None if the token is unknown.

        Looks up the hash of the given token. How long that takes reveals nothing about the stored
        tokens, because a user cannot choose a hash.

        Examples
        --------
        >>> kept = Tokens((Token("shop", "writer", _hash("sm_secret")),))
        >>> kept.principal_of("sm_secret").role.name, kept.principal_of("sm_other")
        ('WRITER', None)
        """
        digest = _hash(presented)
        found = self._by_digest.get(digest)
        if found is None or not hmac.compare_digest(digest, found.sha256):
            return None
        return Principal(found.name, Role.called(found.role))

    @cached_property
    def _by_digest(self) -> dict[str, Token]:
        return {token.sha256: token for token in self.several}


class TokenFile:
    """A file of tokens, parsed again only when its content has changed.

    The times of the file are ignored, because a copy of another file may preserve them.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._parsed: tuple[bytes, Tokens] | None = None

    def read(self) -> Tokens:
        """Return the tokens that are in the file now; raises what `read_tokens` raises."""
        content = _content(self._path)
        if self._parsed is None or self._parsed[0] != content:
            self._parsed = content, Tokens(_parsed(content, self._path))
        return self._parsed[1]


_TOKENS: TypeAdapter[tuple[Token, ...]] = TypeAdapter(tuple[Token, ...])
# user without a token; if no tokens are configured, anyone on this machine is an admin
ANYBODY = Principal("", Role.ADMIN)


def read_tokens(path: str | Path) -> tuple[Token, ...]:
    """Read the tokens of a file."""
    return _parsed(_content(path), path)


def add_token(path: str | Path, name: str, role: Role) -> str:
    """Make a token, store its hash in a file, and return the token.

    If the file is new, only its owner can read it. An existing file keeps its permissions, owner
    and group. Raises InvalidInput if the name is invalid, or if another token has it.
    """
    require_name(name, "a token")
    with _locked(path):
        tokens = read_tokens(path) if Path(path).exists() else ()
        if any(token.name == name for token in tokens):
            raise InvalidInput(
                f"there is a token {name!r} in {path}; remove it by `streaming-moments token "
                f"remove {path} {name}`, or choose another name"
            )
        made = _PREFIX + secrets.token_urlsafe(_BYTES)
        _write(path, (*tokens, Token(name, role.name.lower(), _hash(made))))
    return made


def remove_token(path: str | Path, name: str) -> None:
    """Remove a token; raises what `add_token` raises, and InvalidInput for an unknown name."""
    # read the token file first: in a missing folder, no lock file can be created, and its error
    # would be less clear
    _content(path)
    with _locked(path):
        tokens = read_tokens(path)
        left = tuple(token for token in tokens if token.name != name)
        if len(left) == len(tokens):
            raise InvalidInput(f"there is no token {name[:40]!r} in {path}")
        _write(path, left)


def _content(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        remedy = remedy_of(error) or "create it by `streaming-moments token add`"
        raise InvalidInput(f"{path} cannot be read ({error.strerror}); {remedy}") from error


def _parsed(content: bytes, path: str | Path) -> tuple[Token, ...]:
    try:
        tokens = _TOKENS.validate_python(json.loads(content)["tokens"])
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise InvalidInput(
            f"{path} is not a token file; restore it from a backup, or delete it and create "
            "the tokens again by `streaming-moments token add`"
        ) from error
    for token in tokens:
        Role.called(token.role)
    return tokens


@contextmanager
def _locked(path: str | Path) -> Iterator[None]:
    """Hold the lock of a token file, so that two processes do not overwrite each other's changes.

    The lock is another file beside the token file. It is never deleted: otherwise two processes
    could lock two different files that had this name one after the other.
    """
    folder, name = os.path.split(os.path.realpath(path))
    try:
        os.makedirs(folder, exist_ok=True)
        lock = os.open(os.path.join(folder, f".{name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unwritten(path, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _unwritten(path: str | Path, error: OSError) -> InvalidInput:
    remedy = remedy_of(error) or "check the path"
    return InvalidInput(f"{path} cannot be written ({error.strerror}); {remedy}")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _write(path: str | Path, tokens: Sequence[Token]) -> None:
    content = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=1)
    place, before = os.path.realpath(path), os.umask(0o077)
    try:
        earlier = os.stat(place) if os.path.exists(place) else None
        if earlier is not None:
            os.umask(~earlier.st_mode & 0o777)
        write_whole(place, content.encode() + b"\n")
        if earlier is not None:
            _keep_owner(place, earlier)
        sync(os.path.dirname(place))
    except OSError as error:
        raise _unwritten(path, error) from error
    finally:
        os.umask(before)


def _keep_owner(place: str, earlier: os.stat_result) -> None:
    """Give a new file the owner and group of the file that it replaced.

    If that is not permitted and the group differs, the group of the file loses all access.
    """
    made = os.stat(place)
    if (made.st_uid, made.st_gid) == (earlier.st_uid, earlier.st_gid):
        return
    try:
        os.chown(place, earlier.st_uid, earlier.st_gid)
    except PermissionError:
        if made.st_gid != earlier.st_gid:
            os.chmod(place, made.st_mode & ~0o070)
