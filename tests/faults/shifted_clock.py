"""A clock that is off, in a process that was forked for it."""

import sys
import time
from datetime import datetime, timedelta
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

PACKAGE = "streaming_moments"


real_time = time.time


class ShiftedDatetime(datetime):
    by = timedelta(0)

    @classmethod
    def now(cls, tz=None):
        return datetime.fromtimestamp(real_time(), tz) + cls.by


def shifted_time():
    return real_time() + ShiftedDatetime.by / timedelta(seconds=1)


class Shifting(MetaPathFinder):
    """Shifts the clock of what is imported later."""

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            shift(module)

        spec.loader.exec_module = exec_module
        return spec


def shift(module):
    """Shift what a module has imported; only those of the package bear the other class."""
    names = vars(module)
    for name in [name for name, value in names.items() if value is real_time]:
        names[name] = shifted_time
    if module.__name__.partition(".")[0] == PACKAGE and names.get("datetime") is datetime:
        names["datetime"] = ShiftedDatetime


def shift_clock(by):
    """This process has the clock of a machine that is ahead by a time, or behind."""
    if by:
        ShiftedDatetime.by = by
        for name, module in [*sys.modules.items()]:
            if name != __name__:
                shift(module)
        sys.meta_path.insert(0, Shifting())
