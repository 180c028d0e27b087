"""Which tests execute which lines: one run of the tests over instrumented sources."""

import contextlib
import json
import mmap
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hits import PLACE
from imports import module_of
from instrumenting import instrumented, statements
from tree import TIMED_OUT, Tree, forked, run_tests

_SECONDS = 3600.0
_OUTSIDE = 0  # what runs while no test does: each of the file may use what it made


@dataclass(frozen=True)
class Ran:
    """A test that passed: its name, its seconds with what was set up for it, the lines it ran."""

    name: str
    seconds: float
    lines: Mapping[str, Sequence[int]]


def ran_in(
    test: str, targets: Mapping[str, str], tree: Tree, place: Path
) -> tuple[list[Ran], list[str]]:
    """The tests of a file and the lines of the targets that each executes, and those that fail."""
    with contextlib.ExitStack() as stack:
        for at, (path, source) in enumerate(targets.items()):
            stack.enter_context(tree.holding(path, instrumented(source, at)))
        return _recorded(test, list(targets), tree, place)


def _recorded(
    test: str, targets: Sequence[str], tree: Tree, place: Path
) -> tuple[list[Ran], list[str]]:
    (place / "hits").write_bytes(b"")
    (place / "test").write_bytes(bytes(8))
    os.environ[PLACE] = str(place)
    try:
        log = place / "log"

        def recorded() -> int:
            # this process has it without a folder to record in
            sys.modules.pop("hits")
            return run_tests([test], _Recorder(place), stop=False)

        code = forked(recorded, log, _SECONDS)
    finally:
        del os.environ[PLACE]
    if code == pytest.ExitCode.NO_TESTS_COLLECTED or not (place / "tests").exists():
        return [], [f"{test}: nothing ran\n{log.read_text()[-2000:]}"]
    told = json.loads((place / "tests").read_text())
    (place / "tests").unlink()
    hits: dict[int, dict[str, set[int]]] = {}
    for line in (place / "hits").read_text().splitlines():
        number, file, at = map(int, line.split())
        hits.setdefault(number, {}).setdefault(targets[file], set()).add(at)
    shared = told["shared"]
    failed = [] if code != TIMED_OUT else [f"{test}: above {_SECONDS:.0f} s"]
    ran = []
    for number, (name, seconds, passed) in enumerate(told["tests"], 1):
        if not passed:
            failed.append(name)
            continue
        lines: dict[str, set[int]] = {}
        for some in (hits.get(number, {}), hits.get(shared, {}), hits.get(_OUTSIDE, {})):
            for path, found in some.items():
                lines.setdefault(path, set()).update(found)
        ran.append(Ran(name, seconds, {path: sorted(found) for path, found in lines.items()}))
    return ran, failed


class _Recorder:
    """Says to all processes which test runs, and keeps what became of each."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.tests: list[list[object]] = []
        # of fixtures that several tests share, each of which may use it
        self.shared = 2**32
        with (place / "test").open("r+b") as file:
            self.current = mmap.mmap(file.fileno(), 8)

    @contextlib.contextmanager
    def _as(self, number: int) -> Iterator[None]:
        before = self.current[:]
        self.current[:] = number.to_bytes(8, "little")
        try:
            yield
        finally:
            self.current[:] = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.tests.append([item.nodeid, 0.0, True])
        with self._as(len(self.tests)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        with self._as(self.shared):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests[-1][1] += report.duration
        self.tests[-1][2] = self.tests[-1][2] and not report.failed

    def pytest_sessionfinish(self) -> None:
        told = {"tests": self.tests, "shared": self.shared}
        (self.place / "tests").write_text(json.dumps(told))


@dataclass(frozen=True)
class Coverage:
    """Tests by the lines that they execute."""

    tests: tuple[Ran, ...]

    def of(self, path: str, line: int, source: str, budget: float) -> list[Ran]:
        """Tests to run for a mutant: those of its file first, then the fastest.

        A line outside functions runs when its file is imported, so that each test of the file may
        notice it. Tests that do not fit into the budget in seconds are left out.
        """
        begins = statements(source).get(line)
        found = [
            ran
            for ran in self.tests
            if path in ran.lines and (begins is None or begins in ran.lines[path])
        ]
        groups: dict[str, list[Ran]] = {}
        for ran in sorted(found, key=lambda ran: ran.seconds):
            groups.setdefault(ran.name.partition("::")[0], []).append(ran)
        # tests of a file stay together, as they share what is set up for them
        mirror = Path("tests") / Path(path).with_name(f"test_{Path(path).stem}.py")
        order = sorted(groups, key=lambda file: (Path(file) != mirror, groups[file][0].seconds))
        chosen, left = [], budget
        for ran in (ran for file in order for ran in groups[file]):
            if ran.seconds <= left:
                chosen.append(ran)
                left -= ran.seconds
        return chosen


def warmed_for(targets: Sequence[str], tree: Tree) -> None:
    """Enter a tree and import what does not depend on the targets."""
    tree.enter()
    tree.warm([module_of(path) for path in targets])
    sys.stdout.flush()
