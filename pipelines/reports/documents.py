"""Print the documents that show each topic most clearly, as a transform found them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from streaming_moments.pipelines.reports.tables import TopicLine

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.outputs.transform import TransformResult


def print_top_documents(
    console: Console, lines: Sequence[TopicLine], result: TransformResult
) -> None:
    """Print a table of the documents that show each topic most clearly."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("topic", overflow="fold")
    table.add_column("share", justify="right")
    table.add_column("tokens", justify="right")
    table.add_column("document", overflow="fold")
    table.add_column("begins", overflow="fold", ratio=1)
    for line, documents in zip(lines, result.representatives.topics, strict=True):
        called = f"{line.topic} {line.label or ' '.join(line.words)}"
        for place, one in enumerate(documents):
            shown = "" if place else called
            table.add_row(shown, f"{one.share:.0%}", f"{one.length:,}", one.id, one.text)
    console.print("", table)
