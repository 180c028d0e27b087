"""Startup: what is settled while a command is still being loaded.

Ctrl-C ends it, with a line and no traceback; and BLAS starts no threads.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Timer, main_thread
from types import FrameType


def guard() -> None:
    """From here to `begun` Ctrl-C ends the process, if it is the command that is being loaded.

    An exception would not do: whatever is being imported may catch it, or be between the lines of
    anybody's code. BLAS is told of one thread, as jobs limit it to one anyway: to start others
    takes as long as to load NumPy.
    """
    named = "".join(sys.argv[:1]).endswith("/streaming-moments")
    called = sys.argv[:1] == ["-m"] and "streaming_moments" in sys.orig_argv
    if not named and not called:
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # where it is ignored, as in the background, it stays so
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def begun() -> None:
    """Ctrl-C is an exception again: there is something to clean up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _not_raised


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted: nothing was begun\n")
    os._exit(130)


def _not_raised(told: sys.UnraisableHookArgs) -> None:
    if issubclass(told.exc_type, KeyboardInterrupt):
        # a finalizer swallowed it: once more, when that has ended
        Timer(0.05, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(told)
