"""The command line: which commands there are, and where each is."""

from __future__ import annotations

import gc
import sys
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType

import click

from streaming_moments.startup import begun

_PACKAGE = "streaming_moments.pipelines.command_line"
# By the folder of their files, which bear their names, with the first line of their help.
_COMMANDS: dict[str, dict[str, str]] = {
    "stores": {
        "compact": "Replace the segments of STORE by their sums; older versions keep theirs.",
        "create": (
            "Make STORE with a vocabulary and basis from a sample of SHARDS; counts nothing yet."
        ),
        "diff": "Show what changed in STORE from version BEFORE to version AFTER.",
        "expire": "Drop old versions of STORE, and delete what only they hold.",
        "forget": (
            "Take counted SHARDS out of STORE, as if they had never come; reads them once more."
        ),
        "gc": "Delete what writers that died have left in STORE.",
        "grow": "Add to STORE the words that became frequent, found in a sample of SHARDS.",
        "log": "Show the commits of STORE, the latest first, and where its history begins.",
        "purge": (
            "Let no version, model or file of STORE keep anything of SHARDS, as the law may ask."
        ),
        "rebase": "Give STORE new words and a new basis, and count the shards it holds once more.",
        "rollback": (
            "Make STORE again what it was at VERSION, or a tag what it was, by a new commit."
        ),
        "status": "Show what STORE holds.",
        "update": "Count the SHARDS that STORE has not counted yet.",
        "verify": (
            "Read every file of a version of STORE and check hashes and sums; exit code 2 if "
            "unsound."
        ),
    },
    "models": {
        "label": "Let TOPIC of a model of STORE be called TEXT, wherever it is shown.",
        "memberships": (
            "Write the memberships of all nodes by a model of STORE, of edges, as Parquet."
        ),
        "page": "Write a page of a model of STORE: one HTML file that loads nothing.",
        "polish": "Polish a model of STORE by passes over SHARDS, and keep the new one beside it.",
        "refit": "Fit a model to STORE, without the documents, and keep it there.",
        "select": (
            "Compare numbers of topics, or states, on STORE by what is held out; keeps no model."
        ),
        "tag": "Let the tag NAME stand for MODEL of STORE, wherever it stood before.",
        "topics": "Show the topics of a model of STORE.",
        "transform": (
            "Write topic proportions of each document of SHARDS, or completed rows, as Parquet."
        ),
    },
    "service": {
        "accumulate": (
            "Seal what waits in the inbox and count it, as CONFIG (TOML) says, beside servers."
        ),
        "inbox": "Say which store an inbox of the service belongs to, and assign it to another.",
        "serve": "Take documents and answer for topics over HTTP, as CONFIG (TOML) says.",
        "set-aside": (
            "Show the shards that cannot be counted, count them again, or refuse their documents."
        ),
        "token": "Make and remove the tokens by which callers of the service are known.",
    },
    "": {
        "demo": "Find the topics of the State of the Union addresses, from scratch.",
        "kernels": "Compile the kernels now, so that no later command has to wait for it.",
        "neighbours": (
            "Group the edges in SHARDS by node, into lists of neighbours: documents for a store."
        ),
        "nightly": (
            "Update, measure drift, rebase if due, refit, judge and publish, as CONFIG (TOML) says."
        ),
        "plan": (
            "Say what a store of SHARDS will cost: bytes, seconds, workers; reads a few megabytes."
        ),
    },
}
_FOLDERS = {name: folder for folder, own in _COMMANDS.items() for name in own}
_ALIASES = {"show": "topics"}


class LateGroup(click.Group):
    """Imports a command when it is asked for: none waits for what only others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_FOLDERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = _ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in _FOLDERS:
            return None
        own = cmd_name.replace("-", "_")
        module = _loaded(".".join(filter(None, (_PACKAGE, _FOLDERS[cmd_name], own))))
        begun()
        command: click.Command = getattr(module, own)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of that name; one that there is not is taken for a slip."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], {*_FOLDERS, *_ALIASES} - {args[0]}, n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, none of which is imported."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(line for own in _COMMANDS.values() for line in own.items()))


def _loaded(name: str) -> ModuleType:
    """A module, in nine tenths of the time: what is loaded stays, and is no garbage."""
    if name in sys.modules or not gc.isenabled():
        return import_module(name)
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()
