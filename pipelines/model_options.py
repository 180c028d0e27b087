"""Options of the command `refit`, made from the options of all models, and a table of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, cast, get_args, get_type_hints

import click
from click.shell_completion import CompletionItem

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import FitOptions
from streaming_moments.models.registry import (
    COUNTERPARTS,
    DEFAULT_MODEL,
    MODELS,
    model_named,
)
from streaming_moments.models.states import compares_states
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.pipelines.command_help import (
    SOME,
    GroupedOption,
    OneOf,
    beginning_with,
    in_section,
)

AUTO, FOUND = "auto", "found"
_MODEL = "Model"
_PLAIN: dict[type, click.ParamType[Any]] = {int: click.INT, float: click.FLOAT, str: click.STRING}


@dataclass(frozen=True)
class FitRequest:
    """The model of `MODELS` that a refit fits, with its options.

    `auto` names the options whose values will be chosen from the data. It maps each name to the
    word that the user gave as the value: "auto" or "predict".
    """

    model: Any
    options: FitOptions
    auto: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """First part of the name under which the fitted model is saved; the version follows it."""
        name = self.model.name
        return self.options.label if name == DEFAULT_MODEL else f"{name}-{self.options.label}"

    def on(self, kind: str) -> FitRequest:
        """Return the request for a store of kind `kind`.

        The name of a model can mean another model on a store of another kind.

        Raises UsageError if an option is given that this other model lacks.
        """
        other = COUNTERPARTS.get((self.model.name, kind))
        if other is None:
            return self
        own = {one.name for one in fields(other.Options)}
        told = {one.name: getattr(self.options, one.name) for one in fields(self.options)}
        idle = [
            one.name
            for one in fields(self.options)
            if one.name not in own and told[one.name] != one.default
        ]
        if idle:
            raise click.UsageError(
                f"{_flag(idle[0])} is not an option of model {self.model.name} for kind {kind}; "
                f"it has {', '.join(map(_flag, sorted(own)))}."
            )
        options = other.Options(**{name: told[name] for name in told.keys() & own})
        return FitRequest(other, options, self.auto)


class OptionOf(click.ParamType[Any]):
    """Type of an option: a value of one field of a model's options, or a word such as `auto`."""

    def __init__(self, one: Field[Any], kind: type, auto: Sequence[str] = ()) -> None:
        # if a field allows several types, such as a number or "auto", the first one is the type
        # of number
        plain = next(iter(get_args(kind)), kind)
        self._plain, self._check, self._auto = _PLAIN[plain], one.metadata["check"], auto
        self.name = self._plain.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a text to a value of the field."""
        if value in self._auto:
            return value
        try:
            found = self._plain.convert(value, param, ctx)
        except click.BadParameter:
            others = "".join(f", nor {word!r}" for word in self._auto)
            what = "whole number" if self._plain is click.INT else "number"
            self.fail(f"{value!r} is not a {what}{others}.", param, ctx)
        try:
            if self._check is not None:
                self._check(found)
        except InvalidInput as error:
            self.fail(f"{error}.", param, ctx)
        return found

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the words."""
        return beginning_with(incomplete, self._auto)


def field_option(
    one: Field[Any], options: type[FitOptions] = FitOptions, auto: Sequence[str] = (), **shown: Any
) -> Callable[..., Any]:
    """Make an option of the command line from a field; `shown` as in `click.option`."""
    if "choices" in one.metadata:
        kind: Any = OneOf(one.metadata["choices"])
    else:
        kind = OptionOf(one, get_type_hints(options)[one.name], auto)
    numbers = kind.name in ("integer", "float")
    told = {
        "help": one.metadata["help"],
        "metavar": "|".join(("N", *auto)) if numbers else None,
        **shown,
    }
    return click.option(one.name, *_flags(one), type=kind, **told)


def method_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the decomposition to a command, and the seed of its random starts."""
    for one in reversed(fields(FitOptions)):
        if one.default is not MISSING:
            command = field_option(one, default=one.default, show_default=True)(command)
    return command


def refine_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option of the rounds of refinement, which may be `auto`, to a command."""
    [one] = (one for one in fields(TopicOptions) if one.name == "refine")
    words = one.metadata[AUTO]
    shown = field_option(one, TopicOptions, words, default=one.default, show_default=True)
    return cast("Callable[..., Any]", shown(command))


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--model` and the options of every model to a command.

    The command receives them as one argument, `asked`, which is a FitRequest.
    """
    known = _every_option()

    @functools.wraps(command)
    def chosen(model: str, **given: Any) -> Any:
        own = {name: value for name in known if (value := given.pop(name)) is not None}
        return command(asked=requested(model, own), **given)

    placed: Callable[..., Any] = chosen
    for holders in reversed(known.values()):
        (model, one), *_ = holders.items()
        told = one.metadata["help"] + (f" [{_default(holders)}]" if _default(holders) else "")
        placed = field_option(
            one,
            MODELS[model].Options,
            one.metadata.get(AUTO, ()),
            help=told if len(holders) == len(MODELS) else f"For {', '.join(holders)}: {told}",
            cls=GroupedOption,
            sections=_sections(holders),
        )(placed)
    return in_section(
        _MODEL,
        "--model",
        type=OneOf(tuple(MODELS)),
        default=DEFAULT_MODEL,
        show_default=True,
        metavar="MODEL",
        help=f"Model to fit: {', '.join(MODELS)}.",
    )(placed)


def _sections(holders: dict[str, Field[Any]]) -> dict[str, str | None]:
    """Return the help of an option for each model that has it, by the heading of the model."""
    if len(holders) == len(MODELS):
        return {_MODEL: None}
    return {
        f"{SOME}model {model}": f"{one.metadata['help']} [{_default({model: one})}]"
        for model, one in holders.items()
    }


def requested(model: str, given: dict[str, Any]) -> FitRequest:
    """Return the request to fit the model named `model` with the given options.

    Raises UsageError for an option that the model lacks, and for a missing option.
    """
    chosen = model_named(model)
    own = {one.name: one for one in fields(chosen.Options)}
    if chosen.finds_topics:
        given = {"topics": AUTO} | given
    for name in given:
        if name not in own:
            raise click.UsageError(
                f"{_flag(name)} is not an option of model {model}; it has "
                f"{', '.join(map(_flag, own))}."
            )
    for name, one in own.items():
        if one.default is MISSING and name not in given:
            raise click.UsageError(f"model {model} needs {_flag(name)}.")
    # if the fit itself can find the value of an option, replace `auto` by the word that requests it
    found = {name: own[name].metadata[FOUND] for name in given if FOUND in own[name].metadata}
    given |= {name: value for name, value in found.items() if given[name] == AUTO}
    # collect the other options with `auto`: the command, not the fit, chooses their values
    auto = {
        name: str(value)
        for name, value in given.items()
        if value in own[name].metadata.get(AUTO, ()) and value != found.get(name)
    }
    idle = [name for name in auto if not finds_number(chosen, name)]
    if idle:
        [name, *_] = idle
        known = [key for key, one in MODELS.items() if finds_number(one, name)]
        raise click.UsageError(
            f"{_flag(name)} {auto[name]} works only for models {', '.join(known)}."
        )
    # put placeholders for these options until the command has chosen their values
    given |= {name: own[name].default if name != "topics" else 1 for name in auto}
    return FitRequest(chosen, chosen.Options(**given), auto)


def finds_number(model: Any, option: str) -> bool:
    """Whether a refit can choose the value of an option of a model by scores on held-out halves."""
    return bool(model.finds_topics or (option == "topics" and compares_states(model)))


def options_table() -> str:
    """Return all options of all models as a Markdown table for the documentation."""
    heads = "| option of `refit` | default | of the models | meaning |"
    lines = [heads, "| --- | --- | --- | --- |"]
    for holders in _every_option().values():
        one = next(iter(holders.values()))
        choices = ", ".join(f"`{choice}`" for choice in one.metadata.get("choices", ()))
        told = one.metadata["help"].removesuffix(".") + (f": {choices}" if choices else "")
        flags = " or ".join(f"`{flag}`" for flag in _flags(one))
        row = flags, _default(holders), ", ".join(holders), told
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _every_option() -> dict[str, dict[str, Field[Any]]]:
    """Return, for each name of an option, its field in every model that has it."""
    known: dict[str, dict[str, Field[Any]]] = {}
    for model, one in MODELS.items():
        for own in fields(one.Options):
            known.setdefault(own.name, {})[model] = own
    return known


def _default(holders: dict[str, Field[Any]]) -> str:
    """Describe the default of an option in the first model, and other defaults in other models."""
    known = {model: one.default for model, one in holders.items() if one.default is not MISSING}
    if not known:
        return f"{AUTO} for {DEFAULT_MODEL}"
    first = next(iter(known.values()))
    others = (f"; {value} for {model}" for model, value in known.items() if value != first)
    return f"{first}{''.join(others)}"


def _flags(one: Field[Any]) -> list[str]:
    """Return all flags of an option; the first one has the name of the field."""
    return [_flag(name) for name in (one.name, *one.metadata.get("also", ()))]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
