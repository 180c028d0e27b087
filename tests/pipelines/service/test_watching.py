"""When a process that accumulates is begun anew, killed or ended, by a clock that is told."""

import io
import math
import os
import sys
import threading
import time
from datetime import timedelta

import pytest

from streaming_moments.pipelines.service.ingest_worker import children, hung_worker
from streaming_moments.pipelines.service.ingest_worker.children import _Watch, watched
from streaming_moments.pipelines.service.ingest_worker.hung_worker import Beating, Heard


class Clock:
    """Seconds that pass only as someone sleeps."""

    def __init__(self, monkeypatch):
        self.now, self.slept = 1000.0, []
        monkeypatch.setattr(children, "monotonic", lambda: self.now)
        monkeypatch.setattr(children, "sleep", self.sleep)

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def watch(tell=lambda line: None, heard=None, patience=3600.0, over=lambda: False, ending=30.0):
    return _Watch(("accumulate", "a.toml"), tell, heard or Heard(), patience, over, ending)


def test_one_that_dies_is_begun_anew_after_1_2_4_and_at_most_60_seconds(clock, monkeypatch):
    lives = iter([0.0] * 8 + [60.0, 60.5, 0.0, 0.0])
    lines, begun = [], []

    def ended(self, child):
        clock.now += next(lives)
        return 9

    monkeypatch.setattr(_Watch, "_ended", ended)
    monkeypatch.setattr(_Watch, "begin", lambda self: begun.append(clock.now) or "child")
    told = watch(lines.append, over=lambda: len(begun) == 11)
    assert told.keep(None, lambda code: True) == 9
    waits = [1, 2, 4, 8, 16, 32, 60, 60, 60, 1, 2]
    assert lines == [
        f"the counting process ended with exit code 9; restarting it in {wait} s" for wait in waits
    ]
    assert sum(clock.slept) == sum(waits)
    assert max(clock.slept) == 0.5, "whether it is over is asked twice a second"
    assert begun[:3] == [1001.0, 1003.0, 1007.0]


def test_what_ends_of_itself_is_not_begun_anew(clock, monkeypatch):
    codes = iter([-9, -15, 3])
    monkeypatch.setattr(_Watch, "_ended", lambda self, child: next(codes))
    begun = []
    monkeypatch.setattr(_Watch, "begin", lambda self: begun.append(1) or "child")
    how = ["accumulate"], lambda line: None, Heard(), timedelta(hours=1)
    assert watched(*how, lambda: False) == 3
    assert len(begun) == 3
    codes = iter([0])
    assert watched(*how, lambda: False) == 0


def test_who_is_to_end_while_it_waits_does_not_begin_another(clock, monkeypatch):
    monkeypatch.setattr(_Watch, "_ended", lambda self, child: 9)
    monkeypatch.setattr(_Watch, "begin", lambda self: pytest.fail("begun anew"))
    ends = iter([False, False, True])
    assert watch(over=lambda: next(ends)).keep(None, lambda code: True) == 9
    assert clock.slept == [0.5]


def test_what_cannot_be_begun_is_tried_again_after_twice_as_long(clock, monkeypatch):
    tries, lines = iter([OSError("no memory"), OSError("no memory"), None]), []

    def begin(self):
        if (error := next(tries)) is not None:
            raise error
        return "child"

    codes = iter([9, 0])
    monkeypatch.setattr(_Watch, "_ended", lambda self, child: next(codes))
    monkeypatch.setattr(_Watch, "begin", begin)
    assert watch(lines.append).keep(None, lambda code: code != 0) == 0
    failed = "the counting process cannot be started (no memory)"
    assert lines == [
        "the counting process ended with exit code 9; restarting it in 1 s",
        f"{failed}; restarting it in 2 s",
        f"{failed}; restarting it in 4 s",
    ]


class Child:
    """A process that says what it is told to, and ends once it was killed."""

    def __init__(self, said=b"", deaf=False):
        read, self.write = os.pipe()
        self.stdout, self.stdin = os.fdopen(read, "rb"), io.BytesIO()
        os.write(self.write, said)
        self.deaf, self.signals = deaf, []

    def poll(self):
        return -9 if "kill" in self.signals else None

    def wait(self):
        return self.poll() or 0

    def terminate(self):
        self.signals.append("terminate")
        if not self.deaf:
            os.close(self.write)

    def kill(self):
        self.signals.append("kill")


@pytest.fixture
def selecting(clock, monkeypatch):
    """A look at a pipe, in which half a second passes where nothing was said."""
    select = children.select.select

    def passing(readers, writers, others, seconds):
        found = select(readers, writers, others, 0)
        if not found[0]:
            clock.now += seconds
        return found

    monkeypatch.setattr(children.select, "select", passing)
    return clock


class Silence(Heard):
    """By the clock of a test; `beats` counts."""

    def __init__(self, clock):
        self.clock, self.last, self.beats = clock, clock.now, 0

    def beat(self):
        self.last, self.beats = self.clock.now, self.beats + 1

    begin = beat

    def silence_of_process(self):
        return self.clock.now - self.last


def test_one_that_says_nothing_for_as_long_as_it_may_is_killed(selecting):
    lines, child, heard = [], Child(b"...."), Silence(selecting)
    assert watch(lines.append, heard, 7.0)._ended(child) == -9
    assert lines == ["the counting process has sent no heartbeat for 7 s; killed"]
    assert (selecting.now, heard.beats) == (1007.0, 1)
    assert child.signals == ["kill"]
    assert child.stdout.closed
    assert child.stdin.closed
    os.close(child.write)


def test_one_that_is_asked_to_end_is_asked_once_and_ends_its_turn(selecting):
    child = Child()
    assert watch(heard=Silence(selecting), over=lambda: True)._ended(child) == 0
    assert child.signals == ["terminate"]


def test_one_that_does_not_end_in_time_is_killed(selecting):
    child = Child(deaf=True)
    asked = watch(heard=Silence(selecting), over=lambda: selecting.now >= 1002.0)
    assert asked._ended(child) == -9
    assert (child.signals, selecting.now) == (["terminate", "kill"], 1032.0)
    os.close(child.write)


def test_who_watches_for_a_command_waits_for_the_turn_however_long(clock, monkeypatch):
    found = []
    monkeypatch.setattr(_Watch, "begin", lambda self: found.append(self) or "child")
    monkeypatch.setattr(_Watch, "_ended", lambda self, child: 0)
    how = ["accumulate"], lambda line: None, Heard(), timedelta(minutes=2)
    watched(*how, lambda: True)
    with children.kept_running(*how):
        pass
    told = [(one.patience, one.ending) for one in found]
    assert told[:2] == [(120.0, math.inf), (120.0, 30.0)]


def test_who_serves_begins_it_anew_whatever_the_code_and_waits_for_its_end(clock, monkeypatch):
    codes, ended = iter([0, 3, -9]), []

    def lives(self, child):
        code = next(codes, None)
        if code is None:
            # the last lives until it is over, and takes a moment to end
            while not self.over():
                threading.Event().wait(0.005)
            threading.Event().wait(0.05)
            ended.append(threading.current_thread().daemon)
        return code or 0

    monkeypatch.setattr(_Watch, "begin", lambda self: begun.append(1) or "child")
    monkeypatch.setattr(_Watch, "_ended", lives)
    begun, lines = [], []
    with children.kept_running(["accumulate"], lines.append, Heard(), timedelta(minutes=2)):
        deadline = time.monotonic() + 60
        while len(begun) < 4:
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)
    assert (len(begun), ended) == (4, [True])
    assert [line.partition(";")[0].rpartition(" ")[2] for line in lines] == ["0", "3", "-9"]


def test_the_process_is_this_program(monkeypatch):
    begun, heard = [], Silence(type("Now", (), {"now": 0.0}))
    monkeypatch.setattr(children.subprocess, "Popen", lambda *told, **how: begun.append(told))
    watch(heard=heard).begin()
    command = [sys.executable, "-m", "streaming_moments", "accumulate", "a.toml"]
    assert (begun, heard.beats) == ([(command,)], 1)


class Progress:
    """Keeps what it was told."""

    def __init__(self):
        self.told = []

    def advance(self, *step):
        self.told.append(step)


def test_beats_are_a_fifth_of_a_second_apart_and_progress_is_passed_on(monkeypatch):
    now, shown = [0.2], Progress()
    monkeypatch.setattr(hung_worker, "monotonic", lambda: now[0])
    read, write = os.pipe()
    beating = Beating(write, shown)
    beating.beat()
    assert os.read(read, 9) == b".", "it has been so long since it was made"
    now[0] = 100.0
    beating.advance("reading", 1, 2)
    now[0] = 100.125
    beating.advance("reading", 2, 2)
    assert os.read(read, 9) == b"."
    now[0] = 100.25
    beating.beat()
    now[0] = 100.5
    beating.beat()
    assert os.read(read, 9) == b".."
    assert shown.told == [("reading", 1, 2), ("reading", 2, 2)]
    os.close(read)
    os.close(write)


def test_silence_is_since_the_last_beat(monkeypatch):
    now = [5.0]
    monkeypatch.setattr(hung_worker, "monotonic", lambda: now[0])
    heard = Heard(3.0)
    assert heard.silence() == 2.0
    heard.beat()
    now[0] = 9.0
    assert heard.silence() == 4.0
    # a process that starts again and again without a report must not look healthy
    heard.begin()
    now[0] = 10.0
    assert (heard.silence(), heard.silence_of_process()) == (5.0, 1.0)
