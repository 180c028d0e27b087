"""Sets: reports on a store whose records are sets of features."""

from __future__ import annotations

from typing import Any

from streaming_moments.pipelines.reports.kinds.base import (
    Facts,
    KindReports,
    Rows,
    common_details,
    first_facts,
    last_facts,
    token_facts,
)
from streaming_moments.pipelines.reports.status import kept_rows, shards_row
from streaming_moments.printing.plural import agreeing, of_number
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
    empty, share = facts["empty"], facts["outside_share"]
    others = f", {share:.1%} of the features of rows are others" if share else ""
    return [
        ("rows", f"{facts['documents']:,}{f' ({empty:,} without a feature)' if empty else ''}"),
        ("features", f"{facts['words']['features']:,}{a_row}{others}"),
        shards_row(facts),
        *kept_rows(facts),
    ]


def _details(facts: Facts) -> Rows:
    sketch = ("sketch", f"{of_number(facts['columns'], 'column')} of {facts['core']:,} features")
    return [*common_details(facts), sketch]


def _left_out(outside: int, store: MomentStore) -> list[str]:
    return (
        [agreeing(outside, "feature is", "features are") + " not in the store"] if outside else []
    )


SETS = KindReports(
    SetsFoundation, _facts, ("documents", "row"), _rows, _left_out, item="feature", details=_details
)
