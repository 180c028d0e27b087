"""Remedies of errors: say what to do, and name options as in Python, commands or HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, runtime_checkable

Spell: TypeAlias = Callable[[str, str, str], str]

ANY = "option"  # stands for the name of the command if several commands have the option


@runtime_checkable
class Sayable(Protocol):
    """Text that can name options as in Python, as on the command line, or as in HTTP."""

    def said(self, spell: Spell) -> str: ...


@dataclass(frozen=True)
class Remedy:
    """Text that says what to do after an error; options and commands in it can be named as needed.

    Parameters
    ----------
    text : str
        A format string. `{create.passage_words}` stands for an option of a command, `{option.seed}`
        for one that several commands have, `{create.kind:edges}` for one with a value, and
        `{update}` for a command.
    values : mapping
        Values of the other fields of the format string. If a value is a remedy or an error, its
        options are named in the same way.

    Examples
    --------
    >>> found = remedy("split it, or raise {option.memory} above {most}", most="4 GiB")
    >>> str(found)
    'split it, or raise --memory above 4 GiB'
    >>> found.said(of_arguments)
    'split it, or raise memory above 4 GiB'
    """

    text: str
    values: Mapping[str, Any]

    def said(self, spell: Spell) -> str:
        """Return the text; `spell(command, option, value)` writes the names in it."""
        parts = []
        for literal, name, form, _ in Formatter().parse(self.text):
            parts.append(literal)
            if name is not None and name in self.values:
                value = self.values[name]
                own = isinstance(value, Sayable)
                parts.append(value.said(spell) if own else format(value, form or ""))
            elif name is not None:
                command, _, option = name.partition(".")
                parts.append(spell(command, option, form or ""))
        return "".join(parts)

    def __str__(self) -> str:
        return self.said(of_commands)


def remedy(text: str, /, **values: Any) -> Remedy:
    """Make a remedy from a format string and its values."""
    return Remedy(text, values)


def in_words(spell: Spell, problem: object = "", *remedies: Sayable | str) -> str:
    """Join the text of a problem and of its remedies; `spell` writes the names of options.

    The problem is printed unchanged. A remedy that is a text is the format string of a `Remedy`.

    Examples
    --------
    >>> in_words(of_commands, "the list is {too long}", "run {compact}")
    'the list is {too long}; run `streaming-moments compact`'
    """
    text = problem.said(spell) if isinstance(problem, Sayable) else str(problem)
    for one in remedies:
        said = (one if isinstance(one, Sayable) else remedy(one)).said(spell)
        text += f" {said}" if text.endswith(".") else f"; {said}"
    return text


def of_commands(command: str, option: str, value: str) -> str:
    """Name an option or a command on the command line.

    Examples
    --------
    >>> of_commands("create", "passage_words", ""), of_commands("update", "", "")
    ('`create --passage-words`', '`streaming-moments update`')
    """
    if not option:
        return f"`streaming-moments {command}`"
    flag = f"--{option.replace('_', '-')}{f' {value}' if value else ''}"
    return flag if command == ANY else f"`{command} {flag}`"


_ALONE = "as documents of their own"
# For options of stores: what replaces each of them in estimators, which have no store.
_IN_MEMORY = MappingProxyType(
    {
        "core": "vocabulary",
        "max_topics": "max_components",
        "passes": "polish",
        "vocabulary_size": "vocabulary",
        "passage_words": _ALONE,
        "halves": "halves=True",
    }
)
# For options of stores: what replaces each of them in functions on statistics.
_OF_ARGUMENTS = MappingProxyType(
    {
        "max_topics": "max_topics of Basis.from_pilot",
        "length_weights": "length_weights of Basis.from_pilot",
        "sketch_columns": "columns of the sketch",
        "vocabulary_size": "vocabulary",
        "passage_words": _ALONE,
        "halves": "halves=True",
    }
)


def in_memory(command: str, option: str, value: str) -> str:
    """Name an argument of an estimator.

    Examples
    --------
    >>> in_memory("create", "max_topics", ""), in_memory("create", "length_weights", "pooled")
    ('max_components', 'length_weights="pooled"')
    """
    return _argument(_IN_MEMORY, option or command, value)


def of_arguments(command: str, option: str, value: str) -> str:
    """Name an argument of functions on statistics."""
    return _argument(_OF_ARGUMENTS, option or command, value)


def _argument(names: Mapping[str, str], option: str, value: str) -> str:
    name, _, where = names.get(option, option).partition(" of ")
    if value:
        name += f"={value}" if value.isdigit() else f'="{value}"'
    return f"{name} of {where}" if where else name
