"""What holds for all tests, in one process or shared out among several."""

import gc
import linecache
import os
import shutil
import sys
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

import lighter_memory  # noqa: F401
import lighter_s3  # noqa: F401
import pytest
from _pytest.doctest import DoctestModule
from campaigns import CAMPAIGNS, Campaigns, Figure, few_row_blocks
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import settings

pytest_plugins = ["browser_fixtures"]

HERE = Path(__file__).parent
# such as to see on one system what another would skip
SYSTEM = os.environ.get("STREAMING_MOMENTS_SYSTEM", sys.platform)

# Where files of tests lie in memory, as a disk takes milliseconds for each sync; and the bytes that
# must be free there.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# gcsfs asks for the kind of a bucket by gRPC, and may wait for ever where nobody answers; it reads
# this once, when the first test of a process loads it
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")

# the first example of a kernel compiles it
settings.register_profile("fixed", deadline=None, derandomize=True)
# where CI is set Hypothesis would derandomize of its own
settings.register_profile("drawn", deadline=None, derandomize=False)
settings.load_profile("drawn" if Campaigns.asked_for().drawn else "fixed")


class WithoutExamples:
    """A file without an example is not searched for examples: most tests, and half the package."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path):
        found = yield
        if file_path.suffix != ".py" or b">>> " in file_path.read_bytes():
            return found
        return [one for one in found if not isinstance(one, DoctestModule)]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    gc.disable()  # until all is collected
    # the hook of a conftest.py would be asked of the files beside it only
    config.pluginmanager.register(WithoutExamples())
    campaigns = Campaigns.asked_for()
    if hasattr(config, "workerinput"):
        campaigns = replace(campaigns, seed=config.workerinput["seed"])
    config.stash[CAMPAIGNS] = campaigns
    if campaigns.drawn:
        # before hypothesis reads it
        config.option.hypothesis_seed = str(campaigns.seed)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """All processes draw from one seed."""
    node.workerinput["seed"] = node.config.stash[CAMPAIGNS].seed


# Of the tests that other systems run, those that kill processes, limit them or look into /proc.
LINUX = (
    *("faults", "deploy", "benchmarks", "paper", "storage/log/test_locks.py"),
    *("pipelines/aggregation", "pipelines/service", "pipelines/planning/planned_run.py"),
    *("pipelines/cluster/test_memory.py", "pipelines/cluster/test_worker_loss.py"),
)


@cache
def needs_linux(path):
    """Whether tests of a file need what Linux alone has."""
    inside = path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else ""
    return any(inside == one or inside.startswith(f"{one}/") for one in LINUX)


def pytest_collection_modifyitems(items):
    for item in items:
        if needs_linux(item.path):
            item.add_marker(pytest.mark.linux)
        if item.get_closest_marker("linux") and SYSTEM != "linux":
            item.add_marker(pytest.mark.skip(reason=f"needs Linux, this is {SYSTEM}"))
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish():
    """What tests are made of stays: a sixth of all time was spent looking for garbage in it."""
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)
    gc.enable()


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        figures = session.config.stash[CAMPAIGNS].figures
        session.config.workeroutput["figures"] = [astuple(figure) for figure in figures]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """The figures of a process that has ended; one that was killed has none."""
    figures = getattr(node, "workeroutput", {}).get("figures", [])
    node.config.stash[CAMPAIGNS].figures.extend(Figure(*figure) for figure in figures)


def pytest_terminal_summary(terminalreporter, config):
    campaigns = config.stash[CAMPAIGNS]
    if campaigns.drawn:
        terminalreporter.line(f"SEED={campaigns.seed} draws the same examples again")
    if not campaigns.figures:
        return
    form = "long" if campaigns.long else "short"
    terminalreporter.section(f"fault campaigns, {form} form, SEED={campaigns.seed}")
    for figure in sorted(campaigns.figures, key=lambda figure: figure.campaign):
        terminalreporter.line(
            f"{figure.campaign:<58} {figure.held:>6} of {figure.tried:>6} {figure.note}"
        )


def pytest_runtest_setup():
    """An example looks for changes of each file that a traceback has shown, one by one."""
    linecache.clearcache()


@pytest.fixture(scope="module")
def few_blocks():
    """Small stores have fewer row blocks: each step takes a task for each, and files."""
    with few_row_blocks():
        yield


@pytest.fixture(scope="session")
def forked_workers():
    """Worker processes are forked from one that has loaded what each would load anew."""
    import dask
    from distributed.utils import get_mp_context
    from forking import forking

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context()  # Dask would preload itself only
        forking()
        yield


@pytest.fixture(autouse=True)
def width_of_no_terminal(monkeypatch):
    """A library that a test runs may leave the width of its own terminal to all that come later."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def memory_of_files():
    """What a test leaves in memory goes with it: each call looks through all files there are."""
    files, folders = MemoryFileSystem.store, MemoryFileSystem.pseudo_dirs
    before = dict(files), list(folders)
    yield
    files.clear()
    files.update(before[0])  # those of a module as they were, too
    folders[:] = before[1]
