"""A copy of the project that mutants are put into, and processes that run its tests."""

import compileall
import contextlib
import gc
import importlib
import io
import os
import py_compile
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from imports import Imports
from mutation import PACKAGES

HERE = Path(__file__).parent
COPIED = (*PACKAGES, "tests", "deploy", "docs", "pyproject.toml", "README.md", "Makefile")
TIMED_OUT = -1


@dataclass(frozen=True)
class Tree:
    """A copy of the project."""

    root: Path

    @classmethod
    def of(cls, project: Path, place: Path) -> "Tree":
        """Copy what the tests need, where it differs: what was compiled there stays."""
        wanted = set()
        for source in _sources(project):
            name = source.relative_to(project)
            copy = place / name
            wanted.add(copy)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                if not copy.is_symlink():
                    copy.symlink_to(os.readlink(source))
            elif not copy.exists() or copy.read_bytes() != source.read_bytes():
                shutil.copy2(source, copy)
        for copy in _sources(place):
            if copy not in wanted:
                copy.unlink()
        # by their content: a mutant may be as long as what it replaces, and as old
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        for package in PACKAGES:
            compileall.compile_dir(place / package, quiet=2, invalidation_mode=mode)
        return cls(place)

    @contextlib.contextmanager
    def holding(self, path: str, source: str) -> Iterator[None]:
        """Put another source in the place of a file for a while."""
        place = self.root / path
        original = place.read_text()
        place.write_text(source)
        try:
            yield
        finally:
            place.write_text(original)

    def enter(self) -> None:
        """Run in the tree from now on."""
        os.chdir(self.root)
        paths = [str(self.root), str(HERE)]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False
        sys.path[:0] = paths

    def warm(self, targets: Sequence[str]) -> None:
        """Import all that imports none of the targets, so that each fork has it.

        A module that cannot be imported is left to the tests that import it.
        """
        imports = Imports.of(self.root)
        stale = imports.dependents(targets)
        for name in sorted(set(imports.modules) - stale):
            if not name.endswith("__main__"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
        for name in stale & set(sys.modules):
            del sys.modules[name]
        # pytest collects garbage ten times as it ends, which would look at all that is imported
        gc.freeze()


def _sources(root: Path) -> Iterator[Path]:
    """Files and links of a project, without what Python and numba have compiled."""
    for name in COPIED:
        place = root / name
        if place.is_dir() and not place.is_symlink():
            for folder, folders, files in os.walk(place):
                links = [one for one in folders if (Path(folder) / one).is_symlink()]
                folders[:] = [one for one in folders if one != "__pycache__" and one not in links]
                yield from (Path(folder) / one for one in (*files, *links))
        elif place.exists():
            yield place


def forked(work: Callable[[], int], log: Path | None, seconds: float) -> int:
    """Exit code of work in a forked process; its group and descendants end with it.

    What it prints goes into a log, or without one where this process prints.
    """
    sys.stdout.flush()
    child = os.fork()
    if not child:
        _work(work, log)
    descriptor = os.pidfd_open(child)
    try:
        done, _, _ = select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
        for process in _descendants(child):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if done else TIMED_OUT


def _work(work: Callable[[], int], log: Path | None) -> None:
    """Work as the leader of a new group, and exit."""
    code = 70
    try:
        os.setsid()
        if log is not None:
            to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(to, 1)
            os.dup2(to, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = work()
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _descendants(process: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(process).children(recursive=True)
    return []


def load_pytest() -> None:
    """Load pytest and its plugins, so that each fork has them."""
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, empty])


def run_tests(files: Sequence[str], *plugins: object, stop: bool = True) -> int:
    """Exit code of pytest in this process, for some files."""
    options = ["-q", "-p", "no:cacheprovider", *(["-x"] if stop else [])]
    code = pytest.main([*options, *files], plugins=list(plugins))
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError(f"pytest ended with {code!r} for {', '.join(files)}")
    return int(code)


class Chosen:
    """Runs some tests only, in their order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.place = {name: at for at, name in enumerate(names)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.place]
        items.sort(key=lambda item: self.place[item.nodeid])


def now() -> float:
    """Seconds of a clock that only goes forward."""
    return time.monotonic()
