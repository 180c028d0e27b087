"""The process that accumulates beside a server is begun anew when it dies, and when it hangs."""

import os
import signal
import subprocess
import threading
from datetime import timedelta

import pytest

from streaming_moments.pipelines.service.accumulating import children
from streaming_moments.pipelines.service.accumulating.heartbeats import Beating, Heard


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_what_hangs_or_dies_is_begun_anew(place, monkeypatch, number):
    begun, lines, real = [], [], subprocess.Popen
    hangs, first, second = threading.Event(), threading.Event(), threading.Event()

    def begin(*how, **more):
        begun.append(real(*how, **more))
        return begun[-1]

    class Listening(Heard):
        def beat(self):
            super().beat()
            if begun:
                (first if len(begun) == 1 else second).set()

        def silence(self):
            # however slow this machine is
            return 3600.0 if hangs.is_set() and len(begun) == 1 else 0.0

    monkeypatch.setattr(children.subprocess, "Popen", begin)
    monkeypatch.setattr(children, "_FIRST", 0.05)
    (place / "service.toml").write_text(f'store = "{place}/store"\n')
    arguments = ["accumulate", str(place / "service.toml"), "--until-closed"]
    with children.kept_running(arguments, lines.append, Listening(), timedelta(hours=1)):
        assert first.wait(60)
        os.kill(begun[0].pid, number)
        hangs.set()
        assert second.wait(60), lines
    assert [process.returncode for process in begun] == [-signal.SIGKILL, 0]
    killed = [line for line in lines if line.endswith("has said nothing for 3600 s; killed")]
    assert len(killed) == (number == signal.SIGSTOP)


def test_a_pipe_that_nobody_reads_is_no_fault():
    read, write = os.pipe()
    beating = Beating(write, None)
    beating.beat()
    assert os.read(read, 9) == b"."
    os.close(read)
    beating._last = 0.0
    beating.beat()
    os.close(write)
