"""A process that accumulates is begun anew when it dies, and when it hangs."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta

import pytest
from forked_service import ForkedChild, ForkedServer
from forking import forking

from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker import children
from streaming_moments.pipelines.service.ingest_worker.hung_worker import Beating, Heard
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.records import RecordShape
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.store.store import MomentStore


@contextmanager
def beside(arguments, tell, heard, over):
    """A process that accumulates beside a server."""
    with children.kept_running(arguments, tell, heard, timedelta(hours=1)):
        yield


@contextmanager
def apart(arguments, tell, heard, over):
    """One that a command of its own watches, until it is asked to end."""
    with ThreadPoolExecutor(1) as pool:
        patience = timedelta(hours=1)
        code = pool.submit(children.watched, arguments, tell, heard, patience, over.is_set)
        try:
            yield
        finally:
            over.set()
        assert code.result(60) == 0


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.parametrize("kept", [beside, apart])
def test_what_hangs_or_dies_is_begun_anew(place, monkeypatch, number, kept):
    begun, lines = [], []
    hangs, first, second = threading.Event(), threading.Event(), threading.Event()

    def begin(command, **pipes):
        begun.append(ForkedChild(command, **pipes, context=forking()))
        return begun[-1]

    class Listening(Heard):
        def beat(self):
            super().beat()
            if begun:
                (first if len(begun) == 1 else second).set()

        def silence_of_process(self):
            # however slow this machine is
            return 3600.0 if hangs.is_set() and len(begun) == 1 else 0.0

    monkeypatch.setattr(children.subprocess, "Popen", begin)
    monkeypatch.setattr(children, "_FIRST", 0.05)
    (place / "service.toml").write_text(f'store = "{place}/store"\n')
    arguments = ["accumulate", str(place / "service.toml"), "--until-closed"]
    with kept(arguments, lines.append, Listening(), threading.Event()):
        assert first.wait(60)
        os.kill(begun[0].pid, number)
        hangs.set()
        assert second.wait(60), lines
    assert [process.returncode for process in begun] == [-signal.SIGKILL, 0]
    killed = [line for line in lines if line.endswith("has sent no heartbeat for 3600 s; killed")]
    assert len(killed) == (number == signal.SIGSTOP)


def test_what_could_not_be_begun_anew_is_tried_again(monkeypatch):
    tries, lines, second, real = [], [], threading.Event(), subprocess.Popen

    def begin(command, **more):
        tries.append(len(tries))
        if tries[-1] == 1:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        if tries[-1] == 2:
            second.set()
        return real([sys.executable, "-c", "raise SystemExit(3)"], **more)

    monkeypatch.setattr(children.subprocess, "Popen", begin)
    monkeypatch.setattr(children, "_FIRST", 0.05)
    with children.kept_running(["accumulate"], lines.append, Heard(), timedelta(hours=1)):
        assert second.wait(60), lines
    assert "cannot be started ([Errno 11] Resource temporarily unavailable)" in lines[1]


@contextmanager
def started(path):
    """`streaming-moments accumulate`, and what gives its exit code and its lines once it ends."""
    with open(path.with_suffix(".log"), "w+") as log:
        command = ForkedServer(path, log, "accumulate")

        def ended():
            code = command.wait(100)
            return code, path.with_suffix(".log").read_text()

        try:
            yield command, ended
        finally:
            command.kill()


def until(condition, command):
    deadline = time.monotonic() + 120
    while not condition():
        assert command.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_who_accumulates_apart_ends_its_turn_on_sigterm(place, planted, reading):
    config = service_of({"store": str(place / "store")}, "service.toml")
    (place / "service.toml").write_text(f'store = "{config.store}"\n')
    seals = SealLog(Inbox.open(config.inbox_url))
    documents = [{"text": planted[0]}] * 20_000
    one, _ = RecordShape().submission(documents, new_receipt(0), False, date(2026, 11, 23))
    seals.inbox.put([one])
    (shard,) = seals.seal_next(len(documents), 1 << 30).shards
    sealed = f"{seals.inbox.folder.url}/{shard.path}"
    with started(place / "service.toml") as (command, ended):
        until(lambda: any(reading(one.pid, sealed) for one in command.children()), command)
        (child,) = command.children()
        command.send_signal(signal.SIGTERM)
        code, told = ended()
    assert code == 0, told
    assert not child.is_running()
    # each line of the log is an event
    assert any(
        json.loads(line)["event"].endswith(f"counted {len(documents)}, version 3")
        for line in told.splitlines()
    )
    assert MomentStore.open(config.store).commit.documents == 900 + len(documents)


def test_who_accumulates_apart_ends_at_once_on_sigint_before_its_first_turn(place):
    (place / "service.toml").write_text(
        # nobody listens there, which it takes Dask 20 seconds to find
        f'store = "{place}/store"\n[cluster]\nscheduler = "tcp://127.0.0.1:9"\n'
    )
    with started(place / "service.toml") as (command, ended):
        until(command.children, command)
        command.send_signal(signal.SIGINT)
        code, told = ended()
    assert (code, told.count("interrupted: ")) == (130, 1), told


def test_who_accumulates_apart_ends_with_the_code_of_what_ended_of_itself(place):
    (place / "service.toml").write_text(
        f'store = "{place}/store"\n[accumulate]\nnight = "{place}/none"\nrefit_every = "24h"\n'
    )
    command = [sys.executable, "-m", "streaming_moments", "accumulate", place / "service.toml"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=100)
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, len(events)) == (2, 1), done.stderr
    assert (events[0]["level"], events[0]["event"][:7]) == ("error", "error: ")


def test_what_is_asked_to_end_before_who_watches_it_ends_as_asked(place):
    """Systems that stop a service may ask all of its processes."""
    (place / "service.toml").write_text(f'store = "{place}/store"\n')
    arguments = ["accumulate", str(place / "service.toml"), "--until-closed"]
    with subprocess.Popen(
        [sys.executable, "-m", "streaming_moments", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.read(1) == "."
        child.terminate()
        told = child.stderr.read()
        # its standard input is open until then
        assert child.wait(60) == 0, told
    assert told == ""


def test_a_pipe_that_nobody_reads_is_no_fault():
    read, write = os.pipe()
    beating = Beating(write, None)
    beating.beat()
    assert os.read(read, 9) == b"."
    os.close(read)
    beating._last = 0.0
    beating.beat()
    os.close(write)
