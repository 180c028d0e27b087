"""Commands of the package: all of them, and calls of them in this process."""

import click
import pytest

from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.command_line.every_command import cli


def exit_code_of(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code or 0


def run_command(*arguments):
    """Run a command that succeeds."""
    code = exit_code_of(*arguments)
    assert code == 0, (code, arguments)


def every_command():
    """Name, command and context of each command, and of each command of a group."""
    context = cli.make_context("streaming-moments", ["status"], resilient_parsing=True)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        own = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            for part, inner in command.commands.items():
                yield f"{name} {part}", inner, click.Context(inner, info_name=part, parent=own)
        else:
            yield name, command, own


COMMANDS = {name: (command, context) for name, command, context in every_command()}
