"""`streaming-moments serve`, and `accumulate`, forked from a process that has imported everything.

The server begins in no time then, and so does what accumulates for it.
"""

import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import psutil
from forking import Descriptor, forking, forking_again, running
from shifted_clock import shift_clock

from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.service.ingest_worker import children

PATIENCE = 120  # seconds to end
RIGHT = timedelta(0)  # how far a clock is off


class ForkedServer:
    """A server of a configuration, in a session of its own; `stdout` says where it listens.

    Or another command that has processes which accumulate; all have the same clock, and work in the
    folder.
    """

    def __init__(self, config, log, command="serve", clock_off_by=RIGHT, folder="."):
        self._noted = f"{config}.children"
        reading, writing = os.pipe()
        told = Descriptor(writing), Descriptor(log.fileno())
        given = (command, str(config), self._noted, clock_off_by, str(folder), *told)
        self._process = forking().Process(target=_serve, args=given)
        self._process.start()
        os.close(writing)
        self.stdout = os.fdopen(reading)

    @property
    def pid(self):
        return self._process.pid

    def children(self):
        """What accumulates for it: processes that run."""
        if not os.path.exists(self._noted):
            return []
        with open(self._noted) as noted:
            began = [line.split("@") for line in noted]
        return [process for one in began if (process := running(*one)) is not None]

    def kill(self):
        self._process.kill()
        self.stdout.close()

    def poll(self):
        return self._process.exitcode

    def wait(self, patience=None):
        """Its exit code."""
        self._process.join(patience)
        assert self._process.exitcode is not None, "it does not end"
        self.stdout.close()
        return self._process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)


def _serve(command, config, noted, clock_off_by, folder, stdout, stderr):
    os.setsid()
    os.chdir(folder)
    shift_clock(clock_off_by)
    stdout.become(1)
    stderr.become(2)
    begin = partial(_noted_child, noted, clock_off_by, folder)
    children.subprocess = SimpleNamespace(Popen=begin, PIPE=subprocess.PIPE)
    main([command, config])


def _noted_child(noted, clock_off_by, folder, command, **pipes):
    context = forking_again()
    child = ForkedChild(command, **pipes, context=context, clock_off_by=clock_off_by, folder=folder)
    with open(noted, "a") as log:
        log.write(f"{child.pid}@{psutil.Process(child.pid).create_time()!r}\n")
    return child


class ForkedChild:
    """What `subprocess.Popen` is to who keeps an accumulator running."""

    def __init__(self, command, stdin, stdout, context, clock_off_by=RIGHT, folder="."):
        assert command[:3] == [sys.executable, "-m", "streaming_moments"]
        assert stdin == stdout == subprocess.PIPE
        lifeline, ours = os.pipe()
        said, theirs = os.pipe()
        given = (command[3:], clock_off_by, folder, *map(Descriptor, (lifeline, theirs, 2)))
        self._process = context.Process(target=_accumulate, args=given)
        self._process.start()
        os.close(lifeline)
        os.close(theirs)
        self.stdin, self.stdout = os.fdopen(ours, "wb"), os.fdopen(said, "rb")

    @property
    def pid(self):
        return self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def wait(self):
        self._process.join()
        return self._process.exitcode

    def terminate(self):
        self._process.terminate()

    def kill(self):
        self._process.kill()


def _accumulate(arguments, clock_off_by, folder, stdin, stdout, stderr):
    os.chdir(folder)
    shift_clock(clock_off_by)
    for number, one in enumerate((stdin, stdout, stderr)):
        one.become(number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    main(arguments)
