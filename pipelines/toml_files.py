"""Read TOML files into dataclasses with sections; errors name each wrong key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.nearest import guess, nearest

T = TypeVar("T")
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_MISSING = ("missing", "missing_argument")
_TOP = "the top level"
_LONGEST = 40  # messages show at most this many characters of a value


class UnknownKeys(ValueError):
    """Error for unknown keys of a section of a TOML file; a validator may raise it.

    `meant` holds the known keys that the message suggests in place of the unknown ones.
    """

    def __init__(self, keys: Iterable[str], known: Iterable[str]) -> None:
        keys, known = list(keys), list(known)
        guesses = {key: nearest(key, known) for key in keys}
        self.meant = {near for near in guesses.values() if near is not None}
        only = f"only {', '.join(known)}"
        self.lines = [
            f"has no key {key!r}; {guess(key, known, only)}" for key in keys if guesses[key]
        ]
        # list the known keys once, even if several unknown keys resemble none of them
        if strange := ", ".join(repr(key) for key in keys if not guesses[key]):
            self.lines.append(f"has no key {strange}; {only}")
        super().__init__("; ".join(self.lines))


@dataclass(frozen=True)
class OtherFile:
    """A configuration file of another kind, which users may give by mistake.

    marks : keys of the top level that only this kind of file has
    what, command : what the file configures, and the command that takes it
    wanted : the kind of configuration to give instead, with the usual name of such a file
    """

    marks: frozenset[str]
    what: str
    command: str
    wanted: str


def read_toml(kind: type[T], path: str | Path, other: OtherFile | None = None) -> T:
    """Read a TOML file into a dataclass.

    Raises InvalidInput if the file is invalid. The message names each key that is unknown, missing
    or has a wrong value, and the section of the key. For an unknown key it suggests the most
    similar known one. If the file is of the kind `other`, the message says only that.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        start = "" if Path(path).is_absolute() else f", which is relative to {Path.cwd()}"
        raise InvalidInput(
            f"{path} cannot be read ({error.strerror}); check the path{start}"
        ) from error
    except (ValueError, RecursionError) as error:
        told = str(error).replace("Cannot overwrite a value", "the key was given before")
        raise InvalidInput(f"{path} is not TOML ({told}); correct it") from error
    # report only that the file is of another kind, because messages about its keys would mislead
    if other is not None and other.marks & content.keys():
        raise InvalidInput(
            f"{path} is the configuration of {other.what}, for `{other.command} {path}`; give the "
            f"configuration of {other.wanted}"
        )
    return from_toml(kind, content, str(path))


def from_toml(kind: type[T], content: Mapping[str, Any], where: str) -> T:
    """Make a dataclass from the content of a TOML file; messages call the file `where`.

    Raises InvalidInput as `read_toml` does.
    """
    try:
        return TypeAdapter(kind).validate_python(with_misplaced_marked(kind, content))
    except ValidationError as refused:
        lines = problems_of(refused, kind)
    raise InvalidInput(f"{where}: {'; '.join(lines).replace('?;', '?')}")


class _Misplaced:
    """Stands for a value of a wrong type, such as a boolean for a number, or a number in quotes.

    Pydantic accepts no object of this class. Without it, pydantic would read True as a number,
    "yes" and 1 as true, and "0.05" as a number.
    """

    def __init__(self, value: Any) -> None:
        self._text = _shown(value)

    def __repr__(self) -> str:
        return self._text


def with_misplaced_marked(kind: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    """Mark values of a wrong TOML type, so that pydantic refuses them.

    These are booleans where a field of the dataclass has another type, other values where a field
    is a boolean, and numbers in quotes.
    """
    hints = get_type_hints(kind, include_extras=True)
    return {name: _marked(kind, name, hints, value) for name, value in content.items()}


def _marked(kind: Any, name: str, hints: Mapping[str, Any], value: Any) -> Any:
    section = _section(kind, name)
    if section is not None and isinstance(value, dict):
        return with_misplaced_marked(section, value)
    if hints.get(name) is bool and not isinstance(value, bool):
        return _Misplaced(value)
    if name not in hints:
        return value
    hint = hints[name]

    def marked(one: Any) -> Any:
        misplaced = isinstance(one, bool) and not _may_be_boolean(hint)
        quoted = isinstance(one, str) and _is_number(one) and not _reads_text(hint)
        return _Misplaced(one) if misplaced or quoted else one

    return [marked(one) for one in value] if isinstance(value, list) else marked(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _reads_text(hint: Any) -> bool:
    """Whether a type parses arbitrary texts, as a duration parses "10m"."""
    if get_origin(hint) is Annotated:
        base, *rules = get_args(hint)
        # ignore the validator of a tuple, which only turns a single value into a list
        several = get_origin(base) is tuple
        parsed = not several and any(isinstance(one, BeforeValidator) for one in rules)
        return parsed or _reads_text(base)
    if get_origin(hint) is Literal:
        return False
    parts = get_args(hint)
    if parts:
        return any(_reads_text(one) for one in parts if one is not Ellipsis)
    return hint not in (int, float, bool, type(None))


def _may_be_boolean(hint: Any) -> bool:
    return hint in (bool, Any) or any(map(_may_be_boolean, get_args(hint)))


def problems_of(refused: ValidationError, kind: Any) -> list[str]:
    """Return a line for each problem that pydantic found; unknown keys, often typos, come first.

    A missing key gets no line if the line of an unknown key already suggests it.
    """
    errors = refused.errors(include_url=False)
    places = [error["loc"] for error in errors]
    unknown, missing, meant = list[str](), dict[tuple[str, str], str](), set[tuple[str, str]]()
    # for each section: its unknown keys, and the dataclass that has its known keys
    strange = dict[str, tuple[list[str], Any]]()
    # if a key may have values of several types, pydantic gives an error for each; join them in one
    # line
    wrong, others = dict[tuple[Any, ...], list[Any]](), dict[tuple[Any, ...], str]()
    for error, place in zip(errors, places, strict=True):
        if any(other != place == other[: len(place)] for other in places):
            continue  # skip the error of a whole list if one of its items has an error
        section, key, owner = _place(kind, place)
        inside = f"[{'.'.join(section)}]" if section else _TOP
        cause = error.get("ctx", {}).get("error")
        if error["type"] in _UNKNOWN:
            strange.setdefault(inside, ([], owner))[0].append(key)
        elif isinstance(cause, UnknownKeys):
            unknown += [f"{inside} {line}" for line in cause.lines]
            meant |= {(inside, name) for name in cause.meant}
        elif error["type"] in _MISSING:
            if key:
                missing[inside, key] = f"{inside} lacks {key!r}; add it"
            else:
                missing[_TOP, section[-1]] = f"the section {inside} is missing"
        elif section and error["type"] == "dataclass_type":
            shown = _shown(error["input"])
            others[place] = f"{inside} is {shown}: write a section with keys of its own"
        else:
            words = [inside] if section else []
            # this error was raised by this package; its text already names the value, unless it is
            # secret
            if error["type"] == "value_error":
                text = str(error["ctx"]["error"])
                named = not key or text.startswith(f"{key} ")
                others[place] = " ".join([*words, text if named else f"{key}: {text}"])
                continue
            item = (*section, key, *(part for part in place if isinstance(part, int)))
            wrong.setdefault(item, []).append(error)
            others[item] = " ".join([*words, _of_value(key, owner, wrong[item])])
    for inside, (keys, owner) in strange.items():
        # if a key is a keyword of Python, such as `from`, its field has the name with _ at the end
        found = UnknownKeys(keys, (part.name.rstrip("_") for part in fields(owner)))
        unknown += [f"{inside} {line}" for line in found.lines]
        meant |= {(inside, name) for name in found.meant}
    lacking = [line for place, line in missing.items() if place not in meant]
    return [*unknown, *lacking, *others.values()]


# For each type of error of pydantic, what a valid value is. The braces are filled from the context
# of the error.
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string_type": "text in quotes",
    "string_too_short": "text that is not empty",
    "list": "a list",
    "tuple": "a list",
    "dict": "a section with keys of its own",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "literal": "{expected}",
    "too_short": "at least {min_length} of them",
}


def _of_value(key: str, owner: Any, errors: Sequence[Any]) -> str:
    told = f"write {' or '.join(dict.fromkeys(map(_wanted, errors)))}"
    value = errors[0]["input"]
    secret = any(part.name == key and not part.repr for part in fields(owner))
    if secret or isinstance(value, list | dict):
        return f"{key}: {told}"
    return f"{key} is {_shown(value)}: {told}"


def _wanted(error: Any) -> str:
    kind = error["type"]
    # try longer types of errors first, because "greater_than_equal" begins with "greater_than"
    of = next((one for one in sorted(_WANTED, reverse=True) if kind.startswith(one)), None)
    if of is None:
        return str(error["msg"])
    context = {
        name: value if isinstance(value, str) else _number(value)
        for name, value in error.get("ctx", {}).items()
    }
    return _WANTED[of].format(**context)


def _number(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.12g}"


def _shown(value: Any) -> str:
    """Format a value as it is written in TOML; long values are cut."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text[:_LONGEST]


def _place(kind: Any, place: tuple[str | int, ...]) -> tuple[list[str], str, Any]:
    """Return the sections and the key that have an error, and the dataclass that has the key.

    `place` is a path in pydantic's form: it also has positions in lists, which are left out, and
    names of types of unions.
    """
    section, names = [], [part for part in place if isinstance(part, str)]
    while names and (inner := _section(kind, names[0])) is not None:
        kind = inner
        section.append(names.pop(0))
    return section, names[0] if names else "", kind


def _section(kind: Any, name: str) -> Any:
    hint = get_type_hints(kind).get(name)
    return next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)
