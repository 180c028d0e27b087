"""Tokens: who may do what, kept as hashes in a file."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
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


_TOKENS: TypeAdapter[tuple[Token, ...]] = TypeAdapter(tuple[Token, ...])
ANYBODY = Principal("", Role.ADMIN)  # on this machine, where there are no tokens


def read_tokens(path: str | Path) -> tuple[Token, ...]:
    """Tokens in a file.

    Raises
    ------
    InvalidInput
        It cannot be read, or is no file of tokens.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        tokens = _TOKENS.validate_python(content["tokens"])
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read ({error.strerror}); make it by `streaming-moments token add`"
        ) from error
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise InvalidInput(f"{path} is no file of tokens; make one anew") from error
    for token in tokens:
        Role.called(token.role)
    return tokens


def add_token(path: str | Path, name: str, role: Role) -> str:
    """Make a token, keep its hash in a file that its owner alone reads, and return it.

    Raises
    ------
    InvalidInput
        There is one of that name, the name is none, or the file cannot be read or written.
    """
    require_name(name, "a token")
    tokens = read_tokens(path) if Path(path).exists() else ()
    if any(token.name == name for token in tokens):
        raise InvalidInput(f"there is a token {name!r} in {path}; remove it, or take another name")
    made = _PREFIX + secrets.token_urlsafe(_BYTES)
    _write(path, (*tokens, Token(name, role.name.lower(), _hash(made))))
    return made


def remove_token(path: str | Path, name: str) -> None:
    """Let a token be one no more; errors as `add_token`, InvalidInput where there is none."""
    tokens = read_tokens(path)
    left = tuple(token for token in tokens if token.name != name)
    if len(left) == len(tokens):
        raise InvalidInput(f"there is no token {name[:40]!r} in {path}")
    _write(path, left)


def principal_of(presented: str, tokens: Sequence[Token]) -> Principal | None:
    """Who presents a token; None where it is none of them. All are compared, in constant time.

    Examples
    --------
    >>> kept = Token("shop", "writer", _hash("sm_secret"))
    >>> principal_of("sm_secret", [kept]).role.name, principal_of("sm_other", [kept])
    ('WRITER', None)
    """
    mine, found = _hash(presented), None
    for token in tokens:
        if hmac.compare_digest(mine, token.sha256):
            found = Principal(token.name, Role.called(token.role))
    return found


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _write(path: str | Path, tokens: Sequence[Token]) -> None:
    content = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=1)
    place, before = os.path.abspath(path), os.umask(0o077)
    try:
        write_whole(place, content.encode() + b"\n")
        sync(os.path.dirname(place))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror})") from error
    finally:
        os.umask(before)
