"""Commands of the package, run in this process."""

import pytest

from streaming_moments.pipelines.command_line.entry import main


def exit_code_of(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code or 0


def run_command(*arguments):
    """Run a command that succeeds."""
    code = exit_code_of(*arguments)
    assert code == 0, (code, arguments)
