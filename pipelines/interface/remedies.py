"""Remedies of stores in Python: arguments and methods in place of options and commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import MappingProxyType

from streaming_moments.arguments import D, checked
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.remedies import Remedies

# Arguments of methods of a store that commands have as options; those of `_SWITCHES` are True.
METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "update": ("id_column", "skip_bad_shards", "unique", "include_forgotten", "memory"),
        "forget": ("origin", "allow_again", "memory"),
        "merge": ("unique", "least_documents", "memory"),
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
        "page": ("output", "model"),
        "label": ("model",),
    }
)
_SWITCHES = frozenset(
    {"skip_bad_shards", "unique", "include_forgotten", "allow_again", "passages", "replace"}
)
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
    "--like": "like",
    "create --like": "create_store(like={})",
    "--as": "name",
    "--max-topics": "max_topics",
    "create --max-topics": "create_store(max_topics={})",
    "topics --model": "store.model(...)",
}


@cache
def of_stores() -> Remedies:
    """Remedies of `create_store`, `open_store` and the methods of a store."""
    options = dict(_OTHERS)
    for model in (CountingOptions, PilotOptions, KindOptions):
        for own in fields(model):
            flag = own.metadata.get("flag", _flag(own.name))
            value = str(not own.default) if isinstance(own.default, bool) else "{}"
            value = "({},)" if isinstance(own.default, tuple) else value
            said = f"{model.__name__}({own.name}={value})"
            if own.default is True:
                options[f"--no-{flag[2:]}"] = said
            else:
                options.setdefault(flag, f"{own.name} of {model.__name__}")
                options.setdefault(f"create {flag}", said)
    for name, arguments in METHODS.items():
        for one in arguments:
            flag, on = _flag(one), one in _SWITCHES
            options[f"{name} {flag}"] = f"{name}({one}={'True' if on else '{}'})"
            if one != "replace":  # `update` has one, too, which only commands have
                options.setdefault(flag, f"{one}=True" if on else one)
    commands = {name: f"store.{name}(...)" for name in METHODS}
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
