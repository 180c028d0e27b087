"""Processes: a mark that identifies a process, and whether that process is dead."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from pathlib import Path

_MARK = re.compile(r"([0-9a-f]{32}) ([1-9]\d{0,8}) (\d{1,20})")
_DEAD = frozenset("ZX")  # states in /proc/PID/stat of zombies and dead processes
_STATE, _STARTED = 0, 19  # places of two fields in /proc/PID/stat, counted after the name


def mark_of_process() -> str:
    """Return the mark of this process: its machine and boot, its number, and its start time.

    Empty on systems without /proc.

    Examples
    --------
    >>> is_gone(mark_of_process())
    False
    """
    machine, found = _machine(), _state_of(os.getpid())
    return f"{machine} {os.getpid()} {found[1]}" if machine and found else ""


def is_gone(mark: str) -> bool:
    """Whether a process ran on this machine since its last boot, and has ended.

    False if unknown: for another machine, another container or an empty mark.
    """
    found = _MARK.fullmatch(mark)
    if found is None or found[1] != _machine():
        return False
    pid = int(found[2])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # the process exists and belongs to another user
    # Another process may have the same number now, so compare the time of its start. A process
    # whose state is hidden counts as running.
    now = _state_of(pid)
    return now is not None and (now[0] in _DEAD or now[1] != found[3])


def _machine() -> str:
    """Return a digest of the host, its latest boot, and the container of this process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        numbers = os.readlink("/proc/self/ns/pid")
        known_as = os.readlink("/proc/self")
    except OSError:
        return ""
    if known_as != str(os.getpid()):
        return ""  # this /proc shows the numbers that processes have outside of the container
    told = f"{socket.gethostname()} {boot.strip()} {numbers}"
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _state_of(pid: int) -> tuple[str, str] | None:
    """Return the state of a process and its start, in ticks since boot; None if unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[_STATE].decode(), fields[_STARTED].decode()
