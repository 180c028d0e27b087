"""The command line: which commands there are, and where each is."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from types import ModuleType

import click

from streaming_moments.starting import begun

_MODULES = {
    "counting": ("create", "refit", "transform"),
    "updating": ("update",),
    "showing": ("status", "log", "topics"),
    "history": ("rollback", "verify", "diff", "tag", "compact", "forget", "gc", "demo"),
    "models": ("select",),
    "planning": ("plan",),
    "night": ("nightly", "rebase"),
    "growth": ("grow",),
    "polishing": ("polish",),
}
_ALIASES = {"show": "topics"}
_PLACES = {command: module for module, commands in _MODULES.items() for command in commands}


class _LateGroup(click.Group):
    """Imports a command when it is asked for: none waits for what only others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = _ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in _PLACES:
            return None
        module = _loaded(f"streaming_moments.pipelines.command_line.{_PLACES[cmd_name]}")
        begun()
        command: click.Command = getattr(module, cmd_name)
        return command


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


@click.group(
    cls=_LateGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": False},
)
@click.version_option(package_name="streaming-moments")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Topics from a stream of documents, by the method of moments.

    STORE and SHARDS are local paths or fsspec URLs (s3://, gs://, az://); SHARDS may be patterns
    and folders. Exit codes: 0 done, 1 a fault of ours, 2 wrong input, 3 done but for bad shards.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
