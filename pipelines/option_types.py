"""Types of options; they refuse invalid values when the command line is read."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from datetime import timedelta
from math import nan
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import click
from annotated_types import Interval
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.command_help import (
    GroupedCommand,
    GroupedOption,
    OneOf,
    beginning_with,
)
from streaming_moments.pipelines.quantities import (
    Count,
    Number,
    Seed,
    size_of,
    time_of,
)
from streaming_moments.statistics.half_life import half_life_of
from streaming_moments.storage.log.layout import require_name

_Value = TypeVar("_Value")


class Parsed(click.ParamType[_Value]):
    """Type of option that a function parses; the function raises InvalidInput for bad values."""

    def __init__(self, name: str, parse: Callable[[Any], _Value]) -> None:
        self.name, self._parse = name, parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> _Value:
        """Return the parsed value."""
        try:
            return self._parse(value)
        except InvalidInput as error:
            self.fail(f"{error}.", param, ctx)


class Whole(click.ParamType[int]):
    """Type of option: whole numbers in a range. Help does not show the range, but errors do."""

    name = "number"

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        if number < self.least:
            self.fail(f"{number} is too small; give at least {self.least}.", param, ctx)
        if self.most is not None and number > self.most:
            self.fail(f"{number} is too large; give at most {_bound_text(self.most)}.", param, ctx)
        return number


def _bound_text(most: int) -> str:
    """Format a bound as people read it.

    Examples
    --------
    >>> _bound_text(4096), _bound_text(10**12), _bound_text((1 << 64) - 1)
    ('4,096', '1 trillion', '2^64 - 1')
    """
    if most & (most + 1) == 0 and most > _LONG:
        return f"2^{most.bit_length()} - 1"
    return f"{most // 10**12:,} trillion" if most >= 10**12 else f"{most:,}"


class OrAuto(click.ParamType[Any]):
    """Type of option: values of another type, or the word `auto`."""

    def __init__(self, other: click.ParamType[Any]) -> None:
        self.name, self._other = f"{other.name}|auto", other

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word, or the value of the other type."""
        return value if value == "auto" else self._other.convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the word."""
        return beginning_with(incomplete, ("auto",))


Bytes = functools.partial(Parsed[int], "bytes", size_of)
Duration = functools.partial(Parsed[timedelta], "duration", time_of)
HalfLife = functools.partial(Parsed[float], "days", half_life_of)
StoreName = functools.partial(Parsed[str], "name", require_name)


def _version(value: Any) -> int:
    text = str(value).removeprefix(_BEHIND)
    if text == "latest":
        return -1
    if not re.fullmatch(r"-?[0-9]+", text):
        raise InvalidInput(
            f"{text!r} is not a version; give a number, `latest`, or -1 for the latest version and "
            "-2 for the one before it"
        )
    return int(text)


VERSION = Parsed("version", _version)
_BEHIND = "version "


class VersionsCommand(GroupedCommand):
    """Command that takes versions as arguments, so that -1 is read as a version, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments: -1 is the value of an option if one precedes it, else a version."""
        taking = {
            name
            for param in self.params
            if isinstance(param, click.Option) and not param.is_flag
            for name in param.opts
        }
        before = ["", *args]
        return super().parse_args(
            ctx,
            [
                f"{_BEHIND}{one}" if re.fullmatch("-[0-9]+", one) and last not in taking else one
                for last, one in zip(before, args, strict=False)
            ],
        )


class Share(click.ParamType[float]):
    """Type of option: a share, from 0 to 1."""

    name = "share"

    def __init__(self, min_open: bool = False) -> None:
        self._above = min_open

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the share."""
        try:
            share = float(value)
        except ValueError:
            share = nan
        if not 0 <= share <= 1 or (self._above and share == 0):
            bounds = "above 0 and at most 1" if self._above else "from 0 to 1"
            self.fail(f"{value!r} is not a share; give a number {bounds}.", param, ctx)
        return share


def type_of(hint: Any, choices: tuple[str, ...] = ()) -> Any:
    """Return the type of an option from its type hint, or from its allowed names.

    The hint may be a type from the module `quantities`.

    Examples
    --------
    >>> type_of(Count).least
    1
    """
    if choices:
        return OneOf(choices)
    if get_origin(hint) is not Annotated:
        return hint
    plain, bounds = get_args(hint)
    assert isinstance(bounds, Interval)
    if plain is float:
        return Share(min_open=bounds.gt is not None)
    return Whole(cast("int", bounds.ge), cast("int", bounds.le))


def options_given(*kinds: type[Any]) -> set[str]:
    """Return the fields of dataclasses `kinds` whose options the user gave on the command line."""
    source = click.get_current_context().get_parameter_source
    names = {one.name for kind in kinds for one in fields(kind)}
    return {name for name in names if source(name) is ParameterSource.COMMANDLINE}


NUMBER, COUNT, SEED = type_of(Number), type_of(Count), type_of(Seed)


def declared_options(
    kind: type[Any], name: str, without: tuple[str, ...] = (), changes: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make command options from the fields of a frozen dataclass; the command gets an instance.

    kind : dataclass whose fields are made by `models.base.option`
    name : argument of the command that receives the instance
    without : fields that get no option and so have their defaults
    changes : whether the options change an earlier choice; the command then gets a dictionary of
        the options that the user gave
    """
    hints = get_type_hints(kind, include_extras=True)
    declared = [one for one in fields(kind) if one.name not in without]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def told(**given: Any) -> Any:
            values = {one.name: given.pop(one.name) for one in declared}
            if changes:
                values = {key: value for key, value in values.items() if value not in (None, ())}
            return command(**{name: values if changes else kind(**values)}, **given)

        options = [_option(one, hints[one.name], changes) for one in declared]
        return functools.reduce(lambda inner, add: add(inner), reversed(options), told)

    return decorate


def _option(
    one: Field[Any], hint: Any, changes: bool
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    more: Mapping[str, Any] = one.metadata
    flag = more.get("flag", f"--{one.name.replace('_', '-')}")
    if get_origin(hint) in (Union, UnionType):
        [hint] = [part for part in get_args(hint) if part is not NoneType]
    many = get_origin(hint) is tuple
    if many:
        hint = get_args(hint)[0]
    if hint is bool:
        flag = f"{flag}/--no-{flag[2:]}"
    default = None if changes else one.default
    choices = more.get("choices", ())
    return click.option(
        flag,
        one.name,
        cls=GroupedOption,
        sections=more.get("sections"),
        values=more.get("values"),
        type=type_of(hint, choices),
        multiple=many,
        default=default,
        show_default=not many and default is not None,
        metavar=more.get("metavar") or long_choice(one.name, choices),
        help=f"{more['help'][:-1]} [unchanged]." if changes else more["help"],
    )


def long_choice(name: str, choices: Sequence[str]) -> str | None:
    """Return a placeholder for an option of many choices; None for few choices.

    Examples
    --------
    >>> long_choice("format", ("parquet", "text", "zarr", "csv", "tsv"))
    'FORMAT'
    """
    return name.upper() if len(choices) > _FEW else None


_LONG = 10**12  # bounds above this number, such as 2^64 - 1, are written as a power of 2
_FEW = 4  # at most this many choices fit into the column of an option in the help
