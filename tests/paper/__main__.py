"""`python tests/paper`: the experiments of Ruffini, Casanellas, Gavaldà 2018, drawn again."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from growth_figure import growth_figure
from methods_figure import methods_figure
from moments_figure import moments_figure
from outcome import Outcome, machine
from rich.console import Console
from texts import addresses, divina_commedia
from texts_figures import addresses_figure, commedia_figure
from threadpoolctl import threadpool_limits

FIGURES = ("fig1", "fig2", "growth", "fig3", "fig4")


@dataclass(frozen=True)
class Sizes:
    """How large the experiments are.

    Parameters
    ----------
    moments, methods : tuple of int
        Documents N of the first two figures.
    repetitions : int
        Of each N.
    words, topics : tuple of int
        n and k of the growth.
    turns : int
        Timings of each fit of the growth.
    commedia_topics : tuple of int
        k of the third figure.
    iterations : int
        Of Gibbs sampling.
    """

    moments: tuple[int, ...]
    methods: tuple[int, ...]
    repetitions: int
    words: tuple[int, ...]
    topics: tuple[int, ...]
    turns: int
    commedia_topics: tuple[int, ...]
    iterations: int


FULL = Sizes(
    (100, 200, 300, 500, 700, 1000, 2000, 5000),
    tuple(range(50, 1001, 50)),
    10,
    (100, 1000, 5000),
    (5, 20, 50),
    3,
    (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32),
    2000,
)
QUICK = Sizes((100, 1000), (100, 300, 1000), 3, (100, 1000), (5, 20), 2, (3, 8, 16), 200)


@click.command()
@click.option("--only", help=f"Some of {','.join(FIGURES)}; fig4 is Table 1 as well.")
@click.option("--quick", is_flag=True, help="Few points, 200 iterations of Gibbs sampling.")
@click.option(
    "--divina",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON Lines of the cantos with text, cantica, canto; fig3 is left out without it.",
)
@click.option("--output", default=".paper", show_default=True, type=click.Path(path_type=Path))
def main(only: str | None, quick: bool, divina: Path | None, output: Path) -> None:
    """Redraw the figures: one PNG each, all numbers in paper.json, tables on the terminal."""
    chosen = FIGURES if only is None else tuple(only.split(","))
    unknown = [name for name in chosen if name not in FIGURES]
    if unknown:
        raise click.UsageError(f"no figure {', '.join(unknown)}; choose {','.join(FIGURES)}")
    sizes = QUICK if quick else FULL
    runs: Mapping[str, Callable[[], Outcome]] = {
        "fig1": lambda: moments_figure(sizes.moments, sizes.repetitions),
        "fig2": lambda: methods_figure(sizes.methods, sizes.repetitions),
        "growth": lambda: growth_figure(sizes.words, sizes.topics, sizes.turns),
        "fig4": lambda: addresses_figure(addresses(), sizes.iterations),
    }
    if divina is not None:
        cantos = divina_commedia(divina)
        fig3 = lambda: commedia_figure(cantos, sizes.commedia_topics, sizes.iterations)  # noqa: E731
        runs = {**runs, "fig3": fig3}
    # not a terminal: whole lines
    console = Console() if sys.stdout.isatty() else Console(width=160)
    # lda reports its progress as warnings go
    logging.getLogger("lda").setLevel(logging.ERROR)
    output.mkdir(parents=True, exist_ok=True)
    figures = {}
    with threadpool_limits(1):
        for name in FIGURES:
            if name not in chosen:
                continue
            if name not in runs:
                console.print(f"{name} left out: give the cantos with --divina PATH")
                continue
            start = time.perf_counter()
            outcome = runs[name]()
            waited = time.perf_counter() - start
            outcome.write_picture(output)
            for table in outcome.tables:
                console.print(table.rich(), "")
            console.print(f"{output / name}.png, {waited:.0f} s\n", highlight=False)
            figures[name] = {
                "waited_seconds": waited,
                "parameters": outcome.parameters,
                "records": outcome.records,
            }
            # kept after each: a run that is interrupted leaves what it has
            content = {"machine": machine(), "quick": quick, "figures": figures}
            (output / "paper.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
