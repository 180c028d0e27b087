"""Mutates lines of some folders or of a change, and lists the mutants that no test notices.

    python tests/mutants storage/inbox pipelines/service [--sample 300] [--seed 0]
    python tests/mutants --since main~1

The tests of a mutant are those that execute its line, from the files that mirror or import what is
mutated. A mutant that takes much longer than they do counts as noticed. A run that was stopped goes
on where it was: its outcomes are kept in `.mutants`.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from covering import Coverage, Ran, ran_in, warmed_for
from imports import Imports, tests_of
from mutation import PACKAGES, Mutant, changed_lines, mutants_of
from outcomes import Outcomes, key_of
from reviewed import FILE, reviewed, stale
from tree import Chosen, Tree, forked, load_pytest, now, run_tests

# 2: a file of tests cannot be imported, 4: a conftest cannot
_CODES = {0: "survived", 1: "killed", 2: "killed", 4: "killed", -1: "killed"}
EXAMPLES = "tests/test_examples.py"  # runs those of the folders beside the package
ALL = set(range(1, 100_000))


@dataclass(frozen=True)
class Asked:
    """What to run with."""

    project: Path
    tests: tuple[str, ...]
    budget: float
    slack: float
    outcomes: Outcomes


def changed_since(base: str, project: Path) -> dict[str, set[int]]:
    """Lines of files that are not as they were at a commit."""
    command = ["git", "diff", "--merge-base", "--unified=0", "--no-prefix", base, "--"]
    command += [f"{package}/*.py" for package in PACKAGES]
    found = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if found.returncode:
        sys.exit(f"{base} is not a valid commit ({found.stderr.strip()}); make mutants BASE=main~5")
    lines = changed_lines(found.stdout)
    return {path: some for path, some in lines.items() if (project / path).exists()}


def lines_below(paths: Sequence[str], project: Path) -> dict[str, set[int]]:
    """All lines of some files and folders."""
    found: dict[str, set[int]] = {}
    for name in paths:
        place = project / name
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        if not files or not files[0].exists():
            sys.exit(f"{name} has no Python file; give folders or files such as storage/inbox")
        found |= {str(file.relative_to(project)): ALL for file in files}
    return found


def covered(targets: dict[str, str], tree: Tree, asked: Asked) -> Coverage:
    """Run the tests once over instrumented sources, but for those that ran over the same."""
    texts = {
        test: (tree.root / test).read_text() for test in asked.tests or _tests_for(targets, tree)
    }
    kept = partial(asked.outcomes.coverage, targets=targets)
    new = [test for test, text in texts.items() if kept(test, text) is None]
    if new:
        print(f"{len(new)} files of tests run once, {len(texts) - len(new)} did", flush=True)
        if forked(partial(_run_once, new, targets, tree, asked), None, 6 * 3600):
            sys.exit("tests that fail without a mutant notice none; mend them first")
    found = (ran for test, text in texts.items() for ran in kept(test, text) or [])
    return Coverage(tuple(found))


def _run_once(new: Sequence[str], targets: dict[str, str], tree: Tree, asked: Asked) -> int:
    """Run files of tests over instrumented sources, and keep their coverage by its name."""
    warmed_for(list(targets), tree)
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        for test in new:
            begun = now()
            ran, wrong = ran_in(test, targets, tree, Path(place))
            print(f"  {test}: {len(ran)} tests, {now() - begun:.0f} s", flush=True)
            failed += wrong
            if not wrong:
                text = (tree.root / test).read_text()
                asked.outcomes.keep_coverage(test, text, targets, ran)
    print("".join(f"  failed: {one}\n" for one in failed), end="", flush=True)
    return int(bool(failed))


def _tests_for(targets: dict[str, str], tree: Tree) -> list[str]:
    """Files of tests that mirror or import the targets, and targets with doctests."""
    imports = Imports.of(tree.root)
    doctests = {
        path if path.startswith("streaming_moments/") else EXAMPLES
        for path, source in targets.items()
        if ">>> " in source
    }
    return sorted(doctests.union(*(tests_of(path, tree.root, imports) for path in targets)))


def outcome_of(mutant: Mutant, tests: Sequence[Ran], tree: Tree, log: Path, slack: float) -> str:
    """Whether the tests notice a mutant."""
    files = list(dict.fromkeys(ran.name.partition("::")[0] for ran in tests))
    seconds = 5 * sum(ran.seconds for ran in tests) + slack
    with tree.holding(mutant.path, mutant.source):
        chosen = Chosen([ran.name for ran in tests])
        code = forked(lambda: run_tests(files, chosen), log, seconds)
    if code not in _CODES:
        raise RuntimeError(f"{mutant}: the tests ended with {code}\n{log.read_text()[-3000:]}")
    return _CODES[code]


def mutated(
    path: str, mutants: Sequence[Mutant], coverage: Coverage, tree: Tree, asked: Asked
) -> int:
    """Run the tests for each mutant of a file, in forks of one process; keep what becomes of it."""
    source, known = (tree.root / path).read_text(), asked.outcomes.known()
    wanted = []
    for mutant in mutants:
        tests = coverage.of(path, mutant.line, source, asked.budget)
        key = key_of(mutant, tests, tree.root)
        if key not in known:
            wanted.append((mutant, tests, key))
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log"
        if any(tests for _, tests, _ in wanted):
            warmed_for([path], tree)
            union = {ran.name: ran for _, tests, _ in wanted for ran in tests}
            same = Mutant(path, 0, "", "", "", source)
            if outcome_of(same, list(union.values()), tree, log, 300 + asked.slack) != "survived":
                print(f"{path}: its tests fail without a mutant\n{log.read_text()[-3000:]}")
                return 1
        for mutant, tests, key in wanted:
            begun = now()
            outcome = outcome_of(mutant, tests, tree, log, asked.slack) if tests else "unrun"
            asked.outcomes.add(key, mutant, outcome, now() - begun)
            print("." if outcome == "killed" else "S", end="", flush=True)
    print()
    return 0


def run(lines: dict[str, set[int]], sample: int | None, seed: int, asked: Asked) -> None:
    """Mutate, test, and print a table and the survivors."""
    changes = reviewed(asked.project)
    sources = {path: (asked.project / path).read_text() for path in lines}
    every = [one for path, text in sources.items() for one in mutants_of(path, text, ALL)]
    for change in stale([one for one in changes if one.path in lines], every):
        sys.exit(
            f"{change.path}: no mutant makes {change.after!r} of {change.before!r}; mend {FILE}"
        )
    mutants = [one for one in every if one.line in lines[one.path]]
    equal = [one for one in mutants if any(change.is_of(one) for change in changes)]
    mutants = [one for one in mutants if one not in equal]
    if sample is not None and len(mutants) > sample:
        print(f"{sample} of {len(mutants)} mutants, seed {seed}")
        places = sorted(random.Random(seed).sample(range(len(mutants)), sample))
        mutants = [mutants[place] for place in places]
    if not mutants:
        print("0 mutants")
        return
    asked.outcomes.folder.mkdir(exist_ok=True)
    tree = Tree.of(asked.project, asked.outcomes.folder / "tree")
    load_pytest()
    coverage = covered(sources, tree, asked)
    for path in sorted({mutant.path for mutant in mutants}):
        own = [mutant for mutant in mutants if mutant.path == path]
        print(f"{path}: {len(own)} mutants ", end="", flush=True)
        work = partial(mutated, path, own, coverage, tree, asked)
        if code := forked(work, None, 24 * 3600):
            sys.exit(f"{path}: the run ended with {code}; run it again to go on")
    known = asked.outcomes.known()
    keys = {}
    for mutant in mutants:
        tests = coverage.of(mutant.path, mutant.line, sources[mutant.path], asked.budget)
        keys[mutant] = key_of(mutant, tests, tree.root)
    left = [mutant for mutant in mutants if known[keys[mutant]] != "killed"]
    report(mutants, equal, left, {one: known[keys[one]] for one in left}, sources)


def report(
    mutants: Sequence[Mutant],
    equal: Sequence[Mutant],
    left: Sequence[Mutant],
    outcomes: dict[Mutant, str],
    sources: dict[str, str],
) -> None:
    """Print a table by file, then each mutant that is left with its diff."""
    print("| file | mutants | noticed | left | equivalent |\n| --- | --- | --- | --- | --- |")
    for path in sorted({mutant.path for mutant in mutants}):
        own, lost, same = (sum(one.path == path for one in some) for some in (mutants, left, equal))
        print(f"| {path} | {own} | {own - lost} | {lost} | {same} |")
    for mutant in sorted(left, key=lambda one: (one.path, one.line)):
        unrun = ", and no test runs the line" if outcomes[mutant] == "unrun" else ""
        print(f"{mutant}{unrun}\n{mutant.diff(sources[mutant.path])}")
    noticed = len(mutants) - len(left)
    print(f"{len(mutants)} mutants, {noticed} noticed, {len(left)} survived")


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", help="folders or files, all of whose lines are mutated")
    parser.add_argument("--since", help="mutate the lines that differ from this commit")
    parser.add_argument("--sample", type=int, help="so many mutants at most, drawn from all")
    parser.add_argument("--seed", type=int, default=0, help="what they are drawn by [0]")
    parser.add_argument(
        "--tests", nargs="*", default=[], help="files of tests to choose from, in place of those"
    )
    parser.add_argument(
        "--budget", type=float, default=60, help="seconds of tests for a mutant at most [60]"
    )
    parser.add_argument(
        "--slack", type=float, default=20, help="seconds beside five times those of the tests [20]"
    )
    parser.add_argument("--state", default=".mutants", help="folder of what is known [.mutants]")
    given = parser.parse_args()
    if bool(given.paths) == bool(given.since):
        parser.error("give folders, or --since COMMIT")
    project = Path.cwd()
    lines = changed_since(given.since, project) if given.since else {}
    lines = lines or (lines_below(given.paths, project) if given.paths else {})
    state = Outcomes((project / given.state).resolve())
    asked = Asked(project, tuple(given.tests), given.budget, given.slack, state)
    run(lines, given.sample, given.seed, asked)


if __name__ == "__main__":
    main()
