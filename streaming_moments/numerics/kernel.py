"""Decorator `kernel`: compiles a function by numba at its first call and caches it on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core import event

from streaming_moments.compiling import say_compiling

F = TypeVar("F", bound=Callable[..., Any])


def kernel(**options: Any) -> Callable[[F], F]:
    """Compile a function by `numba.njit`, for one thread and without the interpreter lock.

    Callers have to allocate the arrays that a kernel fills: an allocation or a returned array in
    the kernel would take as long to compile as a loop or two. Arguments of another dtype, order or
    writeability cause another compilation.
    """
    # do not compile the wrapper for calls from C: it takes a tenth of the compile time, and is not
    # used
    chosen: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, **options}
    compiled: Callable[[F], F] = njit(**chosen)
    return compiled


class _Listener(event.Listener):
    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func.__module__.startswith("streaming_moments."):
            say_compiling()

    def on_end(self, event: Any) -> None:
        """Do nothing."""


event.register("numba:compile", _Listener())
