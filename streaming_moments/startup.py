"""Startup: Ctrl-C and BLAS threads while a command is still being loaded.

Ctrl-C ends the command with one line instead of a traceback, and BLAS starts no threads.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Timer, main_thread
from types import FrameType


def guard() -> None:
    """Let Ctrl-C end a command that is still loading; after `begun` it raises an exception again.

    An exception would not be safe while modules are imported: a module may catch it, or be in the
    middle of any code. BLAS is limited to one thread, because jobs limit it anyway, and because
    starting other threads takes as long as loading NumPy.
    """
    named = "".join(sys.argv[:1]).endswith("/streaming-moments")
    called = sys.argv[:1] == ["-m"] and "streaming_moments" in sys.orig_argv
    if not named and not called:
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # if SIGINT is ignored, as for background processes, it stays ignored
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def begun() -> None:
    """Make Ctrl-C raise an exception again, because the command now has work to clean up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _not_raised


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted: nothing was begun\n")
    os._exit(130)


def _not_raised(told: sys.UnraisableHookArgs) -> None:
    if issubclass(told.exc_type, KeyboardInterrupt):
        # Python ignores exceptions in finalizers, so send the signal again a moment later
        Timer(0.05, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(told)
