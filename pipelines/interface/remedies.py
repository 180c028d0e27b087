"""Remedies in Python: messages name arguments and methods instead of options and commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import MappingProxyType

from streaming_moments.arguments import D, checked
from streaming_moments.models.registry import model_named
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.interface.reading import argument_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions, option_of
from streaming_moments.printing.remedies import ANY, of_commands

# Methods of `Store`, each with those arguments that are options of a command, too. A remedy shows
# arguments of `_SWITCHES` with the value True.
METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "update": (
            "id_column",
            "skip_bad_shards",
            "unique",
            "include_forgotten",
            "include_moved",
            "memory",
        ),
        "rename": ("copies", "memory"),
        "forget": ("origin", "allow_again", "memory"),
        "merge": ("unique", "least_documents", "include_forgotten", "memory"),
        "refit": ("topics", "alpha0", "method", "seed", "refine", "alpha", "name", "memory"),
        "select": ("topics", "alpha0", "method", "seed", "refine", "memory"),
        "transform": (
            "output",
            "model",
            "id_column",
            "passages",
            "top_documents",
            "foreign_below",
            "replace",
            "memory",
        ),
        "polish": ("model", "passes", "alpha", "name", "skip_bad_shards", "memory"),
        "topics": (),
        "pull_model": ("model", "name"),
        "page": ("output", "model"),
        "label": ("model",),
    }
)
_SWITCHES = frozenset(
    {
        "skip_bad_shards",
        "unique",
        "include_forgotten",
        "include_moved",
        "copies",
        "allow_again",
        "passages",
        "replace",
    }
)
_OTHERS = {
    "create": "create_store(...)",
    "create.like": "create_store(like={})",
    "create.max_topics": "create_store(max_topics={})",
    "rebase.core": "PilotOptions(core={})",
    "rebase.max_topics": "create_store(max_topics={})",
    "merge.as": "merge(name={})",
    "pull-model": "store.pull_model(...)",
    "pull-model.as": "pull_model(name={})",
    "refit.model": "store.refit_as(...)",
}


@cache
def _named() -> Mapping[str, str]:
    """Return the Python call for each command and option; `{}` stands for the value."""
    named = dict(_OTHERS)
    for model in (CountingOptions, PilotOptions, KindOptions):
        for own in fields(model):
            value = "({},)" if isinstance(own.default, tuple) else "{}"
            value = str(not own.default) if isinstance(own.default, bool) else value
            named.setdefault(f"create.{option_of(own)}", f"{model.__name__}({own.name}={value})")
    for name, arguments in METHODS.items():
        named[name] = f"store.{name}(...)"
        for one in arguments:
            value = "True" if one in _SWITCHES else "{}"
            named[f"{name}.{one}"] = f"{name}({argument_of(one)}={value})"
    # give a name in the remedy, because without a name the model is not saved in the store
    named["refit"] = "store.refit(..., name='first')"
    # assign the new store that `update` returns, because the old variable still has the empty one
    named["update"] = "store = store.update(...)"
    return named


def of_stores(command: str, option: str, value: str) -> str:
    """Name an option or a command as in Python.

    If Python has no such argument or method, name the option or command of the command line.

    Examples
    --------
    >>> of_stores("create", "passage_words", ""), of_stores("update", "", "")
    ('`CountingOptions(passage_words=...)`', '`store = store.update(...)`')
    """
    if command == ANY:
        arguments = {one for own in METHODS.values() for one in own}
        if option in arguments:
            return argument_of(option)
        return f"--{option.replace('_', '-')} of the command line"
    named = _named().get(f"{command}.{option}" if option else command)
    if named is None:
        said = of_commands(command, option, value)
        return said.replace("`", "`streaming-moments ", 1) if option else said
    if value and (command, option) == ("refit", "model"):
        return f"`store.refit_as({model_named(value).__name__}, ...)`"
    given = value if value.isdigit() else f'"{value}"' if value else "..."
    return f"`{named.format(given)}`"


def store_door(door: D) -> D:
    """Apply `checked` to a function or method of stores.

    Its error messages then suggest calls of Python, not options of commands.
    """
    return checked(door, of_stores)
