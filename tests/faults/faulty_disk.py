"""A local disk whose operations go wrong as told; all of them pass through here."""

import errno
import os
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from fsspec.implementations.local import LocalFileOpener, LocalFileSystem

from streaming_moments.storage.files import local_files

FILLING = frozenset({"mkdir", "make", "write", "sync file", "link", "replace"})
WRITING = FILLING | {"unlink", "rmdir", "sync folder"}
READING = frozenset({"read", "list", "look"})


@dataclass(frozen=True)
class Operation:
    """One call of the system; `source` is the other name of a link or a replacement."""

    kind: str
    path: str
    source: str = ""
    content: bytes = b""


@contextmanager
def interposed(around):
    """Let `around(operation, apply)` carry out, or not, every operation of the store on a disk.

    Syncs do nothing: without a power cut nobody can tell. Retries do not wait.
    """
    with pytest.MonkeyPatch.context() as patch:
        system = _System(around)
        patch.setattr(local_files, "os", system)
        patch.setattr(local_files, "open", system.open_file, raising=False)
        for name, kind in (("_open", "read"), ("ls", "list"), ("info", "look")):
            patch.setattr(LocalFileSystem, name, _reading(around, kind, name))
        patch.setattr(LocalFileOpener, "read", _reading_on(around), raising=False)
        patch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: None))
        yield around


def _reading(around, kind, name):
    real = getattr(LocalFileSystem, name)

    def call(self, path, *arguments, **options):
        def apply(operation):
            return real(self, path, *arguments, **options)

        return around(Operation(kind, str(path)), apply)

    return call


def _reading_on(around):
    def read(self, *arguments):
        return around(Operation("block", self.path), lambda operation: self.f.read(*arguments))

    return read


class _System:
    """The module `os` as `local_files` sees it."""

    def __init__(self, around):
        self.around = around
        self.opened = {}

    def __getattr__(self, name):
        return getattr(os, name)

    def mkdir(self, path):
        self.around(Operation("mkdir", path), lambda operation: os.mkdir(path))

    def makedirs(self, path, exist_ok):
        assert exist_ok
        if not os.path.isdir(path):
            self.makedirs(os.path.dirname(path), exist_ok)
            self.mkdir(path)

    def walk(self, path, onerror):
        self.around(Operation("list", path), lambda operation: None)
        return os.walk(path, onerror=onerror)

    def open_file(self, path, mode):
        assert mode == "xb"
        return self.around(Operation("make", path), lambda operation: _File(self, path))

    def open(self, path, flags):
        assert flags == os.O_RDONLY
        descriptor = os.open(path, flags)
        self.opened[descriptor] = Operation("sync folder", path)
        return descriptor

    def close(self, descriptor):
        del self.opened[descriptor]
        os.close(descriptor)

    def fsync(self, descriptor):
        self.around(self.opened[descriptor], lambda operation: None)

    def link(self, source, path):
        self.around(Operation("link", path, source), lambda operation: os.link(source, path))

    def replace(self, source, path):
        self.around(Operation("replace", path, source), lambda operation: os.replace(source, path))

    def unlink(self, path):
        if not os.path.lexists(path):
            raise FileNotFoundError(path)
        self.around(Operation("unlink", path), lambda operation: os.unlink(path))

    def rmdir(self, path):
        self.around(Operation("rmdir", path), lambda operation: os.rmdir(path))


class _File:
    def __init__(self, system, path):
        self.system, self.path = system, path
        # without a buffer, which a kill would take along
        self.file = open(path, "xb", buffering=0)  # noqa: SIM115
        system.opened[self.file.fileno()] = Operation("sync file", path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del self.system.opened[self.file.fileno()]
        self.file.close()

    def write(self, content):
        def apply(operation):
            assert self.file.write(operation.content) == len(operation.content)

        self.system.around(Operation("write", self.path, content=content), apply)

    def flush(self):
        self.file.flush()

    def fileno(self):
        return self.file.fileno()


def _raise(number):
    def strike(operation, apply):
        raise OSError(number, os.strerror(number), operation.path)

    return strike


def _apply_then_raise(operation, apply):
    apply(operation)
    raise OSError(errno.EIO, "the reply was lost", operation.path)


def _halve(operation, apply):
    apply(replace(operation, content=operation.content[: len(operation.content) // 2]))
    raise OSError(errno.EIO, "half is written", operation.path)


def _kill(operation, apply):
    if operation.kind == "write":
        apply(replace(operation, content=operation.content[: len(operation.content) // 2]))
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Fault:
    """What goes wrong, with operations of which kinds, and whether all later ones do so too."""

    name: str
    kinds: frozenset
    strike: callable
    lasts: bool = False


KILL = Fault("kill", WRITING, _kill)
FAULTS = (
    KILL,
    Fault("read error", READING, _raise(errno.EIO)),
    Fault("write error", WRITING, _raise(errno.EIO)),
    Fault("full disk", FILLING, _raise(errno.ENOSPC), lasts=True),
    Fault("read-only disk", WRITING, _raise(errno.EROFS), lasts=True),
    Fault("lost reply", WRITING, _apply_then_raise),
    Fault("half a write", frozenset({"write"}), _halve),
)


def carry_out(operation, apply):
    """A disk without faults."""
    return apply(operation)


@dataclass
class FaultyDisk:
    """Carries out all operations but the one at a place, counted among those of the kinds.

    A place below zero is none.
    """

    fault: Fault
    at: int
    seen: int = 0
    struck: list = field(default_factory=list)

    def __call__(self, operation, apply):
        if operation.kind not in self.fault.kinds:
            return apply(operation)
        place, self.seen = self.seen, self.seen + 1
        if place == self.at or (self.fault.lasts and place > self.at >= 0):
            self.struck.append(operation)
            return self.fault.strike(operation, apply)
        return apply(operation)


@dataclass
class SleepyDisk:
    """Carries out all operations, and before some of them what happens while the writer sleeps.

    `meanwhile` has functions by the number of the operation before which they are called, with
    the disk. Files that are made are dated by `slept`, in seconds, later than they were made.
    """

    meanwhile: dict
    slept: float = 0.0
    seen: int = 0
    awake: bool = True

    def __call__(self, operation, apply):
        if self.awake:
            self.awake = False
            self.meanwhile.pop(self.seen, lambda disk: None)(self)
            self.awake = True
            self.seen += 1
        result = apply(operation)
        if self.slept and operation.kind in ("make", "write"):
            now = time.time() + self.slept
            os.utime(operation.path, (now, now))
        return result
