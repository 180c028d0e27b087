"""The kernel decorator: functions compiled by numba when they are first called, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core import event

from streaming_moments.compiling import say_compiling

F = TypeVar("F", bound=Callable[..., Any])


def kernel(**options: Any) -> Callable[[F], F]:
    """Compile a function by `numba.njit`, serial and without the interpreter lock.

    Arrays that a kernel fills come from its caller: to make one, or to give it back, takes numba as
    long to compile as a loop or two. Arguments of another dtype, order or permission to write
    compile it anew.
    """
    # what would call a kernel from C is a tenth of the time of compiling, and nothing calls it
    chosen: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, **options}
    compiled: Callable[[F], F] = njit(**chosen)
    return compiled


class _Listener(event.Listener):
    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func.__module__.startswith("streaming_moments."):
            say_compiling()

    def on_end(self, event: Any) -> None:
        """Say nothing."""


event.register("numba:compile", _Listener())
