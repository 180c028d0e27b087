"""Mutates the lines that a change touches, and lists the mutants that no test notices.

    python tests/mutants BASE [--most 50] [--seed 0]

The tests of a mutant are those that mirror or import its file. A mutant that takes ten times as
long as they do counts as noticed.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutation import PACKAGES, Mutant, Tree, changed_lines, mutants_of, tests_of


def mutants_since(base: str, project: Path) -> list[Mutant]:
    """Mutants of every line that is not as it was at a commit."""
    found = subprocess.run(
        [
            "git",
            "diff",
            "--merge-base",
            "--unified=0",
            "--no-prefix",
            base,
            "--",
            *(f"{p}/*.py" for p in PACKAGES),
        ],
        cwd=project,
        capture_output=True,
        text=True,
    )
    if found.returncode:
        sys.exit(f"{base} is no commit ({found.stderr.strip()}); make mutants BASE=main~5")
    return [
        mutant
        for path, lines in changed_lines(found.stdout).items()
        if (project / path).exists()
        for mutant in mutants_of(path, (project / path).read_text(), lines)
    ]


def survivors(mutants: list[Mutant], tree: Tree) -> list[Mutant]:
    """Mutants that no test notices; tells of each file without tests."""
    left = []
    for path in sorted({mutant.path for mutant in mutants}):
        own = [mutant for mutant in mutants if mutant.path == path]
        tests = tests_of(path, tree.root)
        if not tests:
            print(f"{path}: no test mirrors or imports it")
            left += own
            continue
        begun = time.monotonic()
        if not tree.passes(tests, seconds=3600):
            sys.exit(f"{', '.join(tests)} fail without a mutant; mend them first")
        seconds = 10 * (time.monotonic() - begun) + 10
        print(f"{path}: {len(own)} mutants beside {', '.join(tests)}", flush=True)
        for mutant in own:
            if tree.survives(mutant, tests, seconds):
                print(f"  survived: {mutant}", flush=True)
                left.append(mutant)
    return left


def main() -> None:
    """Mutate, test, and print the survivors."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.splitlines()[0])
    parser.add_argument("base", help="commit that the change is compared with")
    parser.add_argument("--most", type=int, help="so many mutants at most, drawn from all")
    parser.add_argument("--seed", type=int, default=0, help="what they are drawn by [0]")
    asked = parser.parse_args()
    project = Path.cwd()
    mutants = mutants_since(asked.base, project)
    if asked.most is not None and len(mutants) > asked.most:
        print(f"{asked.most} of {len(mutants)} mutants, seed {asked.seed}")
        mutants = random.Random(asked.seed).sample(mutants, asked.most)
    with tempfile.TemporaryDirectory() as place:
        left = survivors(mutants, Tree.of(project, Path(place)))
    print(f"{len(mutants)} mutants, {len(mutants) - len(left)} noticed, {len(left)} survived:")
    for mutant in left:
        print(f"  {mutant}")


if __name__ == "__main__":
    main()
