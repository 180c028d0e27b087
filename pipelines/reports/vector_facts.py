"""Facts of stores of vectors, as people and programs read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.reports.status import (
    days_of,
    days_text,
    skipped_rows,
    stale_models,
)
from streaming_moments.statistics.vectors.statistics import VectorTotals
from streaming_moments.storage.store.store import MomentStore

# Of the rows: so many may lie beyond the radius by chance, of any pilot.
_CLIPPED = 0.01


def vector_facts(store: MomentStore) -> dict[str, Any]:
    """What a store of vectors holds, by name."""
    commit, totals, foundation = store.commit, store.totals(), store.foundation
    number = totals.n_tokens
    return {
        "store": store.url,
        "version": store.version,
        "time": commit.time,
        "message": commit.message,
        "kind": store.kind,
        "documents": totals.n_documents,
        "vectors": number,
        "without_numbers": totals.without,
        "clipped": totals.clipped,
        "clipped_share": totals.clipped / number if number else None,
        "tokens": number,
        "days": days_of(store),
        "room": foundation.room(totals) if number else None,
        "shards": commit.shards,
        "segments": len(commit.segments),
        "words": {},
        "dimension": foundation.dimension,
        "sketch_columns": foundation.columns,
        "step": foundation.grid.step,
        "radius": foundation.grid.radius,
        "squares": foundation.squares,
        "fourth": foundation.fourth,
        "row_blocks": store.row_blocks,
        "state_bytes": store.layout.state_bytes,
        "halves": foundation.halves,
        "models": list(store.models),
        "tags": dict(commit.tags),
        "stale_models": [asdict(one) for one in stale_models(store)],
        "forgotten": list(commit.forgotten.names),
        "purged": len(commit.forgotten.purged),
    }


def vector_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Those facts as names and values for people."""
    optional = [name for name in ("squares", "fourth") if facts[name]]
    share = facts["clipped_share"]
    room = "" if facts["room"] is None else f", room for {facts['room']:.2g}"
    return [
        ("store", facts["store"]),
        ("version", f"{facts['version']}: {facts['message']}"),
        ("vectors", f"{facts['vectors']:,} of {facts['dimension']:,} numbers{room}"),
        ("left out", f"{facts['without_numbers']:,} records that are no such row"),
        (
            "drawn in",
            f"{facts['clipped']:,}{'' if share is None else f' ({share:.2%})'} beyond the radius",
        ),
        (
            "shards",
            f"{facts['shards']:,} in {facts['segments']} segments{days_text(facts['days'])}",
        ),
        (
            "sketch",
            f"{facts['sketch_columns']} columns{', ' * bool(optional)}{', '.join(optional)}",
        ),
        ("statistics", f"{mebibytes(facts['state_bytes'])} in {facts['row_blocks']} row blocks"),
        ("halves", "kept apart" if facts["halves"] else "not kept, so no error bars"),
        ("models", ", ".join(facts["models"]) or "none; run `streaming-moments refit`"),
        ("tags", ", ".join(f"{tag} is {name}" for tag, name in facts["tags"].items()) or "none"),
        *skipped_rows(facts["forgotten"], facts["purged"]),
    ]


def said_of_vectors(outside: int, totals: VectorTotals) -> list[str]:
    """What an update left out, and what was changed of the vectors of a store."""
    lines = []
    if outside:
        lines.append(
            f"{outside:,} records left out: of another width, or with numbers that are missing, "
            "NaN or infinite"
        )
    share = totals.clipped / max(1, totals.n_tokens)
    if share > _CLIPPED:
        lines.append(
            f"{share:.1%} of the vectors of the store lay beyond the radius and were drawn in to "
            "it: they are not as those of the pilot; `streaming-moments rebase` makes another grid"
        )
    return lines
