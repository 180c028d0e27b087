"""Views: reports on stores of records in three views."""

from __future__ import annotations

from streaming_moments.pipelines.reports.kinds.base import (
    KindReports,
    facts_of_triples,
    rows_of_triples,
    show_rows,
)
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.storage.store.store import MomentStore

_LACKING = "that lack a view"


def _left_out(outside: int, store: MomentStore) -> list[str]:
    lines, totals = [], store.totals()
    if outside:
        lines.append(f"{outside:,} words or symbols are not in the store")
    if totals.without:
        lines.append(f"{totals.without:,} records of the store do not count: {_LACKING}")
    return lines


VIEWS = KindReports(
    ViewsFoundation,
    facts_of_triples,
    show_rows(rows_of_triples("records", "triples", _LACKING)),
    _left_out,
)
