"""A clock that is off, in a process and all its children: the module `sitecustomize` of each."""

import os
import sys
import time
from datetime import datetime, timedelta
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

SHIFT = timedelta(days=float(os.environ.get("CLOCK_OFF_BY_DAYS", 0)))
PACKAGE = "streaming_moments"
real_time = time.time


class ShiftedDatetime(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.fromtimestamp(real_time(), tz) + SHIFT


class Shifting(MetaPathFinder):
    """Gives modules of the package the other class: extensions in C would not bear it."""

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            if vars(module).get("datetime") is datetime:
                module.datetime = ShiftedDatetime
            if name.endswith(".storage.log.layout"):
                module.FEWEST_BLOCKS = 3  # as `few_row_blocks` in a process of tests

        spec.loader.exec_module = exec_module
        return spec


if SHIFT:
    time.time = lambda: real_time() + SHIFT.total_seconds()
    sys.meta_path.insert(0, Shifting())
