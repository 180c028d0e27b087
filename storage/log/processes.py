"""Processes: what a note says of the one that wrote it, and whether that is provably gone."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from pathlib import Path

_MARK = re.compile(r"([0-9a-f]{32}) ([1-9]\d{0,8}) (\d{1,20})")
_DEAD = frozenset("ZX")  # a zombie has nothing left but its number
_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat behind the name


def mark_of_process() -> str:
    """Mark of this process: its machine since that began, its number, and when it began.

    Empty where that cannot be told: of systems without /proc.

    Examples
    --------
    >>> is_gone(mark_of_process())
    False
    """
    machine, found = _machine(), _state_of(os.getpid())
    return f"{machine} {os.getpid()} {found[1]}" if machine and found else ""


def is_gone(mark: str) -> bool:
    """Whether a process ran here, on this machine and since it began, and runs no more.

    Of another machine, another container, or a mark that says nothing it is not known: False.
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
        pass  # somebody else's, which is there
    # another may have its number by now; one that is hidden from us is not gone
    now = _state_of(pid)
    return now is not None and (now[0] in _DEAD or now[1] != found[3])


def _machine() -> str:
    """Digest of the host, when it began, and the container within which numbers are unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        numbers = os.readlink("/proc/self/ns/pid")
        known_as = os.readlink("/proc/self")
    except OSError:
        return ""
    if known_as != str(os.getpid()):
        return ""  # this /proc tells of numbers outside of the container
    told = f"{socket.gethostname()} {boot.strip()} {numbers}"
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _state_of(pid: int) -> tuple[str, str] | None:
    """State of a process and when it began, in ticks since the machine did."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[_STATE].decode(), fields[_STARTED].decode()
