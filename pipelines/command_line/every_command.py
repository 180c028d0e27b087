"""The group of all commands, and the options that stand before any of them."""

from __future__ import annotations

import click

from streaming_moments.pipelines.command_line.commands import LateGroup

DEBUG = "--debug"


@click.group(
    cls=LateGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": False},
)
@click.version_option(package_name="streaming-moments")
@click.option(DEBUG, is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Topics from a stream of documents, by the method of moments.

    STORE and SHARDS are local paths or fsspec URLs (s3://, gs://, az://); SHARDS may be patterns
    and folders. Exit codes: 0 done, 1 a fault of ours, 2 wrong input, 3 done but for bad shards.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
