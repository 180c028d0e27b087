"""What is said of documents that were read with a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.reports.status import stale_as_json
from streaming_moments.pipelines.reports.tables import TopicLine
from streaming_moments.pipelines.terminal import say
from streaming_moments.storage.operations.staleness import Staleness

if TYPE_CHECKING:
    from streaming_moments.pipelines.jobs.transform import TransformResult


def transform_as_json(result: TransformResult, stale: Staleness) -> dict[str, object]:
    """What a transform wrote, and what the model knows of it."""
    topics = [[asdict(one) for one in some] for some in result.representatives.topics]
    written: dict[str, object] = json_value(
        {
            "documents": result.documents,
            "files": list(result.files),
            "kept": result.kept,
            "tokens": result.tokens,
            "unknown": result.unknown,
            "unknown_share": result.unknown_share,
            "foreign": result.foreign,
            "without_known_words": result.empty,
            "top_documents": topics,
        }
    )
    return {**written, **stale_as_json(stale)}


def print_transform(result: TransformResult, output: str, foreign_below: float) -> None:
    """How much was written, and of how much the model knows the words."""
    kept = f", {result.kept} of which were there" if result.kept else ""
    say(f"{result.documents:,} documents in {len(result.files)} files in {output}{kept}")
    share = result.unknown_share
    if share is not None:
        say(f"the model does not know {share:.1%} of {result.tokens + result.unknown:,} words")
    if result.foreign:
        say(
            f"{result.foreign:,} documents are foreign, under {foreign_below:.0%} of their words "
            "known, and have no topic"
        )
    if result.empty:
        say(f"{result.empty:,} documents have no known word, and no topic")


def print_top_documents(
    console: Console, lines: Sequence[TopicLine], result: TransformResult
) -> None:
    """A table of the documents that speak most for each topic."""
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
