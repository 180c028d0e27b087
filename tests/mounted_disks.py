"""Small disks, which tests fill."""

import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def mounted_disk(place, size):
    """A disk of its own at a place; skips the test where none can be mounted."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, timeout=20)
    if mounted.returncode:
        pytest.skip(f"no disk of its own can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True, timeout=20)
