"""Time cases on several commits in turn, by asv, and set their CPU seconds beside one another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RESULTS = ROOT / ".bench" / "history" / "results"
# Releases that have no tag: the commits of which CHANGELOG.md says what came later.
RELEASES = {
    "0.1.0": "7bd666b2070b1ddfef1a4467e78bcd42988ea0cd",
    "0.2.0": "3cffe03af96a751c2050b271fafa93c5acb05533",
}


def git(*arguments: str) -> str:
    """Return what git prints in the checkout."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_of(name: str) -> str:
    """Return the commit of a release, branch or commit."""
    tagged = f"v{name}"
    if git("tag", "--list", tagged):
        name = tagged
    return git("rev-parse", "--verify", f"{RELEASES.get(name, name)}^{{commit}}")


def evenly(commits: Sequence[str], number: int) -> list[str]:
    """Return some of the commits, the first and the last among them.

    Examples
    --------
    >>> evenly("abcdefg", 3)
    ['a', 'd', 'g']
    """
    last = len(commits) - 1
    if last < number:
        return list(commits)
    return [commits[round(last * place / (number - 1))] for place in range(number)]


def chosen(ranges: Sequence[str], number: int) -> list[tuple[str, str]]:
    """Return names and commits: of a range A..B so many, of other names each its own."""
    found = []
    for name in ranges:
        first, dots, last = name.partition("..")
        if not dots:
            found.append((name, commit_of(name)))
            continue
        ends = {commit_of(end): end for end in (first, last or "HEAD")}
        begin, end = ends
        path = git("rev-list", "--first-parent", "--reverse", f"{begin}..{end}").split()
        commits = evenly([begin, *path], number)
        found += [(ends.get(commit, commit[:8]), commit) for commit in commits]
    return found


def medians(commit: str, results: Path = RESULTS) -> dict[str, float]:
    """Return the CPU seconds of each case that asv has of a commit; skipped ones are left out."""
    found: dict[str, float] = {}
    for path in results.glob(f"*/{commit[:8]}-*.json"):
        content = json.loads(path.read_text())
        place = content["result_columns"].index("result")
        for case, columns in content["results"].items():
            value = (columns[place] or [None])[0]
            if value is not None and value == value:
                found[case] = value
    return found


def table(columns: Mapping[str, Mapping[str, float]]) -> str:
    """Return a Markdown table: CPU seconds, and from the second on the ratio to the first that has.

    Examples
    --------
    >>> print(table({"old": {"fit": 2.0}, "new": {"fit": 3.0, "log": 0.0625}}))
    | case, CPU s | old | new |
    | --- | ---: | ---: |
    | fit | 2 | 3 (1.50) |
    | log |  | 0.0625 |
    """
    lines = [f"| case, CPU s | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    for case in sorted({case for column in columns.values() for case in column}):
        cells, first = [], None
        for column in columns.values():
            value = column.get(case)
            if value is None:
                cells.append("")
                continue
            ratio = "" if first is None else f" ({value / first:.2f})"
            cells.append(f"{value:.3g}{ratio}")
            first = value if first is None else first
        lines.append(f"| {case} | {' | '.join(cells)} |")
    return "\n".join(lines)


def asv(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run asv where its configuration lies."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "asv", *arguments]
    return subprocess.run(command, cwd=HERE, env=environment, **options)


@click.command()
@click.argument("ranges", nargs=-1, required=True)
@click.option(
    "--commits", default=5, show_default=True, help="Of a range A..B, both ends among them."
)
@click.option("--only", multiple=True, help="A regular expression of cases; repeatable.")
@click.option("--rounds", default=3, show_default=True, help="Times that the commits take turns.")
@click.option("--show", is_flag=True, help="Only print the table of what was timed before.")
def main(
    ranges: tuple[str, ...], commits: int, only: tuple[str, ...], rounds: int, show: bool
) -> None:
    """Time cases on the commits of RANGES in turn, and print their CPU seconds."""
    named = chosen([one for each in ranges for one in each.split()], commits)
    if not show:
        asv("machine", "--yes", check=True, stdout=subprocess.DEVNULL)
        with TemporaryDirectory() as place:
            hashes = Path(place, "commits")
            hashes.write_text("".join(f"{commit}\n" for _, commit in named))
            cases = [option for one in only for option in ("--bench", one)]
            # asv's own exit code is also that of one case that fails on one commit
            asv(
                "run",
                f"HASHFILE:{hashes}",
                "--interleave-rounds",
                "--show-stderr",
                "--attribute",
                f"rounds={rounds}",
                *cases,
            )
    click.echo(table({name: medians(commit) for name, commit in named}))
