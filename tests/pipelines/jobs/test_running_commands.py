"""Commands while they run: what they listen to, and how they end when they are stopped."""

import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from functools import partial
from itertools import chain

import psutil
import pytest

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)


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
    tmp_path, shards, embedded, reading, options, expected
):
    place, long = tmp_path / "store", tmp_path / "long.txt"
    listed = list_shards([str(shards)])
    create(str(place), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded))
    long.write_text("\n".join([" ".join(["sea law"] * 100)] * 40_000))
    command = [sys.executable, "-m", "streaming_moments", "update", str(place), str(long)]
    with subprocess.Popen([*command, *options.split()], stderr=subprocess.DEVNULL) as job:
        while not reading(job.pid, long):
            assert job.poll() is None, "it ended too soon"
            time.sleep(0.002)
        found = listening(psutil.Process(job.pid))
        job.send_signal(signal.SIGINT)
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


SCHEDULER = """
import sys
from distributed import LocalCluster

options = dict(processes=False, protocol="tcp://", dashboard_address=None, memory_limit=0)
with LocalCluster(1, scheduler_port=int(sys.argv[1]), **options) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@contextmanager
def running_scheduler(port):
    """A scheduler with a worker in a process of its own, and its address."""
    command, pipe = [sys.executable, "-c", SCHEDULER, str(port)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_a_scheduler_restarted_in_the_middle_costs_the_group_and_no_more(
    tmp_path, shards, embedded, reading
):
    place, long = str(tmp_path / "store"), tmp_path / "long.txt"
    listed = list_shards([str(shards)])
    store = create(place, listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded))
    long.write_text("\n".join([" ".join(store.vocabulary.terms[:100])] * 40_000))
    store = update(store, listed[:2], Run(embedded)).store
    shutil.copytree(place, tmp_path / "undisturbed")
    both = list_shards([str(shards), str(long)])
    twin = MomentStore.open(str(tmp_path / "undisturbed"))
    undisturbed = update(twin, both, Run(embedded)).store.load()
    with running_scheduler(0) as (first, address):
        command = [*COMMANDS["-m"], "update", place, str(shards), str(long)]
        command += ["--scheduler", address]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as job:
            while not reading(first.pid, long):
                assert job.poll() is None, "it ended too soon"
                time.sleep(0.002)
            first.kill()
            first.wait()
            with running_scheduler(address.rpartition(":")[2]) as (_, again):
                assert again == address
                out, err = job.communicate(timeout=100)
                left = MomentStore.open(place)
                assert left.version == store.version
                assert left.verify() == []
                subprocess.run(command, check=True, capture_output=True, timeout=200)
    assert (job.returncode, out) == (2, ""), err
    assert err == (
        f"error: the scheduler at {address} died, or was restarted, while the job ran; every "
        "commit so far is kept; start the scheduler and run it again\n"
    )
    assert left.latest().load() == undisturbed
