"""Commands while they run: what they listen to, and how they end when they are stopped."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from functools import partial
from itertools import chain

import psutil
import pytest
from forked_scheduler import running_scheduler
from night_corpus import command

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

PATIENCE = 200
OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory, shards, embedded):
    """A store in which nothing is counted yet, to be copied."""
    place = tmp_path_factory.mktemp("made") / "store"
    listed = list_shards([str(shards)])
    create(str(place), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded))
    return place


def listening(job):
    """Addresses at which a process and its children listen, by their ports."""
    family = [job, *job.children(recursive=True)]
    sockets = chain.from_iterable(one.net_connections("inet") for one in family)
    return {one.laddr.port: one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", 0),
        ("--dashboard", 1),
        # the scheduler, the worker and its nanny
        ("--workers 1", 3),
        ("--workers 1 --dashboard", 4),
    ],
)
def test_a_command_listens_on_the_loopback_only_and_serves_no_pages_unasked(
    tmp_path, made, reading, options, expected
):
    place, long = tmp_path / "store", tmp_path / "long.txt"
    shutil.copytree(made, place)
    long.write_text("\n".join([" ".join(["sea law"] * 100)] * 40_000))
    job = command("update", place, long, *options.split())
    try:
        while not reading(job.pid, long):
            assert job.is_alive(), "it ended too soon"
            time.sleep(0.002)
        found = listening(psutil.Process(job.pid))
    finally:
        os.kill(job.pid, signal.SIGINT)
        job.join(PATIENCE)
    assert job.exitcode == 130
    assert len(found) == expected
    assert set(found.values()) <= {"127.0.0.1"}


SCRIPT = shutil.which("streaming-moments", path=sysconfig.get_path("scripts"))
COMMANDS = {
    "-m": [sys.executable, "-m", "streaming_moments"],
    "script": [sys.executable, str(SCRIPT)],
}


def loaded(pid, library):
    """Whether a process has loaded a library, told by a part of its path."""
    return any(library in part.path for part in psutil.Process(pid).memory_maps())


@pytest.mark.parametrize(
    ("how", "library"),
    # in the order in which they are loaded
    [("-m", "multiarray_umath"), ("-m", "pydantic"), ("-m", "libarrow"), ("script", "libarrow")],
)
def test_ctrl_c_while_a_command_is_loaded_is_a_line_and_code_130(tmp_path, how, library):
    command = [*COMMANDS[how], "update", str(tmp_path / "store"), str(tmp_path / "a.txt")]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that runs the tests in the background has it ignored
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    ) as job:
        while not loaded(job.pid, library):
            assert job.poll() is None, "it ended too soon"
            time.sleep(0.002)
        job.send_signal(signal.SIGINT)
        out, err = job.communicate(timeout=100)
    assert (job.returncode, out, err) == (130, "", "interrupted: nothing was begun\n")


FINALIZED = """
import signal, sys, time

sys.argv = ["/bin/streaming-moments"]
from streaming_moments import startup

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        print("still here")

startup.begun()
one = Finalized()
del one
print("not raised")
time.sleep(100)
"""


def test_ctrl_c_that_a_finalizer_swallows_is_raised_once_more():
    job = subprocess.run(
        [sys.executable, "-c", FINALIZED],
        capture_output=True,
        text=True,
        timeout=90,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )
    assert (job.returncode, job.stdout) == (-signal.SIGINT, "not raised\n")
    assert job.stderr.endswith("KeyboardInterrupt\n")
    assert "Exception ignored" not in job.stderr


def test_a_scheduler_restarted_in_the_middle_costs_the_group_and_no_more(
    tmp_path, made, shards, embedded, reading
):
    place, long = str(tmp_path / "store"), tmp_path / "long.txt"
    listed = list_shards([str(shards)])
    shutil.copytree(made, place)
    store = MomentStore.open(place)
    long.write_text("\n".join([" ".join(store.vocabulary.terms[:100])] * 40_000))
    store = update(store, listed[:2], Run(embedded)).store
    shutil.copytree(place, tmp_path / "undisturbed")
    both = list_shards([str(shards), str(long)])
    twin = MomentStore.open(str(tmp_path / "undisturbed"))
    undisturbed = update(twin, both, Run(embedded)).store.load()
    with running_scheduler(0) as (first, address):
        arguments = ["update", place, str(shards), str(long), "--scheduler", address]
        with subprocess.Popen(
            [*COMMANDS["-m"], *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as job:
            while not reading(first.pid, long):
                assert job.poll() is None, "it ended too soon"
                time.sleep(0.002)
            first.kill()
            first.join()
            with running_scheduler(address.rpartition(":")[2]) as (_, place_again):
                assert place_again == address
                out, err = job.communicate(timeout=100)
                left = MomentStore.open(place)
                assert left.version == store.version
                assert left.verify() == []
                again = command(*arguments)
                again.join(PATIENCE)
                assert again.exitcode == 0
    assert (job.returncode, out) == (2, ""), err
    assert err == (
        f"error: the scheduler at {address} died or restarted while the job ran. Start the "
        "scheduler and run the job again; all commits so far are stored\n"
    )
    assert left.latest().load() == undisturbed
