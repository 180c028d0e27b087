"""Vectors: reports on a store whose records are rows of numbers."""

from __future__ import annotations

from typing import Any

from streaming_moments.pipelines.quantities import about
from streaming_moments.pipelines.reports.kinds.base import (
    Facts,
    KindReports,
    Rows,
    common_details,
    first_facts,
    last_facts,
    planned,
)
from streaming_moments.pipelines.reports.status import (
    days_of,
    kept_rows,
    shard_facts,
    shards_row,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.storage.store.store import MomentStore

# Warn if more than this share of the rows was clipped. Every grid clips about a twentieth of the
# rows, and by chance sometimes more.
_CLIPPED = 0.06


def _facts(store: MomentStore) -> dict[str, Any]:
    totals, foundation = store.totals(), store.foundation
    number = totals.n_tokens
    return {
        **first_facts(store),
        "documents": totals.n_documents,
        "vectors": number,
        "without_numbers": totals.without,
        "clipped": totals.clipped,
        "clipped_share": totals.clipped / number if number else None,
        "tokens": number,
        "days": days_of(store),
        "room": foundation.room(totals) if number else None,
        **shard_facts(store),
        "words": {},
        "dimension": foundation.dimension,
        "sketch_columns": foundation.columns,
        "step": foundation.grid.step,
        "radius": foundation.grid.radius,
        "squares": foundation.squares,
        "fourth": foundation.fourth,
        **last_facts(store),
    }


def _rows(facts: Facts) -> Rows:
    left, clipped = facts["without_numbers"], facts["clipped"]
    share = f"{clipped:,} rows ({facts['clipped_share']:.2%}) beyond the radius" if clipped else ""
    return [
        ("rows", f"{facts['vectors']:,} of {of_number(facts['dimension'], 'number')}"),
        *([("left out", f"{of_number(left, 'record')} without numbers")] if left else []),
        *([("clipped", share)] if share else []),
        shards_row(facts),
        *kept_rows(facts),
    ]


def _details(facts: Facts) -> Rows:
    optional = ", ".join(["", *(name for name in ("squares", "fourth") if facts[name])])
    room = [] if facts["room"] is None else [("capacity", f"{about(facts['room'])} rows")]
    sketch = ("sketch", f"{of_number(facts['sketch_columns'], 'column')}{optional}")
    grid = ("grid", f"steps of {facts['step']:.3g} up to a radius of {facts['radius']:.3g}")
    return [*common_details(facts), *room, sketch, grid]


def _left_out(outside: int, store: MomentStore) -> list[str]:
    lines, totals = [], store.totals()
    if outside:
        lines.append(
            f"left out {of_number(outside, 'record')}: of another width, or with numbers that are "
            "missing, NaN or infinite"
        )
    share = totals.clipped / max(1, totals.n_tokens)
    if share > _CLIPPED:
        lines.append(
            f"{share:.1%} of the rows of the store were beyond the radius and were clipped "
            "to it, so they differ from those of the pilot; `streaming-moments rebase` makes "
            "another grid"
        )
    return lines


def _counted(told: Facts) -> dict[str, str | int | float]:
    return {
        "version": told["version"],
        "rows": told["vectors"],
        "numbers a row": told["dimension"],
        "records left out": told["without_numbers"],
        "rows clipped to the radius": told["clipped"],
        "shards": told["shards"],
    }


def _planned(foundation: VectorsFoundation) -> dict[str, Any]:
    size = {"dimension": foundation.dimension, "sketch_columns": foundation.columns}
    return {**planned(foundation), **size}


def _planned_rows(foundation: VectorsFoundation, state: str, blocks: str, room: int) -> Rows:
    sizes = f"rows of {foundation.dimension:,} numbers, {foundation.columns} columns"
    return [("statistics", f"{state}: {sizes}, {blocks}")]


VECTORS = KindReports(
    VectorsFoundation,
    _facts,
    ("vectors", "row"),
    _rows,
    _left_out,
    told=_facts,
    counted=_counted,
    ledger=("records", "rows", "left out"),
    planned=_planned,
    planned_rows=_planned_rows,
    details=_details,
)
