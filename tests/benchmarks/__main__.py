"""`python tests/benchmarks`: measure, print, write."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click
from corpora import make_addresses, make_planted
from hidden.listing import HiddenProgramme
from measure import Measurement, measure
from plot import plot
from programme import Programme
from report import SCALING_NAMES, Machine, Report
from rich.console import Console

QUICK_DOCUMENTS, QUICK_TOPICS = (2000,), (20,)


@click.command()
@click.option("--output", default=".bench", show_default=True, help="Folder for all that is made.")
@click.option("--only", multiple=True, help="Only measurements whose name holds this, repeatable.")
@click.option("--documents", type=int, multiple=True, help="Sizes, repeatable [20000, 200000].")
@click.option("--topics", type=int, multiple=True, help="Planted topics, repeatable [20, 50].")
@click.option(
    "--labelled",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    multiple=True,
    help="Labelled corpus: text, part and label by tabs, perhaps .gz; repeatable.",
)
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    multiple=True,
    help="JSON Lines with a column text, whose letters are sequences; repeatable.",
)
@click.option("--real-topics", type=int, multiple=True, help="Of real corpora, repeatable [20].")
@click.option("--seeds", help="Runs of Gibbs sampling [5].", type=click.IntRange(1))
@click.option("--starts", help="Runs of other peers that draw [2].", type=click.IntRange(0))
@click.option("--corpora", default=1, show_default=True, help="Drawn anew, of the first size.")
@click.option("--know-eta", is_flag=True, help="Peers are told the parameters of planted topics.")
@click.option("--quick", is_flag=True, help="2,000 documents, 20 topics, one run.")
@click.option("--repeat", default=1, show_default=True, help="Measurements of each; the median.")
@click.option("--limit", default=900.0, show_default=True, help="Seconds for a measurement.")
@click.option("--all", "everything", is_flag=True, help="Also what a run has no room for.")
@click.option("--list", "only_list", is_flag=True, help="Print the measurements' names.")
def main(
    output: str,
    only: tuple[str, ...],
    documents: tuple[int, ...],
    topics: tuple[int, ...],
    labelled: tuple[str, ...],
    texts: tuple[str, ...],
    real_topics: tuple[int, ...],
    seeds: int | None,
    starts: int | None,
    corpora: int,
    know_eta: bool,
    quick: bool,
    repeat: int,
    limit: float,
    everything: bool,
    only_list: bool,
) -> None:
    """Measure this project and its peers side by side, each in a fresh process."""
    # terminated, it ends the process it measures as well
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(output).resolve()
    programme = Programme(
        str(folder / "corpora"),
        tuple(sorted(documents)) or (QUICK_DOCUMENTS if quick else (20_000, 200_000)),
        tuple(sorted(topics)) or (QUICK_TOPICS if quick else (20, 50)),
        everything,
        labelled,
        tuple(sorted(real_topics)) or (20,),
        seeds or (1 if quick else 5),
        (1 if quick else 2) if starts is None else starts,
        corpora,
        know_eta,
        HiddenProgramme(texts, seeds or (1 if quick else 5), corpora, quick, labelled),
    )
    jobs = [job for job in programme.jobs() if not only or any(part in job.name for part in only)]
    if not jobs:
        names = " or ".join(map(repr, only))
        raise click.UsageError(f"no measurement's name holds {names}; --list shows them")
    if only_list:
        click.echo("\n".join(job.name for job in jobs))
        return
    # not a terminal: whole lines
    console = Console() if sys.stdout.isatty() else Console(width=140)
    (folder / "corpora").mkdir(parents=True, exist_ok=True)
    scaling = any(job.name.startswith(SCALING_NAMES) for job in jobs)
    for corpus in (*programme.planted(), *programme.spreads()):
        fitted = any(job.name.startswith(f"{corpus.name}: ") for job in jobs)
        if fitted or (scaling and not corpus.spread):
            make_planted(corpus)
    if any(programme.texts().name in job.name for job in jobs):
        make_addresses(programme.texts())
    measured: list[Measurement] = []
    machine = Machine.here()
    for turn in range(repeat):
        for number, job in enumerate(jobs, start=1):
            found = measure(job, limit, folder / "run")
            measured.append(found)
            console.print(
                f"[{turn * len(jobs) + number}/{repeat * len(jobs)}] {found.name}: "
                f"{found.outcome}, {found.seconds:.1f} s {found.error}",
                markup=False,
                highlight=False,
            )
            # kept after each: an hour's run that is interrupted leaves what it has
            Report(machine, programme, limit, tuple(measured)).write(folder)
    report = Report(machine, programme, limit, tuple(measured))
    report.print(console)
    plot(report, folder / "bench.png")
    console.print(f"{folder}: bench.json, bench.md, bench.png")


if __name__ == "__main__":
    main()
