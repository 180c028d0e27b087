"""Read TOML files into dataclasses with sections; errors name each wrong key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from streaming_moments.errors import InvalidInput

T = TypeVar("T")
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_MISSING = ("missing", "missing_argument")
_LONGEST = 40  # shown characters of a value


class UnknownKeys(ValueError):
    """Unknown keys of a section; a validator of a section may raise it."""

    def __init__(self, keys: Iterable[str], known: Iterable[str]) -> None:
        known = list(known)
        nearest = {key: get_close_matches(key, known, n=1) for key in keys}
        self.lines = [
            f"has no key {key!r}, "
            + (f"did you mean {near[0]!r}?" if near else f"only {', '.join(known)}")
            for key, near in nearest.items()
        ]
        super().__init__("; ".join(self.lines))


def read_toml(kind: type[T], path: str | Path) -> T:
    """Read a TOML file into a dataclass.

    The InvalidInput names each key that is unknown, missing or has a wrong value, with its section,
    and for an unknown key the nearest known one.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        start = "" if Path(path).is_absolute() else f", which starts at {Path.cwd()}"
        raise InvalidInput(
            f"{path} cannot be read ({error.strerror}); check the path{start}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not TOML ({error}); correct it") from error
    return from_toml(kind, content, str(path))


def from_toml(kind: type[T], content: Mapping[str, Any], where: str) -> T:
    """Make a dataclass from the content of a TOML file called `where`; errors as in `read_toml`."""
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as refused:
        lines = problems_of(refused, kind)
    raise InvalidInput(f"{where}: {'; '.join(lines)}")


def problems_of(refused: ValidationError, kind: Any) -> list[str]:
    """Return a line for each problem of a dataclass; unknown keys first (often typos)."""
    errors = refused.errors(include_url=False)
    places = [error["loc"] for error in errors]
    unknown, others = [], []
    for error, place in zip(errors, places, strict=True):
        if any(other != place == other[: len(place)] for other in places):
            continue  # a list has no item only because the item is wrong
        section, key, owner = _place(kind, place)
        inside = f"[{'.'.join(section)}]" if section else "the top level"
        cause = error.get("ctx", {}).get("error")
        if error["type"] in _UNKNOWN:
            # a key that is a word of Python, such as `from`, ends with _ there
            cause = UnknownKeys([key], (part.name.rstrip("_") for part in fields(owner)))
        if isinstance(cause, UnknownKeys):
            unknown += [f"{inside} {line}" for line in cause.lines]
        elif error["type"] in _MISSING:
            others.append(f"{inside} lacks {key!r}")
        elif section and error["type"] == "dataclass_type":
            others.append(f"{inside} is {error['input']!r}: write a section with keys of its own")
        else:
            words = [inside] if section else []
            others.append(" ".join([*words, _of_value(key, owner, error)]))
    return unknown + others


def _of_value(key: str, owner: Any, error: Any) -> str:
    if error["type"] == "value_error":  # our own message, which names the value unless it is secret
        return f"{key}: {error['ctx']['error']}" if key else str(error["ctx"]["error"])
    # the rest says how pydantic has tried to read it
    told = re.sub(r"^\w+ should", "it should", error["msg"]).partition(", unable to parse")[0]
    secret = any(part.name == key and not part.repr for part in fields(owner))
    if secret or isinstance(error["input"], list | dict):
        return f"{key}: {told}"
    return f"{key} is {repr(error['input'])[:_LONGEST]}: {told}"


def _place(kind: Any, place: tuple[str | int, ...]) -> tuple[list[str], str, Any]:
    """Return sections, key and the dataclass of the key; lists add positions, and unions types."""
    section, names = [], [part for part in place if isinstance(part, str)]
    while names and (inner := _section(kind, names[0])) is not None:
        kind = inner
        section.append(names.pop(0))
    return section, names[0] if names else "", kind


def _section(kind: Any, name: str) -> Any:
    hint = get_type_hints(kind).get(name)
    return next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)
