"""The command line: which commands there are, and where each is."""

from __future__ import annotations

from importlib import import_module

import click

from streaming_moments.starting import begun

_MODULES = {
    "counting": ("create", "update", "refit", "status", "transform"),
    "history": ("log", "rollback", "verify", "diff", "tag", "compact", "forget", "gc", "demo"),
    "models": ("topics", "select"),
    "planning": ("plan",),
    "night": ("nightly", "rebase"),
    "growth": ("grow",),
    "expiry": ("expire", "purge"),
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
        module = import_module(f"streaming_moments.pipelines.command_line.{_PLACES[cmd_name]}")
        begun()
        command: click.Command = getattr(module, cmd_name)
        return command


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
