"""Remedies of stores in Python: arguments and methods in place of options and commands."""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING

from streaming_moments.arguments import D, checked
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.remedies import Remedies

if TYPE_CHECKING:
    from streaming_moments.pipelines.interface.store import Store as Store

# Methods of a store that are commands. `create` is a function, and others are commands only.
_METHODS = ("update", "forget", "refit", "select", "transform", "polish", "topics", "page", "label")

_PHRASES = {
    "open it with `streaming-moments update` or MomentStore.open": "open it with open_store",
    r"write shards of one (\w+) each": r'count collections by `update(by="\1")`',
    "give --language NAME": "give languages of CountingOptions",
    r"give --model (\w+)": r"give the class of model \1 to store.refit_as",
    r"\(`--model [^`]*`\)": "(`store.refit_as(...)`)",
    r"\bor --replace\b": "or replace=True",
}
_OTHERS = {
    # options of `dask worker`
    "--memory-limit": "--memory-limit",
    "--max-topics": "max_topics",
    "create --max-topics": "create_store(max_topics={})",
    "topics --model": "store.model(...)",
}


@cache
def of_stores() -> Remedies:
    """Remedies of `create_store`, `open_store` and the methods of a store."""
    from streaming_moments.pipelines.interface.store import Store

    options = dict(_OTHERS)
    for model in (CountingOptions, PilotOptions, KindOptions):
        for one in fields(model):
            flag = one.metadata.get("flag", _flag(one.name))
            value = str(not one.default) if isinstance(one.default, bool) else "{}"
            value = "({},)" if isinstance(one.default, tuple) else value
            said = f"{model.__name__}({one.name}={value})"
            if one.default is True:
                options[f"--no-{flag[2:]}"] = said
            else:
                options.setdefault(flag, f"{one.name} of {model.__name__}")
                options.setdefault(f"create {flag}", said)
    for name in _METHODS:
        for given in inspect.signature(getattr(Store, name)).parameters.values():
            flag, on = _flag(given.name), given.default is False
            options[f"{name} {flag}"] = f"{name}({given.name}={'True' if on else '{}'})"
            if given.name != "replace":  # `update` has one, too, which only commands have
                options.setdefault(flag, f"{given.name}=True" if on else given.name)
    commands = {name: f"store.{name}(...)" for name in _METHODS}
    commands["create"] = "create_store(...)"
    return Remedies(options, commands, _PHRASES)


def said_of_stores(text: str) -> str:
    """Rewrite a message of a job for a caller in Python.

    Examples
    --------
    >>> said_of_stores("cut them (`create --passage-words`), or run `streaming-moments update`")
    'cut them (`CountingOptions(passage_words=...)`), or run `store.update(...)`'
    """
    return of_stores().said(text)


def store_door(door: D) -> D:
    """`checked` for what users of stores call."""
    return checked(door, said_of_stores)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
