"""Processes forked from one that has imported everything: they begin in no time, and truly race."""

import atexit
import json
import multiprocessing
import os
import tempfile
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.reduction import DupFd
from pathlib import Path

import psutil
import pytest

PATIENCE = 180  # seconds until something counts as hanging

# whoever asks first starts the one server of a run, so that all ask for the same
_IMPORTED = [
    "__main__",
    "pytest",  # the modules whose functions are called import it
    "distributed",
    "distributed.http.scheduler.prometheus.core",
    "tornado.platform.asyncio",
    "s3fs",
    "scipy.sparse",
    "scipy.special",
    "zarr",
    *(
        f"streaming_moments.{name}"
        for name in (
            "pipelines.command_line.entry",
            "pipelines.command_line.stores.expire",
            "pipelines.command_line.stores.purge",
            "pipelines.command_line.stores.rebase",
            "pipelines.command_line.stores.grow",
            "pipelines.command_line.nightly",
            "pipelines.command_line.models.polish",
            "pipelines.aggregation.group_runner",
            "pipelines.nightly.steps.chosen_model",
            "pipelines.command_line.service.accumulate",
            "pipelines.command_line.service.serve",
            "pipelines.service.ingest_worker.accumulator",
            "pipelines.service.http.app",
            "pipelines.service.http.connections.serving",
            "testing.small_store",
        )
    ),
    # what a server and a client import as they begin
    "anyio._backends._asyncio",
    "structlog",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "moto.moto_server.werkzeug_app",
    "killable_cluster",
    "lighter_s3",
    "warm_kernels",
]


def forking():
    """A multiprocessing context; processes that share a run of tests share its server."""
    server, run = forkserver._forkserver, os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None or server._forkserver_address is not None or not Path("/proc/self/fd").exists():
        _ensure_running()
    else:
        _start_or_join(Path(tempfile.gettempdir(), f"forking-{run}"))
    return multiprocessing.get_context("forkserver")


def _ensure_running():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    with pytest.MonkeyPatch.context() as patch:
        # before Python 3.13 it knows no paths but these and those of the installation
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        forkserver._forkserver.ensure_running()


def _start_or_join(place):
    """Join the server that is noted there, else start one and note it: it takes seconds to load."""
    import fcntl  # where there is /proc

    server = forkserver._forkserver
    with open(os.open(place, os.O_RDWR | os.O_CREAT, 0o600), "r+") as note:
        fcntl.flock(note, fcntl.LOCK_EX)
        noted = note.read()
        if noted and _joined(**json.loads(noted)):
            return
        _ensure_running()
        # it runs as long as anyone holds this pipe
        alive = f"/proc/{os.getpid()}/fd/{server._forkserver_alive_fd}"
        key = getattr(server, "_forkserver_authkey", None)  # from Python 3.14 on
        told = {"address": server._forkserver_address, "key": key and key.hex()}
        told |= {"alive": alive, "pipe": os.readlink(alive), "project": __file__}
        note.seek(0)
        note.truncate()
        note.write(json.dumps(told))
        atexit.register(place.unlink, missing_ok=True)


def _joined(address, key, alive, pipe, project):
    """Whether the server runs, of this project, and does for this process too from now on."""
    if project != __file__:  # a test runs the tests of another
        return False
    try:
        held = os.open(alive, os.O_WRONLY)
    except OSError:
        return False
    if os.readlink(f"/proc/self/fd/{held}") != pipe:
        os.close(held)
        return False
    server = forkserver._forkserver
    server._forkserver_address, server._forkserver_alive_fd = address, held
    server._forkserver_authkey = key and bytes.fromhex(key)
    # it would start another
    server.ensure_running = resource_tracker.ensure_running
    return True


def forking_again():
    """A context in a process that was forked: the one that it came from forks for it, too."""
    # it would start another
    forkserver._forkserver.ensure_running = lambda: None
    return multiprocessing.get_context("forkserver")


def running(pid, began):
    """The process of an id, where it is the one that began then; None where that has ended.

    Ids come again soon where many processes end: a signal to an id alone may strike another.
    """
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(pid))
        return process if process.create_time() == float(began) else None
    return None


@contextmanager
def serving(target, *given):
    """A process that tells its address and serves until its lifeline is closed; and the address.

    The target is called with what is given, the lifeline and where the address is told.
    """
    lifeline, ours = os.pipe()
    address, theirs = os.pipe()
    told = (*given, Descriptor(lifeline), Descriptor(theirs))
    process = forking().Process(target=target, args=told)
    process.start()
    os.close(lifeline)
    os.close(theirs)
    try:
        with open(address) as found:
            yield process, found.readline().strip()
    finally:
        os.close(ours)
        process.join(PATIENCE)


class Descriptor:
    """A file descriptor that goes to a process which is forked."""

    def __init__(self, number):
        self.number = number

    def __getstate__(self):
        return DupFd(self.number)

    def __setstate__(self, passed):
        self.number = passed.detach()

    def become(self, number):
        """Take the place of another."""
        os.dup2(self.number, number)
        os.close(self.number)
