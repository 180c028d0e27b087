"""Tables as plain cells, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan

from rich.table import Table


@dataclass(frozen=True)
class Lines:
    """A table as plain cells.

    Parameters
    ----------
    title : str
        Above it.
    columns : tuple of str
        The first is text, the others numbers.
    rows : tuple of tuple of str
        Cells.
    caption : str
        Below it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def rich(self) -> Table:
        table = Table(title=self.title, caption=self.caption, title_justify="left", show_edge=False)
        for place, name in enumerate(self.columns):
            table.add_column(name, justify="right" if place else "left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        rule = " | ".join("---:" if place else "---" for place in range(len(self.columns)))
        lines = [f"| {' | '.join(self.columns)} |", f"| {rule} |"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return f"### {self.title}\n\n" + "\n".join(lines) + f"\n\n{self.caption}\n"


def captioned(tables: Sequence[Lines], caption: str) -> list[Lines]:
    """Tables that have a row; the last carries the caption of all."""
    shown = [lines for lines in tables if lines.rows]
    return [*shown[:-1], *(replace(lines, caption=caption) for lines in shown[-1:])]


def cell(value: float | None, digits: int) -> str:
    """Empty where there is none."""
    return "" if value is None or isnan(value) else f"{value:,.{digits}f}"


def megabytes(nbytes: float) -> str:
    return f"{nbytes / 1e6:,.0f}"
