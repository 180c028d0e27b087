"""`python tests/benchmarks/families.py FAMILY...`: families of models beside their peers.

Planted data are drawn ten times (`--draws`): of each way the median and, in brackets, the worst of
its error, both over that of expectation maximisation from the truth, and median CPU seconds. Real
data come with scikit-learn, statsmodels, networkx and igraph; a part is held out, by three seeds.
Needs the extra `bench`. A way that refuses data is told.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

import click
from peers.cases import measured

FAMILIES = ("chains", "views", "communities", "tables", "sets", "mixtures", "factors", "counts")
SPLITS = 3


@click.command()
@click.argument("families", nargs=-1, type=click.Choice(FAMILIES))
@click.option("--draws", default=10, show_default=True, help="Planted draws.")
@click.option("--only", default="", help="Cases whose name holds this.")
@click.option("--way", default="", help="Ways whose name holds this.")
@click.option("--which", type=click.Choice(["planted", "real", "both"]), default="both")
def main(families: tuple[str, ...], draws: int, only: str, way: str, which: str) -> None:
    """Print tables in Markdown."""
    for family in families or FAMILIES:
        found = importlib.import_module(f"peers.{family}")
        for what, number in (("planted", draws), ("real", SPLITS)):
            if which not in (what, "both"):
                continue
            click.echo(f"\n{family}, {what}: median (worst) of {number}\n")
            click.echo("| data | way | figures | over EM from the truth | CPU s |")
            click.echo("| --- | --- | --- | ---: | ---: |")
            for case in getattr(found, what)():
                ways = {name: own for name, own in case.ways.items() if way in name}
                chosen = replace(case, ways=ways)
                for line in measured(chosen, number) if only in case.name else ():
                    click.echo("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
