"""Commands in processes of their own on one thread, and the most memory that each held."""

import os
import subprocess
import sys
from dataclasses import dataclass

# its own high-water mark; what `wait4` tells has that of the process it was forked from
_RUN = """
import re, sys, time
from pathlib import Path
from streaming_moments.pipelines.command_line.entry import main

try:
    main(sys.argv[1:])
finally:
    held = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
    print(held, time.process_time())
"""
MEMORY = "600MB"
BUDGET = 600 * 10**6
_PATIENCE = 900


@dataclass(frozen=True)
class Measured:
    """Exit code of a command, what it printed, its CPU seconds, and the most bytes it held."""

    code: int
    output: str
    peak: int
    seconds: float


def measured(*arguments):
    """Run a command, and measure it."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *map(str, arguments)],
        capture_output=True,
        text=True,
        preexec_fn=_on_one_thread,
        timeout=_PATIENCE,
    )
    *lines, last = done.stdout.splitlines()
    kilobytes, seconds = last.split()
    output = "\n".join(lines) + done.stderr
    return Measured(done.returncode, output, int(kilobytes) << 10, float(seconds))


def bounded(*arguments):
    """Run a command with a budget of `MEMORY`, and measure it."""
    return measured(*arguments, "--memory", MEMORY)


def _on_one_thread():
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
