"""The list of all commands, each with the folder that has its file."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from types import ModuleType

import click
from click.shell_completion import CompletionItem

from streaming_moments.pipelines.command_help import CommandGroup
from streaming_moments.startup import begun

_PACKAGE = "streaming_moments.pipelines.command_line"
# Commands by the folder of their files, each with the first line of its help. The file of a command
# has the name of the command.
_COMMANDS: dict[str, dict[str, str]] = {
    "stores": {
        "compact": (
            "Merge segments of STORE, so that reading it is faster; older versions stay readable."
        ),
        "create": (
            "Create STORE: choose its vocabulary and basis from a sample of SHARDS. Counts "
            "nothing yet."
        ),
        "diff": "Show what changed in STORE from version BEFORE to version AFTER.",
        "expire": "Drop old versions of STORE and delete the files that only they use.",
        "forget": (
            "Subtract counted SHARDS from STORE, as if they had never been counted. Reads them "
            "again."
        ),
        "gc": "Delete files that interrupted writers left in STORE.",
        "grow": "Add words to STORE that have become frequent in a sample of SHARDS.",
        "log": "Show the commits of STORE, the latest first.",
        "purge": (
            "Erase SHARDS from all versions, models and files of STORE, for example to comply "
            "with a law."
        ),
        "rebase": "Give STORE a new vocabulary and basis, and count its shards again.",
        "rename": "Record in STORE that counted shards have moved from OLD to NEW.",
        "rollback": "Restore STORE, or one tag, to an earlier state by a new commit.",
        "status": "Show what STORE holds, and what to do next.",
        "update": "Count the SHARDS that STORE has not counted yet.",
        "verify": (
            "Check the hashes and sums of all files of a version of STORE; exit code 2 if one is "
            "wrong."
        ),
    },
    "sites": {
        "foundation": (
            "Write the words, basis and rules of STORE as a file, for `create --like` at another "
            "site."
        ),
        "merge": ("Add the counts of each OTHER store to STORE; later calls add what has changed."),
        "pull-model": "Copy a model of the store HUB to STORE, which has the same foundation.",
    },
    "models": {
        "label": "Name a topic of a model of STORE: TOPIC is shown as TEXT from then on.",
        "memberships": (
            "Write the community memberships of all nodes of a graph, by a model of STORE, as "
            "Parquet."
        ),
        "page": "Write a page about a model of STORE: one HTML file that works offline.",
        "polish": "Improve a model of STORE by passes over SHARDS, and save it as a new model.",
        "refit": "Fit a model to STORE, without reading any document, and save it there.",
        "select": "Compare numbers of topics or states on STORE by held-out data; saves no model.",
        "tag": "Move the tag NAME to MODEL of STORE; creates the tag if it is new.",
        "topics": "Show the topics of a model of STORE.",
        "transform": (
            "Write the topic proportions of each document of SHARDS, or completed rows, as Parquet."
        ),
    },
    "service": {
        "accumulate": (
            "Count pending documents of the service, as CONFIG (TOML) says, beside its servers."
        ),
        "inbox": (
            "Show which store an inbox of the service belongs to, or assign it to another store."
        ),
        "serve": (
            "Accept documents and answer questions about topics over HTTP, as CONFIG (TOML) says."
        ),
        "set-aside": (
            "Show the shards that cannot be counted, retry them, or reject their documents."
        ),
        "token": "Create, remove and list the tokens that identify callers of the service.",
    },
    "": {
        "choose": "Find a model for your data and question, and print its commands.",
        "demo": "Find the topics of the State of the Union addresses, from scratch.",
        "kernels": "Compile the kernels now, so that later commands start faster.",
        "neighbours": (
            "Write a document for each node of the edges in SHARDS: the list of its neighbours."
        ),
        "nightly": (
            "Run the nightly job of CONFIG (TOML): update, check drift, rebase, refit, gates, "
            "publish."
        ),
        "plan": (
            "Estimate what a store of SHARDS costs: time, memory, disk. Reads a few megabytes."
        ),
    },
}
_HEADINGS = {
    "stores": "Stores",
    "sites": "Several sites",
    "models": "Models",
    "service": "Service",
    "": "Other commands",
}
_FOLDERS = {name: folder for folder, own in _COMMANDS.items() for name in own}
_ALIASES = {"show": "topics"}


class LateGroup(CommandGroup):
    """Imports a command at its first use, so that no command waits for the imports of others."""

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        for folder, own in _COMMANDS.items():
            with formatter.section(_HEADINGS[folder]):
                formatter.write_dl(sorted(own.items()), col_max=14)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, with its one-line help, without importing any command."""
        found = [line for own in _COMMANDS.values() for line in own.items()]
        return [
            CompletionItem(name, help=told)
            for name, told in sorted(found)
            if name.startswith(incomplete)
        ] + click.Command.shell_complete(self, ctx, incomplete)


def _loaded(name: str) -> ModuleType:
    """Import a module without garbage collection, which saves a tenth of the time.

    There is nothing to collect, because loaded modules stay in memory.
    """
    if name in sys.modules or not gc.isenabled():
        return import_module(name)
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()
