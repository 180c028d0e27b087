"""Runs the shell scripts that pages show, in little time."""

import os
import re
import subprocess
from contextlib import redirect_stdout
from io import StringIO

import pytest

from streaming_moments.pipelines.command_line.entry import main

LONGEST = 300  # seconds, on a machine that others use
# What a shell makes of each command of this project, arguments ended by zeros.
WORDS = "streaming-moments() { printf '%s\\0' \"$@\"; echo; }\n"


def printed_by(script):
    """What a script prints: its shell lines run in bash, and commands of this project here.

    This process has loaded what each command would load again. `cd` changes its folder for good.
    """
    parts = re.split(r"^((?:streaming-moments|cd) .*(?:\n|$))", script, flags=re.MULTILINE)
    return "".join(map(_printed, filter(str.strip, parts)))


def commands_of(script):
    """The arguments of each command of a script, which holds nothing else."""
    assert all(line.startswith("streaming-moments ") for line in script.splitlines()), script
    return [line.split("\0")[:-1] for line in _in_bash(WORDS + script).splitlines()]


def _printed(part):
    if part.startswith("cd "):
        os.chdir(part.split()[1])
        return ""
    if not part.startswith("streaming-moments "):
        return _in_bash(part)
    [command] = commands_of(part)
    with redirect_stdout(StringIO()) as printed, pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 0, part
    return printed.getvalue()


def _in_bash(script):
    shell = ["bash", "-euo", "pipefail", "-c", script]
    ran = subprocess.run(shell, capture_output=True, text=True, timeout=LONGEST)
    assert ran.returncode == 0, script + ran.stdout + ran.stderr
    return ran.stdout
