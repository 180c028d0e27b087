"""Sets: what is said of stores of sets of features."""

from __future__ import annotations

from typing import Any

from streaming_moments.pipelines.reports.kinds.base import (
    Facts,
    KindReports,
    Rows,
    first_facts,
    first_rows,
    last_facts,
    last_rows,
    shards_row,
    show_rows,
    words_of,
)
from streaming_moments.pipelines.reports.status import days_of
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.storage.store.store import MomentStore


def _facts(store: MomentStore) -> dict[str, Any]:
    commit, lengths, basis = store.commit, store.totals().whole, store.foundation.basis
    outside = sum(record.outside for record in store.ledger())
    seen, rows = commit.tokens + outside, lengths.n_documents
    return {
        **first_facts(store),
        "documents": rows,
        "empty": sum(lengths.documents[lengths.lengths == 0].tolist()),
        "features_a_row": commit.tokens / rows if rows else None,
        "longest": lengths.longest,
        "tokens": commit.tokens,
        "outside": outside,
        "outside_share": outside / seen if seen else None,
        "days": days_of(store),
        "shards": commit.shards,
        "segments": len(commit.segments),
        "segments_read": len(store.parts),
        **words_of(store.foundation),
        "core": basis.core,
        "columns": basis.columns,
        **last_facts(store),
    }


def _rows(facts: Facts) -> Rows:
    share, mean = facts["outside_share"], facts["features_a_row"]
    outside = "unknown" if share is None else f"{share:.1%}"
    a_row = "" if mean is None else f"; {mean:.3g} a row, {facts['longest']:,} at most"
    return [
        *first_rows(facts),
        ("rows", f"{facts['documents']:,} ({facts['empty']:,} without a feature)"),
        ("features", f"{facts['words']['features']:,} counted, {outside} others{a_row}"),
        ("sketch", f"{facts['columns']:,} columns of {facts['core']:,} features"),
        shards_row(facts),
        *last_rows(facts),
    ]


def _left_out(outside: int, store: MomentStore) -> list[str]:
    return [f"{outside:,} of another feature than the store counts"] if outside else []


SETS = KindReports(SetsFoundation, _facts, show_rows(_rows), _left_out)
