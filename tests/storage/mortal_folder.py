"""Folders of processes that die or sleep at one of their operations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.inbox import Inbox


class Killed(BaseException):
    """The death of the process, which no code catches."""


@dataclass(frozen=True)
class Mortal(Folder):
    """A folder of a process that dies before or after one of its operations."""

    dies_at: int = -1
    after: bool = False
    passed: count = field(default_factory=count, compare=False)

    def _lives(self, function, *arguments):
        dies = next(self.passed) == self.dies_at
        if dies and not self.after:
            raise Killed
        found = function(*arguments)
        if dies:
            raise Killed
        return found

    def create(self, name, content):
        self._lives(super().create, name, content)

    def write(self, name, content):
        self._lives(super().write, name, content)

    def link(self, name, source, other):
        return self._lives(super().link, name, source, other)

    def delete(self, names):
        for name in names:
            self._lives(super().delete, [name])

    def read_all(self, names, limits=None):
        return self._lives(super().read_all, names, limits)


def mortal(folder, dies_at, after=False):
    return Inbox(Mortal(folder.url, folder.storage_options, dies_at, after))


@dataclass(frozen=True)
class Sleeping(Folder):
    """A folder of a process that sleeps before one of its operations, while others act."""

    sleeps_at: int = -1
    meanwhile: Callable[[], None] = field(default=lambda: None, compare=False)
    passed: count = field(default_factory=count, compare=False)

    def _slept(self):
        if next(self.passed) == self.sleeps_at:
            self.meanwhile()

    def create(self, name, content):
        self._slept()
        super().create(name, content)

    def write(self, name, content):
        self._slept()
        super().write(name, content)

    def link(self, name, source, other):
        self._slept()
        return super().link(name, source, other)

    def delete(self, names):
        for name in names:
            self._slept()
            super().delete([name])

    def find(self, name):
        self._slept()
        return super().find(name)

    def find_all(self, names, limits=None):
        self._slept()
        return super().find_all(names, limits)

    def exists(self, name):
        self._slept()
        return super().exists(name)

    def names(self, name):
        self._slept()
        return super().names(name)


def sleeping(folder, sleeps_at, meanwhile):
    return Inbox(Sleeping(folder.url, folder.storage_options, sleeps_at, meanwhile))
