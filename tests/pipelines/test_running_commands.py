"""Commands while they run: what they listen to, and how they end when they are stopped."""

import signal
import subprocess
import sys
import time
from itertools import chain

import psutil
import pytest

from streaming_moments.pipelines.create import PilotOptions, create
from streaming_moments.storage.shards import ShardFormat, list_shards
from streaming_moments.storage.tokens import TokenPolicy

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
    create(str(place), listed, ShardFormat(), TokenPolicy(), OPTIONS, embedded)
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
