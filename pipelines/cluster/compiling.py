"""Compiling: the line that says that kernels are compiled, which a new installation waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def telling_of_kernels(tell: Callable[[str], None]) -> Iterator[None]:
    """Say in a line, to who sits before it, that kernels are compiled in this process."""
    if not sys.stderr.isatty():
        yield
        return
    from numba.core import event

    class Once(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:
            if not self.told:
                self.told = True
                tell("kernels are compiled, once for an installation: some seconds longer")

        def on_end(self, event: Any) -> None:
            """Say nothing."""

    with event.install_listener("numba:compile", Once()):
        yield
