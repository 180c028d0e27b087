"""The tests that each system and version of Python runs: no campaign, no browser, no long one."""

import subprocess
import sys

TESTS = [
    "tests/streaming_moments",
    "tests/storage",
    "tests/formats",
    "tests/test_arguments.py",
    "tests/test_contracts.py",
    "tests/test_examples.py",
    "tests/pipelines/jobs/test_update.py",
    "tests/pipelines/command_line",
    "streaming_moments",
]

if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-m", "not long", "--numprocesses=auto", *TESTS]
    sys.exit(subprocess.run([*command, *sys.argv[1:]], check=False).returncode)
