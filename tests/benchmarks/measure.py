"""Measurements, each in a fresh process: wall seconds inside the clock, and peak memory."""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

_CHILD = Path(__file__).with_name("child.py")
_POLL = 0.05
# Loading, and what a peer's own input format takes, are outside the clock but not endless.
_PREPARATION = 900.0
_KIBIBYTE = 1024


class Clock:
    """Seconds by stage; peaks and processor time are taken when a stage ends.

    Parameters
    ----------
    marker : Path
        Made when the first stage begins: from then on the time limit counts.
    """

    def __init__(self, marker: Path) -> None:
        self.stages: dict[str, float] = {}
        self.peak_bytes = 0
        self.child_peak_bytes = 0
        self.cpu_seconds = 0.0
        self._marker = marker
        self._cpu_before: float | None = None

    @contextmanager
    def running(self, stage: str) -> Iterator[None]:
        self._marker.touch()
        if self._cpu_before is None:
            self._cpu_before = _cpu_seconds()
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.stages[stage] = self.stages.get(stage, 0.0) + seconds
        self.note_costs()

    def note_costs(self) -> None:
        """Take memory and processor time again: a child's are known when it has ended."""
        self.peak_bytes = peak_memory()
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.child_peak_bytes = children * _KIBIBYTE
        self.cpu_seconds = _cpu_seconds() - (self._cpu_before or 0.0)


class Job(Protocol):
    """What one fresh process does; frozen, so that it can be pickled."""

    @property
    def name(self) -> str:
        """Name of the measurement."""

    def run(self, clock: Clock) -> Mapping[str, float]:
        """Do the work and return the figures found, by name."""


@dataclass(frozen=True)
class Measurement:
    """One process.

    Parameters
    ----------
    name : str
        Of the job.
    outcome : str
        "done", "limit" or "failed".
    seconds : float
        In the clock; the limit itself when it was exceeded.
    stages : mapping of str to float
        Seconds by stage.
    peak_bytes, child_peak_bytes : int
        Largest resident size of the process and of its largest child.
    cpu_seconds : float
        Of the process and its children that ended, from the first stage on.
    figures : mapping of str to float
        What else the job found.
    load : float
        Load average of the machine over the last minute at the start.
    error : str
        Last line of the error of a failed job.
    """

    name: str
    outcome: str
    seconds: float
    stages: Mapping[str, float] = field(default_factory=dict)
    peak_bytes: int = 0
    child_peak_bytes: int = 0
    cpu_seconds: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)
    load: float = 0.0
    error: str = ""


def measure(job: Job, limit: float, folder: Path) -> Measurement:
    """Run a job in a fresh process and session; past the limit all of the session is killed.

    Parameters
    ----------
    job : Job
        What to run.
    limit : float
        Seconds in the clock.
    folder : Path
        For the files by which the two processes talk.
    """
    folder.mkdir(parents=True, exist_ok=True)
    task, marker, answer, log = (
        folder / f"{os.getpid()}.{suffix}" for suffix in ("job", "clock", "json", "log")
    )
    for path in (marker, answer):
        path.unlink(missing_ok=True)
    task.write_bytes(pickle.dumps(job))
    load = os.getloadavg()[0]
    # what joblib maps is kept out of memory: of scikit-learn's five passes it is above 22 GB
    with log.open("wb") as output, TemporaryDirectory(dir=folder) as scratch:
        process = subprocess.Popen(
            [sys.executable, str(_CHILD), str(task), str(marker), str(answer)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "JOBLIB_TEMP_FOLDER": scratch},
            start_new_session=True,
        )
        try:
            late = _wait(process, marker, limit)
        finally:
            _end_session(process)
    if late:
        measured = Measurement(job.name, "limit", limit, load=load)
    elif answer.exists():
        measured = Measurement(job.name, "done", **json.loads(answer.read_text()), load=load)
    else:
        lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
        code = process.returncode
        measured = Measurement(job.name, "failed", 0.0, load=load, error=f"{lines[-1]} ({code})")
    for path_ in (task, marker, answer, log):
        path_.unlink(missing_ok=True)
    return measured


def _wait(process: subprocess.Popen[bytes], marker: Path, limit: float) -> bool:
    """Whether the process ran into the limit."""
    begun = time.monotonic()
    clocked: float | None = None
    while process.poll() is None:
        time.sleep(_POLL)
        now = time.monotonic()
        if clocked is None and marker.exists():
            clocked = now
        if clocked is not None and now - clocked > limit:
            return True
        if clocked is None and now - begun > _PREPARATION:
            return True
    return False


def peak_memory() -> int:
    """Largest resident bytes of this process so far.

    Linux counts in `ru_maxrss` what the parent held when it started this process; its own file
    does not.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * _KIBIBYTE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE


def _cpu_seconds() -> float:
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    usages = [resource.getrusage(one) for one in whose]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it has left behind in its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
