"""The group of all commands, and the options before the name of a command."""

from __future__ import annotations

import click

from streaming_moments.pipelines.command_help import WIDTH
from streaming_moments.pipelines.command_line.commands import LateGroup

DEBUG = "--debug"
UNTIL_CLOSED = "--until-closed"  # option with which a server starts `accumulate` as its child
_COMPLETION = """\b
Completion of commands and options in the shell:
  bash  echo 'eval "$(_STREAMING_MOMENTS_COMPLETE=bash_source streaming-moments)"' >> ~/.bashrc
  zsh   echo 'eval "$(_STREAMING_MOMENTS_COMPLETE=zsh_source streaming-moments)"' >> ~/.zshrc
  fish  echo '_STREAMING_MOMENTS_COMPLETE=fish_source streaming-moments | source' \\
          > ~/.config/fish/completions/streaming-moments.fish
"""


@click.group(
    cls=LateGroup,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": False,
        "max_content_width": WIDTH,
    },
    epilog=_COMPLETION,
)
@click.version_option(package_name="streaming-moments")
@click.option(DEBUG, is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(context: click.Context, debug: bool) -> None:
    """Topics from a stream of documents, by the method of moments.

    STORE and SHARDS are local paths or fsspec URLs (s3://, gs://, az://); SHARDS may be patterns
    and folders. Exit codes: 0 done, 1 a bug of streaming-moments, 2 wrong input, 3 done except for
    shards that cannot be read.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
