"""Edges: reports on stores of a graph."""

from __future__ import annotations

from typing import Any

from streaming_moments.pipelines.reports.kinds.base import (
    Facts,
    KindReports,
    details_of_triples,
    facts_of_triples,
    rows_of_triples,
    told_by_commit,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.edges.ends import EdgeTotals
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.storage.store.store import MomentStore


def _more(totals: EdgeTotals) -> dict[str, Any]:
    return {"loops": totals.loops, "repeated": totals.repeated}


def _facts(store: MomentStore) -> dict[str, Any]:
    return facts_of_triples(store, _more)


def _left_out(outside: int, store: MomentStore) -> list[str]:
    lines, totals = [], store.totals()
    if outside:
        lines.append(
            f"left out {of_number(outside, 'edge')}, because an end is not a node of the store"
        )
    repeated = f"{of_number(totals.repeated, 'edge')} that occurred twice in a shard"
    loops = f"{of_number(totals.loops, 'loop')}, which are edges of a node to itself"
    found = [repeated] * bool(totals.repeated) + [loops] * bool(totals.loops)
    if found:
        lines.append(f"the store leaves out {', and '.join(found)}")
    return lines


def _told(store: MomentStore) -> Facts:
    return {**told_by_commit(store), "kind": store.kind}


def _counted(told: Facts) -> dict[str, str | int | float]:
    return {"version": told["version"], "edges": told["documents"], "shards": told["shards"]}


EDGES = KindReports(
    EdgesFoundation,
    _facts,
    ("triples", "edge"),
    rows_of_triples("edges read", "edges counted", "repeated or of a node to itself"),
    _left_out,
    told=_told,
    counted=_counted,
    ledger=("edges read", "edges counted", "left out"),
    item="",
    details=details_of_triples,
)
