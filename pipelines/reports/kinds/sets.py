"""Sets: reports on stores of sets of features."""

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
    outside_text,
    shards_row,
    show_rows,
    token_facts,
)
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.storage.store.store import MomentStore


def _facts(store: MomentStore) -> dict[str, Any]:
    commit, lengths, basis = store.commit, store.totals().whole, store.foundation.basis
    rows = lengths.n_documents
    return {
        **first_facts(store),
        "documents": rows,
        "empty": sum(lengths.documents[lengths.lengths == 0].tolist()),
        "features_a_row": commit.tokens / rows if rows else None,
        "longest": lengths.longest,
        **token_facts(store),
        "core": basis.core,
        "columns": basis.columns,
        **last_facts(store),
    }


def _rows(facts: Facts) -> Rows:
    mean = facts["features_a_row"]
    a_row = "" if mean is None else f"; {mean:.3g} a row, {facts['longest']:,} at most"
    return [
        *first_rows(facts),
        ("rows", f"{facts['documents']:,} ({facts['empty']:,} without a feature)"),
        (
            "features",
            f"{facts['words']['features']:,} counted, {outside_text(facts)} others{a_row}",
        ),
        ("sketch", f"{facts['columns']:,} columns of {facts['core']:,} features"),
        shards_row(facts),
        *last_rows(facts),
    ]


def _left_out(outside: int, store: MomentStore) -> list[str]:
    return [f"{outside:,} features are not in the store"] if outside else []


SETS = KindReports(SetsFoundation, _facts, show_rows(_rows), _left_out)
