"""Tokens: who may do what, kept as hashes in a file."""

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
from streaming_moments.storage.files.local_files import sync, write_whole
from streaming_moments.storage.log.layout import require_name

_PREFIX = "sm_"  # so that a leaked one is found by who looks for them
_BYTES = 32


class Role(IntEnum):
    """What a token is for; each may do what those before it may."""

    READER = 1
    WRITER = 2
    ADMIN = 3

    @classmethod
    def called(cls, name: str) -> Role:
        """Role of a name in small letters.

        Raises
        ------
        InvalidInput
            There is none.
        """
        try:
            return cls[name.upper()]
        except KeyError as error:
            raise InvalidInput(
                f"there is no role {name[:40]!r}; give reader, writer or admin"
            ) from error


@dataclass(frozen=True)
class Token:
    """A token as it is kept.

    Parameters
    ----------
    name : str
        Whose it is; in logs, and a part of idempotency keys.
    role : str
        "reader", "writer" or "admin".
    sha256 : str
        Of the token, in hexadecimal: of 32 random bytes nobody finds another.
    """

    name: str
    role: str
    sha256: str


@dataclass(frozen=True)
class Principal:
    """Who asks.

    Parameters
    ----------
    name : str
        Of the token; empty where no tokens are asked for.
    role : Role
        What it is for.
    """

    name: str
    role: Role


@dataclass(frozen=True)
class Tokens:
    """The tokens of a file.

    Parameters
    ----------
    several : tuple of Token
        Each with a name of its own.
    """

    several: tuple[Token, ...] = ()

    def principal_of(self, presented: str) -> Principal | None:
        """Who presents a token; None where it is none of them.

        One look-up, however many there are. It is by the hash of what is presented, so its time
        tells nothing of the tokens: who guesses cannot choose a hash.

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

    Times of files are not asked: a copy in place may keep them.

    Parameters
    ----------
    path : str or Path
        Of the file.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._parsed: tuple[bytes, Tokens] | None = None

    def read(self) -> Tokens:
        """The tokens that are in the file now; errors as `read_tokens`."""
        content = _content(self._path)
        if self._parsed is None or self._parsed[0] != content:
            self._parsed = content, Tokens(_parsed(content, self._path))
        return self._parsed[1]


_TOKENS: TypeAdapter[tuple[Token, ...]] = TypeAdapter(tuple[Token, ...])
ANYBODY = Principal("", Role.ADMIN)  # on this machine, where there are no tokens


def read_tokens(path: str | Path) -> tuple[Token, ...]:
    """Tokens in a file.

    Raises
    ------
    InvalidInput
        It cannot be read, or is no file of tokens.
    """
    return _parsed(_content(path), path)


def add_token(path: str | Path, name: str, role: Role) -> str:
    """Make a token, keep its hash in a file that its owner alone reads, and return it.

    Raises
    ------
    InvalidInput
        There is one of that name, the name is none, or the file cannot be read or written.
    """
    require_name(name, "a token")
    with _locked(path):
        tokens = read_tokens(path) if Path(path).exists() else ()
        if any(token.name == name for token in tokens):
            raise InvalidInput(
                f"there is a token {name!r} in {path}; remove it, or take another name"
            )
        made = _PREFIX + secrets.token_urlsafe(_BYTES)
        _write(path, (*tokens, Token(name, role.name.lower(), _hash(made))))
    return made


def remove_token(path: str | Path, name: str) -> None:
    """Let a token be one no more; errors as `add_token`, InvalidInput where there is none."""
    _content(path)  # before a lock beside it is made: there may be no such folder
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
        raise InvalidInput(
            f"{path} cannot be read ({error.strerror}); make it by `streaming-moments token add`"
        ) from error


def _parsed(content: bytes, path: str | Path) -> tuple[Token, ...]:
    try:
        tokens = _TOKENS.validate_python(json.loads(content)["tokens"])
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise InvalidInput(
            f"{path} is not a file of tokens; restore it from a copy, or delete it and make the "
            "tokens again by `streaming-moments token add`"
        ) from error
    for token in tokens:
        Role.called(token.role)
    return tokens


@contextmanager
def _locked(path: str | Path) -> Iterator[None]:
    """Hold the lock of a file of tokens, so that no change is made of what another one replaces.

    It is a file beside it that stays: two that lock files of one name would not exclude each other.
    """
    folder, name = os.path.split(os.path.realpath(path))
    try:
        os.makedirs(folder, exist_ok=True)
        lock = os.open(os.path.join(folder, f".{name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror})") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _write(path: str | Path, tokens: Sequence[Token]) -> None:
    content = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=1)
    place, before = os.path.realpath(path), os.umask(0o077)
    try:
        write_whole(place, content.encode() + b"\n")
        sync(os.path.dirname(place))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror})") from error
    finally:
        os.umask(before)
