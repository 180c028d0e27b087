"""Views: reports on a store whose records consist of three views."""

from __future__ import annotations

from streaming_moments.pipelines.reports.kinds.base import (
    KindReports,
    details_of_triples,
    facts_of_triples,
    rows_of_triples,
)
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.storage.store.store import MomentStore

_LACKING = "without all three views"


def _left_out(outside: int, store: MomentStore) -> list[str]:
    lines, totals = [], store.totals()
    if outside:
        lines.append(
            agreeing(outside, "word or symbol is", "words or symbols are") + " not in the store"
        )
    if totals.without:
        lines.append(f"not counted: {of_number(totals.without, 'record')} of the store {_LACKING}")
    return lines


VIEWS = KindReports(
    ViewsFoundation,
    facts_of_triples,
    ("documents", "record"),
    rows_of_triples("records", "triples", _LACKING),
    _left_out,
    item="word",
    details=details_of_triples,
)
